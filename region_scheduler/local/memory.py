"""How much memory a process and all that it started take."""

from __future__ import annotations

from dataclasses import dataclass

import psutil

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Memory:
    """Of a process tree, in MiB.

    Attributes:
        pss: Proportional: what several processes share is divided among them.
        rss: Resident, shared parts counted once for each process.
    """

    pss: float
    rss: float

    def __str__(self) -> str:
        """Return it for people."""
        return f"{self.pss:.0f} MiB (resident {self.rss:.0f})"


def memory_of(pid: int) -> Memory:
    """Return what `pid` and its descendants take; zero if it is gone."""
    pss = rss = 0
    try:
        root = psutil.Process(pid)
        tree = [root, *root.children(recursive=True)]
    except psutil.Error:
        return Memory(0.0, 0.0)
    for process in tree:
        try:
            full = process.memory_full_info()
        except psutil.Error:
            continue
        rss += full.rss
        pss += getattr(full, "pss", full.rss)
    return Memory(pss / _MIB, rss / _MIB)
