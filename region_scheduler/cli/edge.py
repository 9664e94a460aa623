"""The edge of a process: whatever happens becomes one line and an exit code, never a traceback."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping

from region_scheduler.cli import interrupted
from region_scheduler.errors import BrokenInvariant, RegionSchedulerError, Throttled

_BROKEN_PIPE = 141
_OF_QUOTA = ("tenant", "quota", "limit", "used", "retry_after_s")


def keep_private() -> None:
    """Have everything that this process and its children write be for its owner's eyes only."""
    os.umask(0o077)


def guarded(run: Callable[[], int], *, as_json: bool = False) -> int:
    """Return the exit code of `run`, or of what it raised.

    Args:
        run: Returns an exit code.
        as_json: Say what went wrong as the last line of standard output, too.
    """
    try:
        code = run()
        sys.stdout.flush()
    except Throttled as error:
        more = {name: getattr(error, name) for name in _OF_QUOTA}
        return _told(error.code, str(error), error.exit_code, as_json=as_json, more=more)
    except RegionSchedulerError as error:
        return _told(error.code, str(error), error.exit_code, as_json=as_json)
    except BrokenInvariant as broken:
        said = f"invariant broken, please report it: {broken}"
        return _told("broken_invariant", said, broken.exit_code, as_json=as_json)
    except KeyboardInterrupt:
        return interrupted(as_json=as_json)
    except BrokenPipeError:
        # Whoever read us has gone; nothing may be written at the interpreter's end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except Exception as unexpected:  # noqa: BLE001 - the edge
        said = f"unexpected, please report it: {type(unexpected).__name__}: {unexpected}"
        return _told("internal", said, BrokenInvariant.exit_code, as_json=as_json)
    return code


def _told(
    code: str,
    message: str,
    exit_code: int,
    *,
    as_json: bool,
    more: Mapping[str, str | int] | None = None,
) -> int:
    line = " ".join(message.split())
    sys.stderr.write(f"region-scheduler: {line}\n")
    if as_json:
        value = {"ok": False, "error": {"code": code, "message": line, **(more or {})}}
        sys.stdout.write(json.dumps(value) + "\n")
    return exit_code
