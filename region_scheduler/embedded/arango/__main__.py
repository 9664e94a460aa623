"""Run the server: `python -m region_scheduler.embedded.arango --port P --data DIR`."""

import sys

from region_scheduler.embedded.arango.serving.command import main

sys.exit(main())
