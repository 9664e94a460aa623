"""The mender holds both tables against the graph, on each store, whatever goes wrong meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Engine

from region_scheduler.assembly.instrumented import Hook, instrumented
from region_scheduler.assembly.services import Stores
from region_scheduler.commit.gate import Change, commit
from region_scheduler.domain.ids import task_id
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import CLAIMABLE, RunState, TaskState
from region_scheduler.domain.task import SCHEMA, Task
from region_scheduler.drivers.arango.graph import ArangoGraph
from region_scheduler.drivers.sql.backlog import SqlBacklog
from region_scheduler.drivers.sql.metadata import SqlMetadata
from region_scheduler.drivers.sql.tables import METADATA
from region_scheduler.errors import OutcomeUnknown, RegionSchedulerError, Unavailable
from region_scheduler.ports.backlog import Backlog, BacklogRow, Metadata, TaskRow
from region_scheduler.ports.records import GraphStores
from region_scheduler.scheduling.mend import Mended, Mender
from region_scheduler.simulation.faults import Fault, Faults, Kind
from region_scheduler.simulation.steps import Crash
from tests.contract.graph.samples import a_run, put, put_graph
from tests.engines import EngineInProcess, empty
from tests.unit.domain.samples import AT, RUN, a_spec, a_task

HERE, ELSEWHERE = "eu", "us"
NOW = AT + timedelta(hours=1)
S = TaskState


class StandingClock:
    """A clock that stands still."""

    def monotonic(self) -> float:
        return 1.0

    def now(self) -> Any:
        return NOW


@pytest.fixture(scope="module")
def server() -> Iterator[EngineInProcess]:
    server = EngineInProcess()
    yield server
    server.close()


@pytest.fixture(scope="module")
def _opened(server: EngineInProcess) -> ArangoGraph:
    return server.open(ELSEWHERE)  # its follower can be frozen, the leader is in another region


@pytest.fixture
def graph(server: EngineInProcess, _opened: ArangoGraph) -> Iterator[ArangoGraph]:
    empty(_opened)
    yield _opened
    server.heal()


@dataclass
class Two:
    """The two stores of a region, and the run whose tasks they are about."""

    graph: ArangoGraph
    backlog: Backlog
    metadata: Metadata

    def mender(self, hook: Hook | None = None) -> Mender:
        graph: GraphStores = self.graph
        backlog, metadata = self.backlog, self.metadata
        if hook is not None:
            graph = Stores.of(graph, hook)
            backlog = instrumented(backlog, "backlog", hook)
            metadata = instrumented(metadata, "metadata", hook)
        return Mender(HERE, graph, backlog, metadata, StandingClock())

    def differences(self) -> list[str]:
        """Return, in words, where rows and tasks do not agree."""
        tasks = self.graph.tasks.of_run(RUN)
        here = [t for t in tasks if t.region == HERE and t.schema == SCHEMA]
        rows = [BacklogRow.of(t) for t in here if t.state in CLAIMABLE]
        held = {row.task: row for row in self.backlog.top({"acme": 1_000}, 9e12)}
        found = [f"backlog: {row}" for row in rows if held.pop(row.task, None) != row]
        found += [f"left over: {row}" for row in held.values()]
        marks = dict(self.metadata.marks(RUN))
        found += [f"metadata: {t.spec.name}" for t in here if marks.pop(t.id, None) != t.seq]
        return [*found, *(f"left over: metadata of {id_}" for id_ in marks)]


@pytest.fixture
def two(graph: ArangoGraph, backlog: Backlog, metadata: Metadata) -> Two:
    put(graph, "runs", [a_run(RUN, state=RunState.RUNNING)])
    return Two(graph, backlog, metadata)


def row_of(task: Task, seq: int, **more: Any) -> BacklogRow:
    return BacklogRow.of(task)._replace(seq=seq, **more)


def meta_of(task: Task, seq: int, **more: Any) -> TaskRow:
    return TaskRow.of(task)._replace(seq=seq, **more)


def disarray(two: Two) -> dict[str, Task]:
    """Fill both stores so that they differ in every way; return the tasks by name."""
    states = {
        "right": S.IN_DOUBT,
        "missing": S.READY,
        "behind": S.READY,
        "ahead": S.READY,
        "claimed": S.CLAIMED,
        "pending": S.PENDING,
    }
    tasks = put_graph(two.graph, [], states)
    spec = a_spec("moved", region=ELSEWHERE)
    (moved,) = put(
        two.graph,
        "tasks",
        [replace(a_task("moved", spec=spec), region=ELSEWHERE, state=S.READY, seq=5)],
    )
    tasks |= {"moved": moved, "ghost": replace(moved, id=task_id(RUN, "ghost"), region=HERE)}
    past = NOW.timestamp() - 60
    two.backlog.add(
        [
            row_of(tasks["right"], tasks["right"].seq),
            row_of(tasks["behind"], 0, priority=7),
            row_of(tasks["ahead"], 99, priority=7),
            row_of(tasks["claimed"], 0),
            row_of(tasks["moved"], 4),
            row_of(tasks["ghost"], 3),
        ],
        past,
    )
    two.metadata.record(
        [
            meta_of(tasks["right"], tasks["right"].seq),
            meta_of(tasks["behind"], 0),
            meta_of(tasks["ahead"], 99, state="done"),
            meta_of(tasks["claimed"], tasks["claimed"].seq),
            meta_of(tasks["moved"], 4, region=HERE),
            meta_of(tasks["ghost"], 3),
        ]
    )
    return tasks


def move(two: Two, *moves: tuple[Task, TaskState]) -> None:
    """Write tasks at the leader, as others do."""
    outcomes = commit(
        two.graph.tasks, [Change(task.id, partial(moved_to, state)) for task, state in moves]
    )
    assert all(outcome.is_ours for outcome in outcomes)


def moved_to(state: TaskState, task: Task) -> Task:
    return replace(task, state=state, seq=task.seq + 1)


def end_run(two: Two) -> None:
    def ended(run: Run) -> Run:
        return replace(run, state=RunState.DONE)

    assert commit(two.graph.runs, [Change(RUN, ended)])[0].is_ours


def test_whatever_differs_is_mended_and_told(two: Two) -> None:
    disarray(two)
    assert len(two.differences()) > 8

    mended = two.mender().tick()

    assert two.differences() == []
    # recorded: missing, pending, behind, ahead; dropped: claimed, moved, ghost.
    assert mended == Mended(added=1, dropped=3, renewed=2, recorded=4, forgotten=2)
    assert not mended.is_nothing
    assert two.mender().tick().is_nothing


def test_a_rebuilt_store_is_as_a_mended_one(two: Two) -> None:
    disarray(two)

    told = two.mender().rebuild()

    assert two.differences() == []
    assert told == Mended(added=4, recorded=6)


def test_a_row_that_was_behind_keeps_its_due_time(two: Two) -> None:
    tasks = put_graph(two.graph, [], {"old": S.READY, "young": S.READY})
    two.backlog.add([row_of(tasks["young"], tasks["young"].seq)], NOW.timestamp() - 5)
    two.backlog.add([row_of(tasks["old"], 0)], NOW.timestamp() - 9)

    assert two.mender().tick().renewed == 1

    found = two.backlog.top({"acme": 9}, NOW.timestamp())
    assert [row.task for row in found] == [tasks["old"].id, tasks["young"].id]


def test_after_the_graph_was_restored_to_an_older_state_the_rows_go_back_with_it(two: Two) -> None:
    tasks = put_graph(two.graph, [], {"a": S.READY, "b": S.READY})
    mender = two.mender()
    mender.tick()
    later = [replace(t, seq=t.seq + 7) for t in tasks.values()]
    two.backlog.add([BacklogRow.of(t) for t in later], NOW.timestamp())
    two.metadata.record([TaskRow.of(replace(t, state=S.DONE)) for t in later])

    assert mender.tick().renewed == 2
    assert two.mender().tick().recorded == 2
    assert two.differences() == []


def test_a_task_that_only_a_newer_version_understands_is_left_alone(two: Two) -> None:
    tasks = put_graph(two.graph, [], {"new": S.READY, "strange": S.READY, "rowed": S.READY})
    (key, strange, rowed) = (task.id.partition("/")[2] for task in tasks.values())
    stored = two.graph.db.collection("tasks")
    two.backlog.add([row_of(tasks["rowed"], 0)], NOW.timestamp())
    stored.update({"_key": key, "schema": SCHEMA + 1}, check_rev=False)
    stored.update({"_key": rowed, "schema": SCHEMA + 1}, check_rev=False)
    stored.update({"_key": strange, "region": ELSEWHERE, "state": "resting"}, check_rev=False)
    other = put_graph(two.graph, [], {"other": S.READY})["other"]

    assert two.mender().tick() == Mended(added=1, recorded=1)

    assert two.backlog.marks() == {tasks["rowed"].id: 0, other.id: other.seq}
    assert two.metadata.marks(RUN) == {other.id: other.seq}


def test_a_stale_view_of_the_graph_mends_nothing_wrongly(two: Two, server: EngineInProcess) -> None:
    tasks = put_graph(two.graph, [], {"taken": S.READY, "stays": S.READY, "comes": S.PENDING})
    mender = two.mender()
    mender.tick()
    server.change(ELSEWHERE, is_frozen=True)
    move(two, (tasks["taken"], S.CLAIMED), (tasks["comes"], S.READY))
    # As its scheduler did: the row of the claimed task is gone, the unlocked one has a row.
    two.backlog.remove([(tasks["taken"].id, tasks["taken"].seq)])
    (comes,) = two.graph.tasks.read([tasks["comes"].id])
    assert comes is not None
    two.backlog.add([BacklogRow.of(comes)], NOW.timestamp())
    assert two.graph.tasks.marks_claimable(HERE).keys() == {tasks["taken"].id, tasks["stays"].id}

    mended = mender.tick()

    assert (mended.added, mended.dropped, mended.renewed) == (0, 0, 0)
    assert set(two.backlog.marks()) == {tasks["stays"].id, tasks["comes"].id}


def test_only_every_sixth_call_looks_at_the_metadata_unless_it_is_gone(two: Two) -> None:
    (task,) = put_graph(two.graph, [], {"a": S.PENDING}).values()
    mender = two.mender()
    assert mender.tick().recorded == 1
    two.metadata.record([meta_of(task, task.seq + 1)])

    assert [mender.tick().recorded for _ in range(6)] == [0, 0, 0, 0, 0, 1]

    two.metadata.clear()
    assert mender.tick().recorded == 1


def test_a_run_that_ended_since_the_last_look_is_looked_at_once_more(two: Two) -> None:
    (task,) = put_graph(two.graph, [], {"a": S.PENDING}).values()
    mender = two.mender()
    mender.tick()
    move(two, (task, S.DONE))
    end_run(two)

    assert sum(mender.tick().recorded for _ in range(6)) == 1
    assert two.metadata.states(RUN) == {"done": 1}


def test_a_store_that_was_lost_is_made_anew_and_refilled_with_ended_runs_too(
    two: Two, engine: Engine
) -> None:
    disarray(two)
    mender = two.mender()
    mender.tick()
    end_run(two)
    METADATA.drop_all(engine)
    with pytest.raises(Unavailable):
        two.backlog.depth()

    mended = mender.tick()

    assert two.differences() == []
    assert mended == Mended(added=4, recorded=6)


def test_more_tasks_than_one_part_are_mended_in_one_call(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("region_scheduler.scheduling.mend._PART", 7)
    put_graph(two.graph, [], {f"t{n:02}": S.READY for n in range(40)})

    assert two.mender().tick() == Mended(added=40, recorded=40)
    assert two.differences() == []


def test_two_menders_at_once_agree_with_the_graph_in_the_end(two: Two, engine: Engine) -> None:
    disarray(two)
    put_graph(two.graph, [], {f"t{n:02}": S.READY for n in range(60)})
    failures: list[Exception] = []

    def mend() -> None:
        own = Two(two.graph, SqlBacklog(engine), SqlMetadata(engine))
        try:
            for _ in range(3):
                own.mender().tick()
        except RegionSchedulerError as failed:
            failures.append(failed)

    threads = [threading.Thread(target=mend) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert two.differences() == []


@pytest.mark.parametrize("point", ["backlog.marks", "tasks.known", "backlog.remove", "backlog.add"])
def test_a_task_that_moves_and_another_mender_in_the_midst_of_one_do_no_harm(
    two: Two, point: str
) -> None:
    tasks = disarray(two)
    seen: list[int] = []

    def meanwhile(at: str, call: partial[Any]) -> Any:
        if at == point and not seen:
            seen.append(1)
            move(two, (tasks["missing"], S.CLAIMED), (tasks["claimed"], S.READY))
            two.mender().tick()
        return call()

    two.mender(meanwhile).tick()
    two.mender().tick()

    assert seen
    assert two.differences() == []


ACTS: dict[str, Callable[[Mender], Mended]] = {"tick": Mender.tick, "rebuild": Mender.rebuild}


@pytest.mark.parametrize("act", list(ACTS))
def test_whatever_goes_wrong_at_whichever_call_the_next_one_mends_it(
    two: Two, engine: Engine, act: str
) -> None:
    """Each read and write fails, is lost before or after, comes twice, or is the last of all."""
    faults = list(survey(two, act))
    assert {fault.kind for fault in faults} == set(Kind)
    harmful: list[str] = []
    for fault in faults:
        start_over(two)
        struck = Faults(fault, lambda: METADATA.drop_all(engine), is_armed=True)
        with suppress(Crash, Unavailable, OutcomeUnknown):
            ACTS[act](two.mender(struck))
        two.mender().tick()
        if not struck.has_struck or two.differences():
            harmful.append(f"{fault}: {two.differences()}")

    assert harmful == []


def survey(two: Two, act: str) -> Iterator[Fault]:
    """Return every fault that could happen in one call."""
    start_over(two)
    calls = Faults(is_armed=True)
    ACTS[act](two.mender(calls))
    return calls.all()


def start_over(two: Two) -> None:
    two.backlog.prepare()
    two.backlog.clear()
    two.metadata.clear()
    empty(two.graph)
    put(two.graph, "runs", [a_run(RUN, state=RunState.RUNNING)])
    disarray(two)
