"""How far a wall clock is ahead of the others'."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from statistics import median

from region_scheduler.domain.instance import Instance


def ahead_s(now: datetime, alive: Sequence[Instance]) -> float:
    """Return how many seconds `now` is ahead of the median of the live beats' stamps.

    A stamp is as old as its beat, up to a third of a ttl: a right clock is a little ahead. With two
    clocks the one that is ahead is told so, whichever is right: a schedule that is late can be made
    good, one that fired too early cannot.

    Args:
        now: The asker's wall time.
        alive: Unfenced instances, the asker's own among them.
    """
    if not alive:
        return 0.0
    stamps = [(instance.stamped_at - now) / timedelta(seconds=1) for instance in alive]
    return -median(stamps)
