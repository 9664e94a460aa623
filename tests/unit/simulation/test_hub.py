"""Actors take turns on virtual time, and can be stopped wherever they wait."""

from __future__ import annotations

import pytest

from region_scheduler.simulation.hub import Hub
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.time import VirtualClock


@pytest.fixture
def hub() -> Hub:
    return Hub(VirtualClock(0.0))


def test_whoever_is_due_first_goes_on_and_idle_time_is_skipped(hub: Hub) -> None:
    seen: list[tuple[str, float]] = []

    def walk(name: str, pause_s: float) -> None:
        for _ in range(2):
            hub.sleep(pause_s)
            seen.append((name, hub.clock.seconds))

    hub.spawn("slow", lambda: walk("slow", 1_000_000))
    hub.spawn("quick", lambda: walk("quick", 3))
    hub.run(10_000_000)

    assert seen == [("quick", 3), ("quick", 6), ("slow", 1_000_000), ("slow", 2_000_000)]
    assert hub.clock.seconds == 10_000_000
    assert hub.turns == 6


def test_one_that_is_killed_dies_where_it_stands_and_cleans_up(hub: Hub) -> None:
    seen: list[str] = []

    def wait() -> None:
        try:
            hub.sleep(100)
            seen.append("went on")
        finally:
            seen.append(f"cleaned up at {hub.clock.seconds:g}")

    victim = hub.spawn("victim", wait)
    hub.spawn("killer", lambda: hub.kill(victim), 5)
    hub.run(1_000)

    assert seen == ["cleaned up at 5"]
    assert victim.is_over


def test_one_that_is_dying_cannot_wait_any_more(hub: Hub) -> None:
    seen: list[str] = []

    def stubborn() -> None:
        try:
            hub.sleep(100)
        finally:
            with pytest.raises(Crash):
                hub.sleep(1)
            seen.append("refused")

    victim = hub.spawn("stubborn", stubborn)
    hub.run(1)
    hub.kill(victim)
    hub.run(10)

    assert seen == ["refused"]


def test_one_that_never_began_does_nothing_when_it_is_killed(hub: Hub) -> None:
    seen: list[str] = []
    victim = hub.spawn("victim", lambda: seen.append("began"), 5)
    hub.kill(victim)

    hub.run(10)

    assert seen == []
    assert victim.is_over


def test_a_frozen_one_goes_on_later_and_the_others_meanwhile(hub: Hub) -> None:
    seen: list[tuple[str, float]] = []

    def tick(name: str) -> None:
        for _ in range(3):
            hub.sleep(1)
            seen.append((name, hub.clock.seconds))

    frozen = hub.spawn("frozen", lambda: tick("frozen"))
    hub.spawn("free", lambda: tick("free"))
    frozen.frozen_until = 2.5
    hub.run(100)

    assert [at for name, at in seen if name == "free"] == [1, 2, 3]
    assert [at for name, at in seen if name == "frozen"] == [3.5, 4.5, 5.5]


def test_one_that_is_woken_goes_on_at_once_and_only_once(hub: Hub) -> None:
    seen: list[float] = []

    def wait() -> None:
        hub.sleep(100)
        seen.append(hub.clock.seconds)
        hub.sleep(500)
        seen.append(hub.clock.seconds)

    sleeper = hub.spawn("sleeper", wait)
    hub.spawn("friend", lambda: hub.wake(sleeper), 7)
    hub.run(1_000)

    assert seen == [7, 507]


def test_it_stops_as_soon_as_it_is_over(hub: Hub) -> None:
    hub.spawn("actor", lambda: hub.sleep(5))

    hub.run(100, lambda: hub.turns == 1)

    assert hub.clock.seconds == 0
