"""Measure one scheduler: `region-scheduler bench scheduling`.

Ready tasks are promoted, claimed, assigned and dispatched by the product's own scheduler, over HTTP
to an engine in a process of its own, with a real Valkey. Only its ticks are on the clock. Between
them the bench does what workers would: it takes the messages, and ends the tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from region_scheduler.bench.figures import Figure
from region_scheduler.bench.promoting import Yard, yard
from region_scheduler.bench.rounds import percentile
from region_scheduler.runtime.system import SystemClock

BATCH: Final = 100
BATCHED_S: Final = 3_000.0
SINGLE_S: Final = 700.0
ROUND_TRIPS: Final = 6
_FEW: Final = 200
_REFILL: Final = 1_000
_LIMIT_S: Final = 0.4


@dataclass(frozen=True, slots=True)
class Round:
    """What the ticks of one round came to.

    Attributes:
        tasks: Dispatched.
        seconds: On the clock.
        processor_s: Of this process.
        latencies_s: Of each tick.
        round_trips: To the graph store, of each tick.
    """

    tasks: int
    seconds: float
    processor_s: float
    latencies_s: list[float]
    round_trips: list[int]


def measure(seconds: float) -> list[Figure]:
    """Return the figures of one scheduler.

    Args:
        seconds: Of each measured round.
    """
    return [*_batched(seconds), *_singly(seconds)]


def _batched(seconds: float) -> Iterator[Figure]:
    with yard(BATCH) as here:
        limit = _limit(here)
        for title, is_locking in ((f"batches of {BATCH}", False), ("  with a lock each", True)):
            found = _round(here, seconds, is_locking=is_locking)
            yield from _figures(title, found, BATCHED_S, limit)
            most = max(found.round_trips)
            yield Figure("    most store round trips a batch", most, "calls", ROUND_TRIPS, limit)


def _singly(seconds: float) -> Iterator[Figure]:
    with yard(1) as here:
        found = _round(here, seconds, is_locking=False)
        yield from _figures("one at a time", found, SINGLE_S, _limit(here))


def _figures(title: str, found: Round, target_s: float, limit: str) -> Iterator[Figure]:
    yield Figure(title, found.tasks / found.seconds, "tasks/s", target_s, limit)
    share = 1e6 * found.processor_s / found.tasks
    yield Figure("    the scheduler's processor time a task", share, "us", None, limit)
    median = percentile(sorted(found.latencies_s), 0.5) * 1e3
    yield Figure("    median of a tick", median, "ms", None, limit)


def _round(here: Yard, seconds: float, *, is_locking: bool) -> Round:
    """Let the scheduler tick for so long; it is woken before each, as by a task that ended."""
    clock = SystemClock()
    here.fill(_REFILL, is_locking=is_locking)
    here.scheduler.notice()
    in_flight = len(here.scheduler.tick().dispatched)  # connections are opened, queries compiled
    left, tasks = _REFILL - in_flight, 0
    latencies: list[float] = []
    trips: list[int] = []
    processor_s = 0.0
    while sum(latencies) < seconds:
        if left <= _REFILL // 2:
            here.fill(_REFILL, is_locking=is_locking)
            left += _REFILL
        here.scheduler.notice()
        trips_before, processor_before = here.round_trips(), clock.processor()
        began_at = clock.monotonic()
        dispatched = len(here.scheduler.tick().dispatched)
        latencies.append(clock.monotonic() - began_at)
        processor_s += clock.processor() - processor_before
        trips.append(here.round_trips() - trips_before)
        tasks, left, in_flight = tasks + dispatched, left - dispatched, in_flight + dispatched
        if in_flight >= _FEW:
            here.work_off()
            in_flight = 0
    here.work_off()
    return Round(tasks, sum(latencies), processor_s, latencies, trips)


def _limit(here: Yard) -> str:
    """Say what a client that does nothing else gets from the same engine and the same Valkey."""
    trip_us = 1e6 / _rate(lambda: here.engine("GET", "/_api/version"))
    ping_us = 1e6 / _rate(lambda: here.messages("PING"))
    return f"bare round trips: engine {trip_us:.0f} us, broker {ping_us:.0f} us"


def _rate(act: Callable[[], object]) -> float:
    clock = SystemClock()
    count, began_at = 0, clock.monotonic()
    while clock.monotonic() - began_at < _LIMIT_S:
        act()
        count += 1
    return count / (clock.monotonic() - began_at)
