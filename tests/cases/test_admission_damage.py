"""The handed case about graphs that are damaged where they are stored.

Its "invalid" is `failed` with a reason that says what is missing: a graph that is restored can be
resumed. Beside the three that the case names there are those whose tasks and dependencies are as
many as they should be, and do not fit together all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.domain.lease import LOCAL_TIMINGS
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState
from region_scheduler.drivers.arango.graph import ArangoGraph
from region_scheduler.operations.cancel import cancel_run
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, auditor, home, resumed, state_of, task_of
from tests.simulation.scenarios import HOME, KEY, a_plan, graph_of, spec

REST_S = LOCAL_TIMINGS.reconcile_every_s * 5
PLAN = a_plan([spec("a"), spec("b")], "a>b")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, (HOME, "us-east"))


def store(world: World) -> ArangoGraph:
    found = graph_of(world)
    assert isinstance(found, ArangoGraph)
    return found


def key(world: World, run: Run, name: str) -> str:
    return task_of(world, run, name).id.partition("/")[2]


def lose_graph(world: World, run: Run) -> None:
    for task in graph_of(world).tasks.of_run(run.id):
        store(world).db.collection("tasks").delete(task.id)
    store(world).db.collection("dependencies").delete_match({"run": run.id})


def edge_of(world: World, run: Run) -> dict[str, Any]:
    """Return the one dependency of a run, as it is stored."""
    found: Any = store(world).db.collection("dependencies").find({"run": run.id})
    edge: dict[str, Any] = next(found)
    return edge


def spoil_field(world: World, run: Run) -> None:
    spoiled = {"_key": key(world, run, "b"), "spec": {"runner": 7}}
    store(world).db.collection("tasks").update(spoiled)


def lose_predecessor(world: World, run: Run) -> None:
    moved = {**edge_of(world, run), "_from": "tasks/nobody"}
    store(world).db.collection("dependencies").update(moved)


def lose_edge(world: World, run: Run) -> None:
    store(world).db.collection("dependencies").delete_match({"run": run.id})


def lose_task(world: World, run: Run) -> None:
    store(world).db.collection("tasks").delete(task_of(world, run, "b").id)


DAMAGES: dict[str, tuple[Callable[[World, Run], None], str]] = {
    "graph missing": (lose_graph, "0 of 2 tasks are there; 0 of 1 dependencies are there"),
    "unknown field type": (spoil_field, "cannot be read"),
    "edge to a missing node": (lose_predecessor, "of task 'b' 0 of its 1 predecessors are there"),
    "edge missing": (lose_edge, "0 of 1 dependencies are there"),
    "task missing": (lose_task, "1 of 2 tasks are there"),
}


def test_BAD_005_damaged_runs_fail_with_a_reason_and_good_ones_beside_them_finish(
    world: World,
) -> None:
    damaged = {what: admit(world, PLAN, what) for what in DAMAGES}
    for what, run in damaged.items():
        DAMAGES[what][0](world, run)
    good = [admit(world, PLAN, f"good {n}") for n in range(20)]
    alive = [region.services.keeper.instance.id for region in world.regions.values()]

    world.pass_time(REST_S)

    assert {state_of(world, run) for run in good} == {RunState.DONE}
    for what, run in damaged.items():
        (found,) = graph_of(world).runs.read([run.id])
        assert found is not None
        assert found.state is RunState.FAILED, what
        assert found.reason.startswith("its graph is damaged: "), what
        assert DAMAGES[what][1] in found.reason, what
    assert [r.services.keeper.instance.id for r in world.regions.values()] == alive
    assert all(region.services.keeper.may_act() for region in world.regions.values())


def test_BAD_005_a_graph_that_is_restored_is_resumed(world: World) -> None:
    run = admit(world, PLAN, KEY)
    edge = edge_of(world, run)
    lose_edge(world, run)
    world.pass_time(REST_S)
    assert state_of(world, run) is RunState.FAILED

    store(world).db.collection("dependencies").insert(edge)
    (found,) = graph_of(world).runs.read([run.id])
    assert found is not None
    resumed(world, found)
    world.pass_time(REST_S)

    assert state_of(world, run) is RunState.DONE


def test_BAD_005_what_only_a_newer_version_understands_is_no_damage(world: World) -> None:
    run = admit(world, PLAN, KEY)
    newer = {"_key": key(world, run, "b"), "schema": 2, "needs": "a"}
    store(world).db.collection("tasks").update(newer)

    world.pass_time(REST_S)

    assert state_of(world, run) is RunState.RUNNING


def test_BAD_005_a_damaged_run_that_is_cancelled_comes_to_an_end(world: World) -> None:
    run = admit(world, PLAN, KEY)
    lose_task(world, run)
    settles = home(world).services.settler
    cancel_run(graph_of(world), settles, auditor(world), world.clock, run)

    world.pass_time(REST_S)

    assert state_of(world, run) is RunState.CANCELLED
    assert home(world).services.keeper.may_act()
