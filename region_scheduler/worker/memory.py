"""What the processes of a step take of the machine's memory, and what is to be done about it."""

from __future__ import annotations

from pathlib import Path
from resource import getpagesize
from typing import Final

from region_scheduler.ports.time import Clock
from region_scheduler.worker.shim import descendants

_PROC: Final = Path("/proc")
_MIB: Final = 1 << 20
_LOOK_EVERY_S: Final = 1.0
_RUNAWAY: Final = 2.0
"""As many times what is allowed, and there is no time to be polite."""


class Memory:
    """Looks now and then at a step and everything that it started; it says each thing once.

    Args:
        shim_pid: The step's shim; what is below it counts.
        mib_max: Most memory of all its processes together, MiB; 0 for no bound.
        clock: This machine's clock.
    """

    def __init__(self, shim_pid: int, mib_max: int, clock: Clock) -> None:
        self._shim_pid = shim_pid
        self._bytes_max = mib_max * _MIB
        self._clock = clock
        self._look_at = 0.0
        self._left = [(_RUNAWAY, b"kill\n"), (1.0, b"memory\n")] if mib_max else []

    def look(self) -> bytes:
        """Return the word that the shim is to be told; empty if there is none."""
        now = self._clock.monotonic()
        if not self._left or now < self._look_at:
            return b""
        self._look_at = now + _LOOK_EVERY_S
        used = bytes_of(descendants(self._shim_pid), self._bytes_max)
        for factor, word in self._left:
            if used > factor * self._bytes_max:
                self._left = [(f, w) for f, w in self._left if f > factor]
                return word
        return b""


def bytes_of(pids: list[int], enough: int) -> int:
    """Return what processes take together, in bytes; 0 where there is no /proc.

    Resident pages are cheap to count, but count what processes share once for each of them; only if
    they come to more than `enough` is each asked for its proportional share.
    """
    resident = sum(_resident(pid) for pid in pids)
    return resident if resident <= enough else sum(_proportional(pid) for pid in pids)


def _resident(pid: int) -> int:
    fields = _said(pid, "statm").split()
    return int(fields[1]) * getpagesize() if fields else 0


def _proportional(pid: int) -> int:
    after = _said(pid, "smaps_rollup").partition("\nPss:")[2].split()
    return int(after[0]) * 1024 if after else _resident(pid)


def _said(pid: int, name: str) -> str:
    try:
        return (_PROC / str(pid) / name).read_text()
    except OSError:
        return ""  # it died meanwhile, or is another user's
