"""Which processes of this machine are alive, and which belong to a receipt."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from region_scheduler.domain.ids import ReceiptId

RECEIPT_VARIABLE = "REGION_SCHEDULER_RECEIPT"
"""In the environment of every process of a step: how it is found when its shim is gone."""

_PROC = Path("/proc")
_GONE = (b"Z", b"X")


def started_at(pid: int) -> int:
    """Return when process `pid` started (clock ticks since boot), 0 if it is not alive.

    With it a reused id is told from the process that once had it. A zombie is not alive. Where
    there is no /proc, every living process has started at 1.
    """
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
    except FileNotFoundError:
        return 0 if _PROC.joinpath("self").exists() else _is_there(pid)
    except ProcessLookupError:
        return 0
    fields = stat.rpartition(b")")[2].split()
    return 0 if fields[0] in _GONE else int(fields[19])


def of_receipt(receipt_id: ReceiptId) -> list[int]:
    """Return the living processes of a step, its shim included, by their environment.

    A process that emptied its environment is not found; neither is anything without a /proc.
    """
    mark = f"{RECEIPT_VARIABLE}={receipt_id}".encode()
    found: list[int] = []
    if not _PROC.joinpath("self").exists():
        return found
    for entry in os.listdir(_PROC):
        if not entry.isdigit():
            continue
        try:
            environ = (_PROC / entry / "environ").read_bytes()
        except OSError:
            continue
        if mark in environ.split(b"\0"):
            found.append(int(entry))
    return found


def kill_receipt(receipt_id: ReceiptId) -> bool:
    """Kill what is left of a step without a shim; return whether anything was.

    Call it again until it returns False: what is forked meanwhile is seen the next time.
    """
    left = of_receipt(receipt_id)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            continue  # gone meanwhile, or another user's
    return bool(left)


def _is_there(pid: int) -> int:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return 0
    except PermissionError:
        return 1
    return 1
