"""What follows an end happens once, however often and by whomever it is asked for."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.assembly.services import Stores
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.ids import ClaimId, Incarnation, RunId, TaskId
from region_scheduler.domain.run import Run
from region_scheduler.domain.slot import SlotHolder
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import EventKind, Exit, ExitKind, Holder, LockNeed, Task
from region_scheduler.domain.transitions import claim, complete, start
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.ports.records import GraphStores
from region_scheduler.resources.assign import assign_slots, slots_of
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit
from tests.simulation.scenarios import HOME, LOCK, a_plan, graph_of, spec
from tests.unit.domain.samples import AT, WORKER


class Woken:
    """Takes wake-ups down."""

    def __init__(self) -> None:
        self.regions: list[str] = []

    def wake(self, region: str) -> None:
        self.regions.append(region)


@pytest.fixture
def woken() -> Woken:
    return Woken()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, (HOME, "us-east"))


@pytest.fixture
def graph(world: World) -> GraphStores:
    return graph_of(world)


@pytest.fixture
def settler(world: World, graph: GraphStores, woken: Woken) -> Settler:
    return Settler(graph, woken, world.clock, "settler")


def named(graph: GraphStores, run: Run, name: str) -> Task:
    found = graph.tasks.named(run.id, name)
    assert found is not None
    return found


def claimed(graph: GraphStores, task: Task, number: int = 1) -> Task:
    claim_id = ClaimId(f"{task.id}-{number}")
    take = partial(
        claim, claim_id=claim_id, scheduler=Incarnation("s:1"), region=task.region, at=AT
    )
    taken: Task = commit_one(graph.tasks, Change(task.id, take))
    return taken


def begun(graph: GraphStores, task: Task) -> Task:
    begin = partial(start, token=task.token, holder=WORKER, at=AT)
    running: Task = commit_one(graph.tasks, Change(task.id, begin))
    return running


def finished(graph: GraphStores, run: Run, name: str, kind: ExitKind = ExitKind.OK) -> Task:
    """Run a ready task to its end, without what follows."""
    task = begun(graph, claimed(graph, named(graph, run, name)))
    holder = task.holder
    assert isinstance(holder, Holder)
    end = partial(complete, token=task.token, holder=holder, ended=Exit(kind=kind), at=AT)
    ended: Task = commit_one(graph.tasks, Change(task.id, end))
    return ended


JOIN = a_plan([spec("a"), spec("b", "us-east"), spec("c", "us-east")], "a>c", "b>c")


def test_a_dependent_is_unlocked_when_the_last_of_its_predecessors_is_settled(
    world: World, graph: GraphStores, settler: Settler, woken: Woken
) -> None:
    run = admit(world, JOIN)
    first = settler.settle([finished(graph, run, "a")])
    assert first.unlocked == ()
    assert named(graph, run, "c").state is TaskState.PENDING
    woken.regions.clear()

    second = settler.settle([finished(graph, run, "b")])

    assert [task.spec.name for task in second.unlocked] == ["c"]
    assert woken.regions == ["us-east"]
    assert second.ended == ()


def test_two_that_complete_together_unlock_their_dependent_whoever_settles(
    world: World, graph: GraphStores, settler: Settler
) -> None:
    run = admit(world, JOIN)
    both = [finished(graph, run, "a"), finished(graph, run, "b")]

    settler.settle(both[:1])

    assert named(graph, run, "c").state is TaskState.READY


def test_settling_again_changes_nothing(world: World, graph: GraphStores, settler: Settler) -> None:
    run = admit(world, JOIN)
    ends = [finished(graph, run, "a"), finished(graph, run, "b")]
    settler.settle(ends)
    before = named(graph, run, "c")

    again = settler.settle(ends)

    assert named(graph, run, "c") == before
    assert again.unlocked == ()
    entries = [e.kind for e in before.history]
    assert entries == [EventKind.UNLOCKED]


def test_edges_that_are_not_visible_yet_unlock_nothing(
    world: World, graph: GraphStores, settler: Settler
) -> None:
    """A dependent says how many predecessors it needs: fewer found means not all are seen."""
    run = admit(world, JOIN)

    def needs_more(task: Task) -> Task:
        return replace(task, needs=3)

    commit_one(graph.tasks, Change(named(graph, run, "c").id, needs_more))
    ends = [finished(graph, run, "a"), finished(graph, run, "b")]

    assert settler.settle(ends).unlocked == ()
    assert settler.unlock_run(run) == []
    assert settler.finish(run.id) is None


def test_a_dependent_that_moved_after_it_was_read_is_looked_at_again(
    world: World, graph: GraphStores, woken: Woken
) -> None:
    """As a clear would do: its revision moves, and with it what its unlock rests on."""
    run = admit(world, JOIN)
    ends = [finished(graph, run, "a"), finished(graph, run, "b")]
    dependent = named(graph, run, "c").id
    moves = [1, 1]
    asked: list[str] = []

    def interfere(point: str, call: partial[Any]) -> Any:
        asked.append(point)
        if point == "tasks.write" and moves:
            moves.pop()
            commit_one(graph.tasks, Change(dependent, lambda t: replace(t, seq=t.seq + 1)))
        return call()

    settler = Settler(Stores.of(graph, interfere), woken, world.clock, "settler")
    settler.settle(ends)

    assert named(graph, run, "c").state is TaskState.READY
    assert asked.count("tasks.unlocked_by") == 3


def test_only_what_exactly_the_task_and_token_hold_is_released(
    world: World, graph: GraphStores, settler: Settler, woken: Woken
) -> None:
    locks = (LockNeed(LOCK),)
    run = admit(world, a_plan([spec("a", locks=locks), spec("b", locks=locks)]))
    task = claimed(graph, named(graph, run, "a"))
    slots = slots_of(graph.slots, locks)
    assert assign_slots(graph.slots, [task], slots)[0].slots
    running = begun(graph, task)
    assert settler.release([running]) == [], "its holder has it by right"
    end = partial(complete, token=task.token, holder=WORKER, ended=Exit(kind=ExitKind.OK), at=AT)
    done = commit_one(graph.tasks, Change(task.id, end))
    woken.regions.clear()

    assert [slot.resource for slot in settler.settle([done]).freed] == [LOCK]
    assert woken.regions == [HOME, "us-east"], "who waits for a lock may sit anywhere"

    other = claimed(graph, named(graph, run, "b"))
    assert assign_slots(graph.slots, [other], slots_of(graph.slots, locks))[0].slots
    settler.settle([done])
    (slot,) = graph.slots.taken()
    assert slot.holder == SlotHolder(other.id, other.token), "a stranger's slot stays"


@pytest.mark.parametrize(
    ("ends", "state"),
    [
        ({"a": ExitKind.OK, "b": ExitKind.UNCHANGED}, RunState.DONE),
        ({"a": ExitKind.OK, "b": ExitKind.PERMANENT}, RunState.FAILED),
        ({"a": ExitKind.PERMANENT, "b": ExitKind.CANCELLED}, RunState.FAILED),
        ({"a": ExitKind.OK, "b": ExitKind.AWAIT}, RunState.RUNNING),
        ({"a": ExitKind.OK, "b": ExitKind.RETRYABLE}, RunState.RUNNING),
        ({"a": ExitKind.OK}, RunState.RUNNING),
    ],
)
def test_a_run_ends_when_nothing_can_move(
    world: World,
    graph: GraphStores,
    settler: Settler,
    ends: dict[str, ExitKind],
    state: RunState,
) -> None:
    run = admit(world, a_plan([spec("a"), spec("b")]))
    for name, kind in ends.items():
        settler.settle([finished(graph, run, name, kind)])

    (standing,) = graph.runs.read([run.id])
    assert standing is not None
    assert standing.state is state
    assert (standing.ended_at is None) is (state is RunState.RUNNING)


def test_the_end_of_a_run_is_written_on_what_was_read(
    world: World, graph: GraphStores, woken: Woken
) -> None:
    """A round that was opened meanwhile is not ended by a count of the round before."""
    run = admit(world, a_plan([spec("a")]))
    finished(graph, run, "a", ExitKind.PERMANENT)

    times = [1]

    def open_meanwhile(point: str, call: partial[Any]) -> Any:
        if point == "runs.write" and times:
            times.pop()
            commit_one(graph.runs, Change(run.id, lambda r: replace(r, round=r.round + 1)))
        return call()

    settler = Settler(Stores.of(graph, open_meanwhile), woken, world.clock, "settler")

    assert settler.finish(run.id) is None
    (standing,) = graph.runs.read([run.id])
    assert standing is not None
    assert standing.state is RunState.RUNNING


def test_a_run_that_does_not_exist_is_not_ended(settler: Settler) -> None:
    assert settler.finish(RunId("nowhere")) is None


def test_nothing_of_an_ended_run_is_unlocked(
    world: World, graph: GraphStores, settler: Settler
) -> None:
    run = admit(world, a_plan([spec("a"), spec("b")], "a>b"))
    finished(graph, run, "a")

    assert settler.unlock_run(replace(run, state=RunState.CANCELLED)) == []
    assert [t.spec.name for t in settler.unlock_run(run)] == ["b"]
    assert settler.unlock_run(run) == []
    assert TaskId(named(graph, run, "b").id) in graph.tasks.marks_claimable(HOME)
