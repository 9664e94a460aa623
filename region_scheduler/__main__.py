"""`python -m region_scheduler`."""

from region_scheduler.cli import main

main()
