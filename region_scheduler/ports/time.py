"""Time, chance and identifiers, as the core is handed them."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The clocks of this machine."""

    def monotonic(self) -> float:
        """Return seconds since boot, counting suspended time; never compared across machines."""
        ...

    def now(self) -> datetime:
        """Return the wall time (aware UTC); for display and calendars, never for a lease."""
        ...


class Ids(Protocol):
    """New identifiers."""

    def new(self) -> str:
        """Return an id that no other call anywhere returns (UUIDv7, 32 hex digits)."""
        ...


class Chance(Protocol):
    """Randomness for jitter; never for identity or secrets."""

    def uniform(self, low: float, high: float) -> float:
        """Return a number between `low` and `high`."""
        ...
