"""What was written of a run that was refused, or cancelled before it was published, goes.

Whoever dies on the way, and whoever writes it again late; and never anything of an admitted run.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.admission.saga import AdmissionSaga
from region_scheduler.assembly.services import intake, settler
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.admission import Admission, AdmissionState, admission_key
from region_scheduler.domain.ids import task_id
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.errors import InvalidGraph, InvalidInput, OutcomeUnknown, Unavailable
from region_scheduler.lifecycle.leftover import sweep_unpublished
from region_scheduler.operations.cancel import cancel_admission
from region_scheduler.simulation.faults import Fault, Faults, kinds_of
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, auditor, home, state_of
from tests.simulation.scenarios import HOME, KEY, a_plan, graph_of, spec

PLAN = a_plan([spec("a"), spec("b"), spec("c")], "a>b", "b>c")
POINTS = ("runs.read", "leftovers.tasks", "tasks.remove", "leftovers.edges", "metadata.remove",
          "leftovers.remove_edges", "metadata.marks")  # fmt: skip
FAULTS = [Fault(point, 0, kind) for point in POINTS for kind in kinds_of(point)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, (HOME,))


def refusing(point: str, call: partial[Any]) -> Any:
    """Let the store refuse the dependencies after the tasks were written, and take one of them."""
    if point == "tasks.insert_edges":
        call.func(call.args[0][:1])
        raise InvalidInput(field="graph store", value="edge", expected="something else")
    return call()


def admission_of(world: World, key: str = KEY) -> Admission:
    (found,) = graph_of(world).admissions.read([admission_key("client", PLAN.tenant, key)])
    assert found is not None
    return found


def saga(world: World, hook: Any = lambda _, call: call()) -> AdmissionSaga:
    ports = home(world).ports.through(hook)
    return AdmissionSaga(HOME, ports.graph, ports.metadata, settler(ports, "x"))


def accepted(world: World) -> Admission:
    """Accept a request, as a process that dies after it."""

    def dying(point: str, call: partial[Any]) -> Any:
        if point == "metadata.record":
            raise Crash(point)
        return call()

    instance = home(world).services.keeper.instance
    with pytest.raises(Crash):
        intake(home(world).ports.through(dying), instance).admit(PLAN, KEY)
    return admission_of(world)


def left(world: World, admission: Admission) -> tuple[int, int, int]:
    """Return how many tasks, dependencies and rows there are of it."""
    rows = home(world).ports.metadata.marks(admission.run)
    return (*graph_of(world).tasks.counts(admission.run), len(rows))


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_refusal_that_fails_anywhere_leaves_nothing_in_the_end(
    world: World, fault: Fault
) -> None:
    admission = accepted(world)
    faults = Faults(fault, lambda: None)

    def hook(point: str, call: partial[Any]) -> Any:
        if point == "tasks.insert_edges":
            faults.is_armed = True
            return refusing(point, call)
        return faults(point, call)

    try:
        saga(world, hook).carry_out(admission)
    except Crash:
        world.restart(home(world))
    except (Unavailable, OutcomeUnknown):
        pass
    world.pass_time(world.timings.reconcile_every_s * 3)
    world.restart(home(world))  # a region compares all rows with the graph as it starts
    world.pass_time(world.timings.reconcile_every_s * 3)

    (run,) = graph_of(world).runs.recent(10)
    if run.state is RunState.REFUSED:
        assert left(world, admission) == (0, 0, 0)
        assert world.log.effects == []
    else:  # the fault came before the refusal was written, and the next one was taken
        assert fault.point == "runs.read"
        assert run.state is RunState.DONE


def test_what_a_late_writer_brings_back_goes_again_and_its_client_hears_of_the_refusal(
    world: World,
) -> None:
    admission = accepted(world)
    late = saga(world)
    assert saga(world, refusing).carry_out(admission).state is RunState.REFUSED
    assert left(world, admission) == (0, 0, 0)

    assert late.carry_out(admission).state is RunState.REFUSED
    assert left(world, admission) == (0, 0, 0)

    a = task_id(admission.run, "a")
    graph_of(world).tasks.insert_edges([(a, a)])
    world.pass_time(world.timings.reconcile_every_s * 2)
    assert left(world, admission) == (0, 0, 0)
    assert world.log.effects == []


def test_a_writer_under_which_its_graph_is_removed_hears_of_the_refusal(world: World) -> None:
    admission = accepted(world)

    def swept_meanwhile(point: str, call: partial[Any]) -> Any:
        if point == "tasks.counts" and not swept:
            swept.append(saga(world, refusing).carry_out(admission))
        return call()

    swept: list[Run] = []

    assert saga(world, swept_meanwhile).carry_out(admission).state is RunState.REFUSED
    assert left(world, admission) == (0, 0, 0)


def test_a_run_cancelled_before_it_was_published_leaves_nothing(world: World) -> None:
    admission = accepted(world)
    graph = graph_of(world)

    def cancelled_meanwhile(point: str, call: partial[Any]) -> Any:
        if point == "tasks.counts":
            (found,) = graph.admissions.unfinished()
            settles = home(world).services.settler
            cancel_admission(graph, settles, auditor(world), world.clock, found)
        return call()

    run = saga(world, cancelled_meanwhile).carry_out(admission)

    assert run.is_tombstone
    assert left(world, admission) == (0, 0, 0)


@pytest.mark.parametrize("state", list(RunState))
def test_nothing_of_an_admitted_run_is_ever_swept(world: World, state: RunState) -> None:
    """Whatever its admission says: a run that was published, and may have done something, stays."""
    run = admit(world, PLAN, KEY)
    graph = graph_of(world)
    commit_one(graph.runs, Change(run.id, lambda now: replace(now, state=state)))
    graph.admissions.write(
        [(admission_of(world), replace(admission_of(world), state=AdmissionState.REFUSED))]
    )
    tasks = graph.tasks.counts(run.id)

    gone = sweep_unpublished(graph, run.id)

    assert gone == (sum(tasks) if state is RunState.REFUSED else 0)
    assert graph.tasks.counts(run.id) == ((0, 0) if gone else tasks)


def test_the_cluster_manager_leaves_a_good_run_alone_beside_a_refused_one(world: World) -> None:
    admission = accepted(world)
    saga(world, refusing).carry_out(admission)
    run = admit(world, PLAN, "good")
    world.fast_path()
    world.pass_time(world.timings.reconcile_every_s * 3)

    assert state_of(world, run) is RunState.DONE
    assert graph_of(world).tasks.state_counts(run.id) == {TaskState.DONE: 3}


def test_a_refused_request_is_refused_again(world: World) -> None:
    saga(world, refusing).carry_out(accepted(world))
    with pytest.raises(InvalidGraph, match="something else"):
        home(world).services.intake.admit(PLAN, KEY)
