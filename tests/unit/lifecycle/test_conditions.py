"""A task whose condition over its predecessors' outputs is false is skipped, once, and lets go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.ids import ClaimId, Incarnation
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import EventKind, Exit, ExitKind, Holder, Json, Task, TaskSpec
from region_scheduler.domain.transitions import claim, complete, start
from region_scheduler.errors import LostRace
from region_scheduler.lifecycle.conditions import unlocking, unmet
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.tasks import Unlockable
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit
from tests.simulation.scenarios import HOME, a_plan, graph_of, spec
from tests.unit.domain.samples import AT, STAMP, WORKER, a_task


class Nobody:
    """Wakes nobody."""

    def wake(self, region: str) -> None:
        """Do nothing."""


def wanted_if(name: str, *assertions: Mapping[str, Json]) -> TaskSpec:
    return replace(spec(name), condition=assertions)


IS_BIG = {"path": "/upstream/measure/size", "op": "ge", "value": 10}
GRAPH = a_plan(
    [spec("measure"), wanted_if("split", IS_BIG), spec("after"), spec("beside")],
    "measure>split",
    "split>after",
    "measure>beside",
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, (HOME,))


@pytest.fixture
def graph(world: World) -> GraphStores:
    return graph_of(world)


@pytest.fixture
def settler(world: World, graph: GraphStores) -> Settler:
    return Settler(graph, Nobody(), world.clock, "settler")


def named(graph: GraphStores, run: Run, name: str) -> Task:
    found = graph.tasks.named(run.id, name)
    assert found is not None
    return found


def finished(graph: GraphStores, run: Run, name: str, outputs: dict[str, Any]) -> Task:
    task = named(graph, run, name)
    for change in (
        partial(claim, claim_id=ClaimId(name), scheduler=Incarnation("s:1"), region=HOME, at=AT),
        lambda now: start(now, now.token, WORKER, AT),
        lambda now: complete(
            now, now.token, holder_of(now), Exit(kind=ExitKind.OK, outputs=outputs), AT
        ),
    ):
        task = commit_one(graph.tasks, Change(task.id, change))
    return task


def holder_of(task: Task) -> Holder:
    assert task.holder is not None
    return task.holder


def states(graph: GraphStores, run: Run) -> dict[str, str]:
    return {task.spec.name: task.state for task in graph.tasks.of_run(run.id)}


def test_a_true_condition_makes_the_task_ready(
    world: World, graph: GraphStores, settler: Settler
) -> None:
    run = admit(world, GRAPH)

    found = settler.settle([finished(graph, run, "measure", {"size": 10})])

    assert {task.spec.name for task in found.unlocked} == {"split", "beside"}
    assert states(graph, run)["after"] == TaskState.PENDING


def test_a_false_condition_skips_the_task_and_lets_its_dependents_go(
    world: World, graph: GraphStores, settler: Settler
) -> None:
    run = admit(world, GRAPH)

    found = settler.settle([finished(graph, run, "measure", {"size": 9})])

    assert {task.spec.name for task in found.unlocked} == {"after", "beside"}
    skipped = named(graph, run, "split")
    assert (skipped.state, skipped.reason) == (TaskState.SKIPPED, "condition")
    (entry,) = skipped.history
    assert (entry.kind, entry.state) == (EventKind.UNLOCKED, TaskState.SKIPPED)
    assert entry.detail == "/upstream/measure/size is 9, expected ge 10"
    assert list(entry.seen) == [named(graph, run, "measure").id]


def test_the_reconciler_skips_what_a_crash_left_pending(
    world: World, graph: GraphStores, settler: Settler
) -> None:
    run = admit(world, GRAPH)
    finished(graph, run, "measure", {})

    unlocked = settler.unlock_run(run)

    assert {task.spec.name for task in unlocked} == {"after", "beside"}
    assert settler.unlock_run(run) == []


def test_a_chain_of_skipped_tasks_ends_the_run(
    world: World, graph: GraphStores, settler: Settler
) -> None:
    chain = [
        wanted_if(f"t{n}", {"path": f"/upstream/t{n - 1}", "op": "ne", "value": {}})
        for n in range(1, 40)
    ]
    plan = a_plan([spec("t0"), *chain], *(f"t{n}>t{n + 1}" for n in range(39)))
    run = admit(world, plan)

    found = settler.settle([finished(graph, run, "t0", {})])

    assert found.unlocked == ()
    assert [ended.state for ended in found.ended] == [RunState.DONE]
    assert set(states(graph, run).values()) == {TaskState.DONE, TaskState.SKIPPED}


def test_every_assertion_must_hold() -> None:
    task = wanted_if("x", IS_BIG, {"path": "/upstream/measure/kind", "op": "eq", "value": "a"})

    assert unmet(task, {"measure": {"size": 11, "kind": "a"}}) == ""
    told = unmet(task, {"measure": {"size": 1}})
    assert told == "/upstream/measure/size is 1, expected ge 10; /upstream/measure/kind is missing"


def test_a_dependent_that_moved_meanwhile_is_looked_at_again() -> None:
    task = a_task(state=TaskState.PENDING, needs=0, rev="1")
    decide = unlocking(Unlockable(task, {}), {}, STAMP)

    assert decide(task).state is TaskState.READY
    with pytest.raises(LostRace):
        decide(replace(task, rev="2"))
