"""What is not pinned runs where capacity is free."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.pause import Scope, ScopeKind
from region_scheduler.domain.region import cordoned
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import EventKind
from region_scheduler.operations.pauses import pause
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, auditor, home, task_of
from tests.simulation.scenarios import HOME, a_plan, graph_of, spec

AWAY = "us-east"
COUNT = 12


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two regions with four slots each, that nobody wakes."""
    world = World(tmp_path, (HOME, AWAY), slots=4)
    world.is_waking = False
    return world


def places(world: World, run: Run) -> Counter[str]:
    return Counter(task.region for task in graph_of(world).tasks.of_run(run.id))


def fill_home(world: World, **more: Any) -> Run:
    """Admit more than the home region can begin; its scheduler takes its part."""
    tasks = [spec(f"t{n:02}", remaining_s=float(n), **more) for n in range(COUNT)]
    run = admit(world, a_plan(tasks, regions=(HOME, AWAY)))
    home(world).services.promote()
    return run


def look(world: World, region: str = AWAY) -> None:
    world.clock.advance(world.timings.ttl_s / 6)
    world.renew()
    world.regions[region].services.promote()


def with_two(**more: Any) -> dict[str, Any]:
    return {"allowed_regions": (HOME, AWAY), **more}


def test_an_idle_region_fetches_as_much_as_it_has_slots_the_least_urgent_first(
    world: World,
) -> None:
    run = fill_home(world, **with_two())
    before = {t.spec.name for t in graph_of(world).tasks.of_run(run.id, [TaskState.READY])}

    look(world)

    assert places(world, run) == {HOME: COUNT - 4, AWAY: 4}
    fetched = sorted(t.spec.name for t in graph_of(world).tasks.of_run(run.id) if t.region == AWAY)
    assert fetched == sorted(before)[:4]
    moved = task_of(world, run, fetched[0])
    assert [e.detail for e in moved.history if e.kind is EventKind.MOVED] == [f"from {HOME}"]
    assert world.regions[AWAY].ports.backlog.marks([moved.id]) == {moved.id: moved.seq}
    look(world)
    assert task_of(world, run, fetched[0]).state is TaskState.CLAIMED


def test_what_is_pinned_or_may_not_go_or_finds_no_pool_stays(world: World) -> None:
    pinned = fill_home(world, **with_two(is_pinned=True))
    bound = admit(world, a_plan([spec(f"b{n}", allowed_regions=(HOME,)) for n in range(4)]), "b")
    special = admit(world, a_plan([spec(f"g{n}", **with_two(pool="gpu")) for n in range(4)]), "g")

    look(world)

    for run in (pinned, bound, special):
        assert set(places(world, run)) == {HOME}


def test_a_region_that_can_begin_all_it_has_gives_nothing_away(world: World) -> None:
    run = admit(world, a_plan([spec(f"t{n}", **with_two()) for n in range(4)]))

    look(world)

    assert places(world, run) == {HOME: 4}


def test_a_cordoned_region_lets_go_what_may_go(world: World) -> None:
    run = admit(world, a_plan([spec(f"t{n}", **with_two()) for n in range(3)]))
    close = partial(cordoned, reason="patch", by="operator:anna")
    commit_one(graph_of(world).regions, Change(HOME, close))
    (worker,) = home(world).workers
    home(world).workers.remove(worker)
    worker.keeper.surrender()

    look(world)

    assert places(world, run) == {AWAY: 3}


def test_a_paused_region_fetches_nothing(world: World) -> None:
    run = fill_home(world, **with_two())
    scope = Scope(ScopeKind.REGION, AWAY)
    pause(graph_of(world), auditor(world), world.clock, scope, "quiet")

    look(world)

    assert places(world, run) == {HOME: COUNT}


def test_a_task_that_was_claimed_meanwhile_is_not_fetched(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fill_home(world, **with_two())
    store = world.regions[AWAY].ports.graph.tasks
    seen = store.movable(HOME, AWAY, ["default"], 4)
    for task in seen:
        commit_one(
            graph_of(world).tasks,
            Change(task.id, lambda found: replace(found, seq=found.seq + 1, region="elsewhere")),
        )
    monkeypatch.setattr(type(store), "movable", lambda *_: seen)

    look(world)

    assert places(world, run) == {HOME: COUNT - 4, "elsewhere": 4}


def test_an_idle_region_is_used_from_its_first_look_to_the_end(world: World) -> None:
    """All is admitted in the home region, more than it can begin; a step takes a second."""
    count, slots = 200, 4
    tasks = [spec(f"t{n:03}", **with_two()) for n in range(count)]
    run = admit(world, a_plan(tasks, regions=(HOME, AWAY)))
    rounds: list[Counter[str]] = []
    while graph_of(world).tasks.state_counts(run.id).get(TaskState.DONE, 0) < count:
        assert len(rounds) < count
        ended: Counter[str] = Counter()
        for name, region in world.regions.items():
            region.services.mender.tick()
            if region.services.promote().wait_s == 0:
                region.services.promote()  # its loop comes again at once for what was fetched
            ended[name] = sum(region.workers[0].work() for _ in range(slots))
        rounds.append(ended)
        world.clock.advance(1.0)
        world.renew()

    used = {name: sum(r[name] for r in rounds) / (slots * len(rounds)) for name in world.regions}
    assert len(rounds) <= count / (2 * slots) + 3, "half the time that one region takes"
    assert used[HOME] >= 0.9
    assert used[AWAY] >= 0.9
