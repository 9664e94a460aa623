"""Time and chance of a world: both are told, so that it can be lived again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random  # noqa: TID251 - a world is replayed by its seed
from typing import Final

_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class VirtualClock:
    """Time that moves only when it is told to."""

    seconds: float = 1000.0

    def monotonic(self) -> float:
        """Return the virtual seconds."""
        return self.seconds

    def now(self) -> datetime:
        """Return the virtual wall time."""
        return _EPOCH + timedelta(seconds=self.seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.seconds += seconds


@dataclass(slots=True)
class SetClock:
    """A region's clocks: the world's time, and a wall clock that somebody may have set wrong."""

    world: VirtualClock
    ahead_s: float = 0.0

    def monotonic(self) -> float:
        """Return the virtual seconds."""
        return self.world.monotonic()

    def now(self) -> datetime:
        """Return what the wall clock shows."""
        return self.world.now() + timedelta(seconds=self.ahead_s)


class SeededChance:
    """Ids and jitter from one seed, so that a world can be replayed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - a replayable world

    def uniform(self, low: float, high: float) -> float:
        """Return a number between `low` and `high`."""
        return self._random.uniform(low, high)

    def new(self) -> str:
        """Return 32 hex digits."""
        return f"{self._random.getrandbits(128):032x}"
