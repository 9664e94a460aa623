"""In which order, and how much of each tenant, a real scheduler promotes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from region_scheduler.assembly.services import region_services
from region_scheduler.domain.ids import TaskId
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.tenant import LEVELS, Level, Tenant, tenant_key
from region_scheduler.scheduling.scheduler import Scheduler
from region_scheduler.scheduling.settings import SchedulerSettings
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, home
from tests.simulation.scenarios import HOME, a_plan, graph_of, spec
from tests.unit.domain.samples import AT


def scheduler_of(world: World, **more: Any) -> Scheduler:
    settings = SchedulerSettings(HOME, **more)
    region = home(world)
    return region_services(region.ports, settings, world.timings, region.services.keeper).scheduler


@pytest.mark.parametrize("seed", range(5))
def test_with_one_tenant_and_equal_paths_the_order_is_first_seen_plus_tolerance(
    tmp_path: Path, seed: int
) -> None:
    """Seen by the mender or by a scheduler's own look, in whatever order they became ready."""
    chance = Random(seed)
    world = World(tmp_path, (HOME,), slots=1)
    scheduler = scheduler_of(world, look_ahead=0)
    graph = graph_of(world)
    due: dict[TaskId, float] = {}
    dispatched: list[TaskId] = []

    def see(number: int, is_looking: bool) -> None:
        tasks = [
            spec(f"t{n}", expected_s=5.0, delay_tolerance_s=float(chance.randrange(40)))
            for n in range(6)
        ]
        run = admit(world, a_plan(tasks), key=f"k{number}")
        if is_looking:
            scheduler.notice()
            dispatched.extend(scheduler.tick().dispatched)
        else:
            home(world).services.mender.tick()
        now_s = world.clock.now().timestamp()
        for task in graph.tasks.of_run(run.id):
            due[task.id] = now_s + task.spec.delay_tolerance_s

    for number in range(6):
        see(number, is_looking=number == 0)
        world.clock.advance(chance.choice([0.5, 3.0, 11.0]))
        world.renew()
    first = list(dispatched)
    while home(world).workers[0].work():
        world.renew()
        dispatched.extend(scheduler.tick().dispatched)

    assert len(first) == 1, "one slot, and nothing beyond it in the queue"
    assert first == [min(list(due)[:6], key=lambda id_: (due[id_], id_))]
    assert dispatched == first + sorted(due.keys() - set(first), key=lambda id_: (due[id_], id_))
    assert len(dispatched) == 36


LEVEL_OF = {
    "trial": LEVELS["trial"],
    "standard": LEVELS["standard"],
    "premium": LEVELS["premium"],
    "floored": Level("floored", weight=0.1, floor=3),
    "bounded": Level("bounded", weight=100, floor=0, in_flight_max=2),
}
IN_FLIGHT_MAX = 24
# Floors first: 1 + 1 + 2 + 3. Then by weight: bounded has its 2 at once, and of the other 15 the
# premium tenant gets four for each one of the standard tenant, counted from nothing in flight.
SHARES = {"trial": 1, "standard": 4, "premium": 14, "floored": 3, "bounded": 2}


def in_flight(world: World) -> Counter[str]:
    return Counter(graph_of(world).regions.standing(HOME, []).in_flight.by_tenant)


def test_five_tenants_share_a_region_by_floor_weight_and_bound(tmp_path: Path) -> None:
    world = World(tmp_path, (HOME,), slots=50)
    tenants = [
        Tenant(id=tenant_key(name), name=name, level=level, created_at=AT)
        for name, level in LEVEL_OF.items()
        if name != "standard"  # has no document: the default level
    ]
    graph_of(world).tenants.insert(tenants)
    scheduler = scheduler_of(world, in_flight_max=IN_FLIGHT_MAX, level_default=LEVEL_OF["standard"])
    runs = [
        admit(world, a_plan([spec(f"t{n:02}") for n in range(30)], tenant=name), key=name)
        for name in LEVEL_OF
    ]

    scheduler.tick()

    assert in_flight(world) == SHARES
    for _ in range(150):
        assert home(world).workers[0].work()
        world.renew()
        scheduler.notice()
        scheduler.tick()
        now = in_flight(world)
        assert now.total() <= IN_FLIGHT_MAX
        assert now["trial"] <= 4
        assert now["bounded"] <= 2
    assert in_flight(world) == {}
    for run in runs:
        assert graph_of(world).tasks.state_counts(run.id) == {TaskState.DONE: 30}


def test_a_tenant_that_comes_late_gets_its_floor_with_the_next_free_slots(tmp_path: Path) -> None:
    world = World(tmp_path, (HOME,), slots=6)
    scheduler = scheduler_of(world, look_ahead=0, look_every_s=0.0)
    admit(world, a_plan([spec(f"t{n:02}", expected_s=99) for n in range(60)], tenant="big"), "k1")
    scheduler.tick()
    assert in_flight(world) == {"big": 6}
    admit(world, a_plan([spec("t")], tenant="small"), "k2")

    assert home(world).workers[0].work()
    scheduler.notice()
    scheduler.tick()

    assert in_flight(world) == {"big": 5, "small": 1}


def test_the_levels_share_a_region_that_is_full_by_their_weights(tmp_path: Path) -> None:
    """Trial, standard and premium, 1:4:16; the long run is tests/unit/scheduling/test_fairness."""
    levels = {name: LEVELS[name] for name in ("trial", "standard", "premium")}
    world = World(tmp_path, (HOME,), slots=42)
    graph_of(world).tenants.insert(
        [Tenant(id=tenant_key(n), name=n, level=one, created_at=AT) for n, one in levels.items()]
    )
    scheduler = scheduler_of(world, look_ahead=0)
    for name, count in (("trial", 20), ("standard", 60), ("premium", 200)):
        tasks = [spec(f"t{n:03}") for n in range(count)]
        admit(world, a_plan(tasks, tenant=name), key=name)
    scheduler.tick()
    worked = 0
    while worked < 210:
        for _ in range(6):
            assert home(world).workers[0].work()
            worked += 1
        world.renew()
        scheduler.notice()
        scheduler.tick()
        assert in_flight(world) == {"trial": 2, "standard": 8, "premium": 32}
    tasks_done = graph_of(world).tasks.read([effect.task for effect in world.log.effects])
    done = Counter(task.tenant for task in tasks_done if task is not None)

    total = sum(level.weight for level in levels.values())
    wanted = {n: pytest.approx(worked * one.weight / total, rel=0.05) for n, one in levels.items()}
    assert done == wanted
