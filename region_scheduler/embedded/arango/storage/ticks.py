"""Everything that must never be handed out twice: revisions, rows, numeric ids and keys."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random

from region_scheduler.embedded.arango.storage.revision import RevisionClock

_FIRST_TICK = 100
_TICK_RESERVE = 1_000_000


class Ticks:
    """The counters of an engine.

    Args:
        wall: Seconds since the epoch, for revisions.
        chance: For uuid keys.
        rev_floor: What an earlier process reserved for revisions.
        tick_floor: What an earlier process reserved for ids and keys.
    """

    def __init__(
        self,
        wall: Callable[[], float],
        chance: Random,
        rev_floor: int = 0,
        tick_floor: int = 0,
    ) -> None:
        self.chance = chance
        self.revisions = RevisionClock(wall, rev_floor)
        self.next_rev = self.revisions.next
        self._tick = max(tick_floor, _FIRST_TICK)
        self._tick_reserved = tick_floor
        self.next_row = count(1).__next__

    def continue_rows(self, row: int) -> None:
        """Let the next row be `row`."""
        self.next_row = count(row).__next__

    def next_tick(self) -> int:
        """Return a number for a new collection, index, transaction, cursor, job or key."""
        self._tick += 1
        return self._tick

    def reserve(self) -> dict[str, int]:
        """Return the bounds that the log must store before what was handed out may be used."""
        due: dict[str, int] = {}
        revision = self.revisions.reserve()
        if revision is not None:
            due["revision"] = revision
        if self._tick >= self._tick_reserved:
            self._tick_reserved = self._tick + _TICK_RESERVE
            due["tick"] = self._tick_reserved
        return due
