"""The `worker` process. Also a program of its own, so that it loads no command line."""

from __future__ import annotations

import sys

from region_scheduler.cli.edge import guarded, keep_private
from region_scheduler.config.load import Values, load
from region_scheduler.errors import Misconfigured
from region_scheduler.runtime.logs import set_up_logging


def run(flags: Values) -> int:
    """Work for a region until told to end; return the exit code.

    Raises:
        Misconfigured: The settings do not do.
        Unavailable: The graph store was not reached for a minute.
    """
    from region_scheduler.assembly.working import run_worker_process

    keep_private()
    settings = load(flags).settings
    if not settings.region:
        raise Misconfigured(problems=["region is not set: name it with --region"])
    set_up_logging(level=settings.log_level, region=settings.region, role="worker")
    return run_worker_process(settings)


if __name__ == "__main__":
    sys.exit(guarded(lambda: run({})))
