"""The handed cases about who comes first, each named by its id.

FAI-006 needs real brokers and workers: `tests/integration/celery/test_worker.py`.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from region_scheduler.assembly.services import region_services
from region_scheduler.domain.states import RunState
from region_scheduler.domain.task import LockNeed
from region_scheduler.scheduling.scheduler import Scheduler
from region_scheduler.scheduling.settings import SchedulerSettings
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, effects, home, state_of
from tests.simulation.scenarios import HOME, a_plan, graph_of, spec


def scheduler_of(world: World, **more: Any) -> Scheduler:
    """Return a scheduler of the home region that dispatches only what a slot is free for."""
    settings = SchedulerSettings(HOME, look_ahead=0, look_every_s=0.0, **more)
    region = home(world)
    return region_services(region.ports, settings, world.timings, region.services.keeper).scheduler


def work(world: World, scheduler: Scheduler) -> bool:
    """Let a worker end one attempt, and the scheduler fill its slot."""
    has_worked = home(world).workers[0].work()
    world.renew()
    scheduler.notice()
    scheduler.tick()
    return has_worked


@pytest.mark.parametrize("runs", [1, 10], ids=["in one run", "each in a run of its own"])
def test_fai_001_every_priority_is_told_from_the_next(tmp_path: Path, runs: int) -> None:
    """Documented: higher is sooner, within a tenant; any whole number from 0 on."""
    world = World(tmp_path, (HOME,), slots=1)
    scheduler = scheduler_of(world)
    tasks = [spec(f"p{n}", priority=n) for n in range(10)]
    Random(7).shuffle(tasks)
    size = len(tasks) // runs
    for number in range(runs):
        admit(world, a_plan(tasks[number * size : (number + 1) * size]), f"k{number}")
    scheduler.tick()
    while work(world, scheduler):
        pass

    assert effects(world) == [f"p{n}" for n in range(9, -1, -1)]


@pytest.mark.parametrize(
    ("count", "limit"), [(300, 60), pytest.param(10_000, 2_000, marks=pytest.mark.slow)]
)
def test_fai_004_a_tenant_with_little_is_not_kept_waiting_by_one_with_much(
    tmp_path: Path, count: int, limit: int
) -> None:
    world = World(tmp_path, (HOME,), slots=10)
    scheduler = scheduler_of(world, scan_limit=limit)
    admit(world, a_plan([spec(f"much{n}", priority=9) for n in range(count)], tenant="t1"), "k1")
    scheduler.tick()
    for _ in range(20):
        assert work(world, scheduler)
    admit(world, a_plan([spec(f"little{n}") for n in range(10)], tenant="t2"), "k2")
    begin = len(effects(world))
    while sum(name.startswith("little") for name in effects(world)) < 10:
        assert work(world, scheduler)

    further = [name for name in effects(world)[begin:] if name.startswith("much")]
    assert len(further) < 30, "ten of them were on their way when the other came"
    last = effects(world)[begin + 10 :][:20]
    shares = [name.startswith("little") for name in last]
    assert sum(shares) >= 10, "half of the slots, while both have what to do"


def test_fai_007_two_locks_cost_an_idle_region_no_wait_at_all(tmp_path: Path) -> None:
    """On simulated time, moved by the steps alone: whoever waited would be seen to."""
    world = World(tmp_path, (HOME,))
    ends: list[float] = []
    waits: list[float] = []
    names = [f"n{n}" for n in range(4)]

    def takes_100_ms(_: object) -> None:
        waits.append(world.clock.seconds - ends[-1])
        world.clock.advance(0.1)
        ends.append(world.clock.seconds)

    world.log.during |= dict.fromkeys(names, takes_100_ms)
    needs = (LockNeed("x"), LockNeed("y"))
    for number in range(20):
        ends.append(world.clock.seconds)
        plan = a_plan([spec(n, locks=needs) for n in names], "n0>n1", "n1>n2", "n2>n3")
        run = admit(world, plan, f"k{number}")
        world.fast_path()
        assert state_of(world, run) is RunState.DONE
        world.renew()

    assert len(waits) == 80
    assert sorted(waits)[round(0.95 * 80)] == max(waits) == 0.0
    assert graph_of(world).conflicts.recent(9) == []
