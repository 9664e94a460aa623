"""The handed cases about followers that lag or stand still, each named by its id."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.assembly.in_process import in_process_graph
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.errors import NotYet, Unavailable
from region_scheduler.operations.views import Source, View, Views
from region_scheduler.ports.consistency import Reads
from region_scheduler.ports.records import GraphStores
from tests.cases.troubled import TroubledWorld
from tests.simulation.acts import admit, effects, home, state_of, task_of
from tests.simulation.scenarios import HOME, a_plan, graph_of, spec

AWAY = "us-east"
BOUND_S = 10.0


@pytest.fixture
def world(tmp_path: Path) -> TroubledWorld:
    return TroubledWorld(tmp_path, (HOME, AWAY))


class Store:
    """A graph store that can be gone altogether, its follower too."""

    def __init__(self, inner: GraphStores) -> None:
        self._inner = inner
        self.is_gone = False

    def __getattr__(self, name: str) -> Any:
        if self.is_gone:
            raise Unavailable(dependency="graph store", detail="gone")
        return getattr(self._inner, name)


def stores_of(world: TroubledWorld, name: str) -> list[Any]:
    """Return the follower and the leader as the API of a region reaches them."""
    follower, leader = (in_process_graph(world.engine, name) for _ in range(2))
    follower.read_all(Reads.AT_FOLLOWER)
    leader.read_all(Reads.AT_LEADER)
    return [Store(follower), Store(leader)]


def views_of(world: TroubledWorld, name: str, stores: list[Any] | None = None) -> Views:
    """Return what the API of a region shows."""
    follower, leader = stores or stores_of(world, name)
    replica = world.regions[name].services.replica
    return Views(follower, leader, lambda: replica.age, world.clock)


def pass_time(world: TroubledWorld, seconds: float) -> None:
    """Let time pass, the watches of the followers too."""
    for _ in range(round(seconds / world.timings.watch_every_s)):
        for region in world.regions.values():
            region.services.replica.tick()
        world.pass_time(world.timings.watch_every_s)


@dataclass
class Asked:
    """What a caller saw in one region, and sees in another."""

    world: TroubledWorld
    run: Run

    def here(self) -> View:
        return views_of(self.world, HOME).run(self.run.id)


@pytest.fixture
def completed(world: TroubledWorld) -> Asked:
    """Let region B's follower lag by 5 s, and complete a task in region A."""
    run = admit(world, a_plan([spec("c"), spec("d", runner="approval")], "c>d"))
    pass_time(world, 2)
    FaultControl(world.engine).set_lag(AWAY, 5.0)
    pass_time(world, 1)
    run = admit(world, a_plan([spec("c"), spec("d", runner="approval")], "c>d"), "k2")
    world.clock.advance(6)
    world.renew()
    home(world).services.promote()
    home(world).workers[0].work()
    assert task_of(world, run, "c").state is TaskState.DONE
    return Asked(world, run)


def state_in(view: View) -> str:
    (state,) = [task["state"] for task in view.content["tasks"] if task["name"] == "c"]
    return str(state)


def test_stl_003_an_answer_of_a_lagging_region_says_how_old_it_is(completed: Asked) -> None:
    there = views_of(completed.world, AWAY)
    world = completed.world
    for region in world.regions.values():
        region.services.replica.tick()

    view = there.run(completed.run.id)

    assert (view.source, state_in(view)) == (Source.FOLLOWER, "ready")
    assert view.age_s >= 5
    assert view.version != completed.here().version


def test_stl_003_what_a_caller_has_seen_is_seen_everywhere_or_it_is_told_not_yet(
    completed: Asked,
) -> None:
    world, seen = completed.world, completed.here()
    assert state_in(seen) == "done"
    there = views_of(world, AWAY)

    view = there.run(completed.run.id, seen.version)
    assert (view.source, state_in(view), view.age_s) == (Source.LEADER, "done", 0.0)
    assert view.version == seen.version

    with world.cut(AWAY), pytest.raises(NotYet, match="not to be seen here yet"):
        there.run(completed.run.id, seen.version)

    world.clock.advance(6)  # the follower has caught up with what the caller saw
    with world.cut(AWAY):
        view = there.run(completed.run.id, seen.version)
    assert (view.source, view.version) == (Source.FOLLOWER, seen.version)


def test_stl_012_a_follower_that_stands_still_is_reported_and_left(world: TroubledWorld) -> None:
    """Region B goes on by the leader's answers, and shows nothing old as current."""
    pass_time(world, 3)
    away, control = world.regions[AWAY], FaultControl(world.engine)
    assert not away.services.replica.age.is_stale
    control.freeze(AWAY)
    pass_time(world, BOUND_S + 2 * world.timings.renew_every_s)
    assert away.services.replica.age.is_stale
    assert not home(world).services.replica.age.is_stale

    run = admit(world, a_plan([spec("a"), spec("b", AWAY)], "a>b"))
    follower = in_process_graph(world.engine, AWAY)
    assert follower.tasks.of_run(run.id) == [], "its follower shows nothing of it, for good"
    assert len(away.ports.graph.tasks.of_run(run.id)) == 2, "B reads at the leader"
    view = views_of(world, AWAY).run(run.id)
    assert (view.source, view.is_stale) == (Source.LEADER, False)
    pass_time(world, 3)
    assert state_of(world, run) is RunState.DONE
    assert effects(world) == ["a", "b"]

    control.thaw(AWAY)
    pass_time(world, 2)
    assert not away.services.replica.age.is_stale
    assert views_of(world, AWAY).run(run.id).source is Source.FOLLOWER


def test_a_region_that_is_cut_off_shows_what_it_has_and_how_old_that_is(
    world: TroubledWorld,
) -> None:
    """First its follower's view, then, without a store, what it saw last; then all is as before."""
    names = [f"t{n}" for n in range(6)]
    run = admit(world, a_plan([spec(name, AWAY, allowed_regions=(AWAY,)) for name in names]))
    pass_time(world, 1)
    stores = stores_of(world, AWAY)
    shown = views_of(world, AWAY, stores)
    shown.keep()
    control = FaultControl(world.engine)
    control.cut(AWAY, is_refusing=True)
    for _ in range(round((BOUND_S + 2) / world.timings.watch_every_s)):
        world.clock.advance(world.timings.watch_every_s)
        world.regions[AWAY].services.replica.tick()

    view = shown.run(run.id)
    assert (view.source, view.is_stale) == (Source.FOLLOWER, True)
    assert view.age_s >= BOUND_S
    assert len(shown.regions().content["items"]) == 2

    for store in stores:
        store.is_gone = True
    world.clock.advance(5)
    view = shown.run(run.id)
    assert (view.source, view.is_stale) == (Source.SNAPSHOT, True)
    assert view.age_s >= BOUND_S + 5
    with pytest.raises(Unavailable, match="not seen before"):
        shown.run("another")

    for store in stores:
        store.is_gone = False
    control.heal(AWAY)
    pass_time(world, 4 * world.timings.lease_s)
    assert shown.run(run.id).is_stale is False
    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == dict.fromkeys(names, 1)
    assert graph_of(world).regions.all()[1].status == "active", "it came back by itself"
