"""Tenants of unequal levels that always have work: what each gets in the long run, and how soon."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

import pytest

from region_scheduler.domain.tenant import Level
from region_scheduler.scheduling.promote import Claimant, Room, pick
from tests.unit.scheduling.test_promote import row

WEIGHTS = {"small": 1.0, "middle": 4.0, "large": 16.0}
TOTAL = sum(WEIGHTS.values())
TASKS = 10_000
ROWS = {name: [row(f"{name}{n}", tenant=name) for n in range(500)] for name in WEIGHTS}


@dataclass
class Region:
    """A region whose places are filled, batch by batch, as its scheduler would.

    Attributes:
        places: K.
        lasts: How long a task of a tenant takes, seconds.
        ended: Tasks by tenant.
        held_s: Seconds of places by tenant.
    """

    places: int
    lasts: Callable[[str], float]
    floor: int = 1
    ended: Counter[str] = field(default_factory=Counter)
    held_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(WEIGHTS, 0.0))

    def play(self, count: int, check: Callable[[Counter[str]], None] = lambda _: None) -> None:
        """Let `count` tasks end; `check` sees what is in flight after each batch."""
        in_flight: Counter[str] = Counter()
        running: list[tuple[float, int, str]] = []
        now = 0.0
        for number in range(count):
            while (free := self.places - in_flight.total()) > 0:
                rows = [one for name in WEIGHTS for one in ROWS[name][:free]]  # always enough work
                room = Room(free, {"default": free})
                for picked in pick(rows, {}, room, self.claimants(in_flight)).rows:
                    in_flight[picked.tenant] += 1
                    lasts_s = self.lasts(picked.tenant)
                    self.held_s[picked.tenant] += lasts_s
                    heappush(running, (now + lasts_s, number, picked.tenant))
            check(in_flight)
            now, _, tenant = heappop(running)
            in_flight[tenant] -= 1
            self.ended[tenant] += 1

    def claimants(self, in_flight: Counter[str]) -> Mapping[str, Claimant]:
        return {
            name: Claimant(Level(name, weight=weight, floor=self.floor), in_flight[name])
            for name, weight in WEIGHTS.items()
        }


def shares(counts: Mapping[str, float]) -> dict[str, float]:
    total = sum(counts.values())
    return {name: counts[name] / total for name in WEIGHTS}


def equal(_: str) -> float:
    return 30.0


@pytest.mark.parametrize("places", [21, 42, 420])
def test_one_to_four_to_sixteen_holds_within_a_twentieth_over_ten_thousand_tasks(
    places: int,
) -> None:
    """With room for every weight in full, each share is off by a twentieth of itself at most."""
    region = Region(places, equal)
    region.play(TASKS)

    wanted = {name: pytest.approx(w / TOTAL, rel=0.05) for name, w in WEIGHTS.items()}
    assert shares(region.ended) == wanted


@pytest.mark.parametrize("places", [16, 30, 100])
def test_where_places_do_not_divide_by_the_weights_no_share_is_off_by_five_in_a_hundred(
    places: int,
) -> None:
    region = Region(places, equal)
    region.play(TASKS)

    wanted = {name: pytest.approx(w / TOTAL, abs=0.05) for name, w in WEIGHTS.items()}
    assert shares(region.ended) == wanted


@pytest.mark.parametrize("slow", ["small", "large"])
def test_shares_are_of_places_so_that_long_tasks_bring_nobody_more(slow: str) -> None:
    chance = Random(5)

    def lasts(tenant: str) -> float:
        return chance.uniform(1, 60) * (10 if tenant == slow else 1)

    region = Region(42, lasts)
    region.play(TASKS)

    wanted = {name: pytest.approx(w / TOTAL, rel=0.05) for name, w in WEIGHTS.items()}
    assert shares(region.held_s) == wanted


@pytest.mark.parametrize("places", [3, 4, 8, 21, 100])
@pytest.mark.parametrize("floor", [1, 2])
def test_nobody_is_below_their_floor_once_a_batch_is_over(places: int, floor: int) -> None:
    """The bound: a tenant below its floor gets the very next place that becomes free."""
    chance = Random(7)

    def check(in_flight: Counter[str]) -> None:
        least = min(in_flight[name] for name in WEIGHTS)
        assert least >= min(floor, places // len(WEIGHTS))

    Region(places, lambda _: chance.expovariate(0.1), floor).play(TASKS // 10, check)
