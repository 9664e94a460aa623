"""The command line. A command loads what it needs when it runs; `--help` loads nothing.

Ctrl-C ends a command with one line and 130, with `--json` also with an object. While nothing is
open it ends at once: an exception would be lost, or printed, inside whatever import is under way.
"""

from __future__ import annotations

import os
import signal
import sys

INTERRUPTED = 130
_SAID = "interrupted"


def main() -> None:
    """Run the command that the arguments name, and leave with its exit code."""
    signal.signal(signal.SIGINT, _leave)
    from region_scheduler.cli.app import run

    sys.exit(run(sys.argv[1:]))


def close_on_interrupt() -> None:
    """From here on let Ctrl-C raise, because something is open that must be closed in order."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupted(*, as_json: bool) -> int:
    """Say so, and return the exit code; a further Ctrl-C ends the process at once.

    Args:
        as_json: Say it as the last line of standard output, too.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Past the buffers: the signal may have come while one of them was written.
    os.write(2, f"region-scheduler: {_SAID}\n".encode())
    if as_json:
        said = f'{{"ok": false, "error": {{"code": "{_SAID}", "message": "{_SAID}"}}}}\n'
        os.write(1, said.encode())
    return INTERRUPTED


def _leave(_number: int, _frame: object) -> None:
    os._exit(interrupted(as_json="--json" in sys.argv))
