"""The command line. A command loads what it needs when it runs; `--help` loads nothing."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command that the arguments name, and leave with its exit code."""
    from region_scheduler.cli.app import run

    sys.exit(run(sys.argv[1:]))
