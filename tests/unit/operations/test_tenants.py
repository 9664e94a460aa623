"""Tenants: what somebody types, and what becomes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from region_scheduler.domain.tenant import LEVELS, QUOTAS, Quota
from region_scheduler.errors import InvalidInput
from region_scheduler.operations.tenants import (
    InUse,
    TenantWish,
    find_tenant,
    in_use,
    set_tenant,
)
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, auditor
from tests.simulation.scenarios import HOME, a_plan, a_zone, graph_of, spec


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, (HOME,))


def wish(level: str = "", name: str = "acme", **bounds: str) -> TenantWish:
    options = ("--zones", "--runs-a-day", "--runs-in-flight", "--tasks-in-flight")
    given = {f"--{key.replace('_', '-')}": text for key, text in bounds.items()}
    return TenantWish(name=name, level=level, bounds=dict.fromkeys(options, "") | given)


def set_(world: World, wanted: TenantWish) -> tuple[str, Quota, int | None]:
    made = set_tenant(graph_of(world), auditor(world), wanted, "standard", world.clock.now())
    return made.level.name, made.quota, made.level.in_flight_max


def test_a_level_comes_with_its_quotas_and_numbers_stand_instead(world: World) -> None:
    trial, most = QUOTAS["trial"], LEVELS["trial"].in_flight_max

    assert set_(world, wish(zones="9")) == ("standard", Quota(zones_max=9), None)
    assert set_(world, wish("trial")) == ("trial", trial, most)
    more = Quota(
        zones_max=trial.zones_max, runs_a_day_max=None, runs_in_flight_max=trial.runs_in_flight_max
    )
    assert set_(world, wish(runs_a_day="unbounded", tasks_in_flight="7")) == ("trial", more, 7)
    assert set_(world, wish("premium", runs_in_flight="0")) == (
        "premium",
        Quota(runs_in_flight_max=0),
        None,
    )


def test_a_change_is_audited_and_none_is_not(world: World) -> None:
    for _ in range(2):
        set_(world, wish("trial", zones="5"))

    (entry,) = graph_of(world).audit.recent(9)
    assert (entry.action, entry.thing, entry.tenant) == ("tenants.set", "acme", "acme")
    assert entry.detail == "level trial, zones 5"


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (wish("gold"), "--level"),
        (wish(zones="-1"), "--zones"),
        (wish(runs_a_day="1e3"), "--runs-a-day"),
        (wish(runs_in_flight="1000001"), "--runs-in-flight"),
        (wish(tasks_in_flight="²"), "--tasks-in-flight"),
        (wish(), "tenants set"),
        (wish("trial", name="a/b"), "TENANT"),
        (wish("trial", name=""), "TENANT"),
    ],
)
def test_what_is_not_accepted_is_named_and_writes_nothing(
    world: World, wanted: TenantWish, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        set_(world, wanted)

    assert refused.value.field == field
    assert (graph_of(world).tenants.all(), graph_of(world).audit.recent(9)) == ([], [])


def test_a_tenant_that_was_given_nothing_is_as_the_default_level_has_it(world: World) -> None:
    found, is_own = find_tenant(graph_of(world), "new", "trial", world.clock.now())

    assert (found.level.name, found.quota, is_own) == ("trial", QUOTAS["trial"], False)
    with pytest.raises(InvalidInput):
        find_tenant(graph_of(world), "no tenant", "trial", world.clock.now())


def test_what_is_in_use_is_counted_whether_it_is_bounded_or_not(world: World) -> None:
    graph = graph_of(world)
    graph.zones.insert([a_zone()])
    admit(world, a_plan([spec("a")]), "k1")
    world.fast_path()
    world.pass_time(1)
    set_(world, wish(runs_in_flight="3"))
    admit(world, a_plan([spec("a")]), "k2")

    used = in_use(graph, "acme", world.clock.now())

    assert (used.zones, used.runs_a_day) == (1, 2)
    assert used.runs_in_flight >= 1
    assert in_use(graph, "nobody", world.clock.now()) == InUse(0, 0, 0)
