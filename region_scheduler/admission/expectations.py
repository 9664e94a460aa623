"""What a submitter knows of durations: read now and then, never in the way of a submission."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from region_scheduler.domain.durations import Known
from region_scheduler.errors import Unavailable
from region_scheduler.ports.records import DurationStore
from region_scheduler.ports.time import Clock

_FRESH_S: Final = 60.0


class Expectations:
    """The durations that all regions have learned, at most a minute old.

    Args:
        store: Where they stand.
        clock: This machine's clock.
    """

    def __init__(self, store: DurationStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._read_at = float("-inf")
        self._known: Known = {}

    def known(self) -> Known:
        """Return what is known; the last that was, or nothing, if the store does not answer."""
        if self._clock.monotonic() - self._read_at >= _FRESH_S:
            with suppress(Unavailable):
                self._known = {one.id: one for one in self._store.all()}
            self._read_at = self._clock.monotonic()
        return self._known
