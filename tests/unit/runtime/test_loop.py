from __future__ import annotations

import threading
import time

import pytest

from region_scheduler.errors import BrokenInvariant, RegionSchedulerError, Unavailable
from region_scheduler.runtime.loop import Loop

LONG_S = 60.0
WAIT_S = 5.0


def ended(loop: Loop) -> bool:
    loop.stop()
    return loop.join(WAIT_S)


def test_a_tick_that_wants_the_next_one_soon_gets_it_without_being_woken() -> None:
    enough = threading.Event()
    counts: list[int] = []

    def tick() -> float:
        counts.append(1)
        if len(counts) == 3:
            enough.set()
        return 0.001

    loop = Loop("paced", tick)
    loop.start()

    assert enough.wait(WAIT_S)
    assert ended(loop)


def test_a_loop_that_wants_no_tick_waits_until_it_is_woken() -> None:
    ticked = threading.Semaphore(0)
    loop = Loop("woken", ticked.release)
    loop.start()
    assert ticked.acquire(timeout=WAIT_S)

    assert not ticked.acquire(timeout=0.05)
    loop.wake()

    assert ticked.acquire(timeout=WAIT_S)
    assert ended(loop)


def test_many_wake_ups_during_a_tick_lead_to_one_more_tick_at_once() -> None:
    entered, may_leave = threading.Semaphore(0), threading.Semaphore(0)

    def tick() -> float:
        entered.release()
        assert may_leave.acquire(timeout=WAIT_S)
        return LONG_S

    loop = Loop("busy", tick)
    loop.start()
    assert entered.acquire(timeout=WAIT_S)
    for _ in range(10):
        loop.wake()
    may_leave.release()

    assert entered.acquire(timeout=WAIT_S)
    may_leave.release()
    assert not entered.acquire(timeout=0.05)
    assert ended(loop)


@pytest.mark.parametrize(
    "error", [Unavailable(dependency="graph", detail="cut"), KeyError("a bug")], ids=repr
)
def test_a_tick_that_fails_is_repeated(error: Exception) -> None:
    healed = threading.Event()
    counts: list[int] = []

    def tick() -> None:
        counts.append(1)
        if len(counts) < 4:
            raise error
        healed.set()

    loop = Loop("failing", tick, pause_first_s=0.001, pause_max_s=0.01)
    loop.start()

    assert healed.wait(WAIT_S)
    assert ended(loop)


def test_wake_ups_do_not_shorten_the_pause_after_a_failure_but_a_stop_does() -> None:
    ticked = threading.Semaphore(0)

    def tick() -> None:
        ticked.release()
        raise RegionSchedulerError

    # The pause is drawn between a tenth of the first and the first.
    loop = Loop("pausing", tick, pause_first_s=LONG_S, pause_max_s=LONG_S)
    loop.start()
    assert ticked.acquire(timeout=WAIT_S)
    loop.wake()

    assert not ticked.acquire(timeout=0.05)
    started = time.monotonic()
    assert ended(loop)
    assert time.monotonic() - started < WAIT_S


def test_pauses_are_capped() -> None:
    seen: list[float] = []

    def tick() -> None:
        seen.append(time.monotonic())
        raise RegionSchedulerError

    loop = Loop("capped", tick, pause_first_s=0.001, pause_max_s=0.004)
    loop.start()
    deadline = time.monotonic() + WAIT_S
    while len(seen) < 40 and time.monotonic() < deadline:
        time.sleep(0.01)

    # Uncapped, the fortieth pause would be years.
    assert len(seen) >= 40
    assert ended(loop)


def test_a_broken_invariant_ends_the_loop_and_is_handed_on() -> None:
    told: list[str] = []

    def tick() -> None:
        raise BrokenInvariant("one holder")

    loop = Loop("broken", tick, on_broken=lambda broken: told.append(str(broken)))
    loop.run()

    assert told == ["one holder"]
