"""The real time, chance and identifiers of this machine, as `ports.time` names them."""

from __future__ import annotations

import gc
import os
import random
import threading
import time
from datetime import UTC, datetime

_SUFFIX_BITS = 62
_COLLECTED_AFTER = (100_000, 50, 100)
"""New objects, then collections of younger ones, after which the next generation is looked at."""


def collect_seldom() -> None:
    """Let this process look for cycles rarely: a big graph is millions of objects without any."""
    gc.set_threshold(*_COLLECTED_AFTER)


class SystemClock:
    """This machine's clocks."""

    # CLOCK_MONOTONIC stands still while a machine is suspended; a lease does not.
    _clock_id: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def monotonic(self) -> float:
        """Return seconds since boot, counting suspended time where the system can tell."""
        return time.clock_gettime(self._clock_id)

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC."""
        return datetime.now(UTC)

    def processor(self) -> float:
        """Return the seconds of processor time that this process has used so far."""
        return time.process_time()

    def pause(self, seconds: float) -> None:
        """Let this thread wait; for the pause between two tries of one call only."""
        time.sleep(seconds)


class UuidIds:
    """UUIDv7 (RFC 9562) as 32 hex digits; the ids of one object rise strictly."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ticks = 0

    def new(self) -> str:
        """Return a new id: 48 bits of milliseconds, 12 that count within one, 62 of chance.

        A clock that is set back, or more than 4096 ids in a millisecond, make the time part run
        ahead; ids never fall.
        """
        with self._lock:
            self._ticks = ticks = max(self._ticks + 1, (time.time_ns() // 1_000_000) << 12)
        chance = int.from_bytes(os.urandom(8)) >> (64 - _SUFFIX_BITS)
        stamp = (ticks >> 12) << 80 | 0x7 << 76 | (ticks & 0xFFF) << 64
        return f"{stamp | 0b10 << _SUFFIX_BITS | chance:032x}"


class SystemChance:
    """Randomness for jitter, seeded anew in every process, forked ones too."""

    def uniform(self, low: float, high: float) -> float:
        """Return a number between `low` and `high`."""
        return random.uniform(low, high)  # noqa: S311 - jitter, never a secret
