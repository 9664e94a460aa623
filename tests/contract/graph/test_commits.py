"""The commit gate on the store itself: races have one winner, and lost answers lose nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest

from region_scheduler.commit.create import create
from region_scheduler.commit.gate import Change, Fate, Outcome, commit, commit_one
from region_scheduler.domain.ids import ClaimId, Incarnation
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import Exit, ExitKind, Task
from region_scheduler.domain.transitions import claim, complete, start
from region_scheduler.drivers.arango.graph import ArangoGraph
from region_scheduler.embedded.arango.faults import FaultKind
from region_scheduler.errors import Fenced, LostRace, OutcomeUnknown
from tests.contract.graph.samples import a_run, put, put_graph
from tests.engines import GraphServer
from tests.unit.domain.samples import AT, OTHER, WORKER

F = FaultKind
DOCUMENTS = "/_api/document/"


def claiming(who: str, number: int = 0) -> Callable[[Task], Task]:
    claim_id = ClaimId(f"{who}/{number}")
    return lambda task: claim(task, claim_id, Incarnation(who), "eu", AT)


def test_of_many_schedulers_exactly_one_wins_each_task(graph: ArangoGraph) -> None:
    names = [f"t{n}" for n in range(12)]
    tasks = put_graph(graph, [], dict.fromkeys(names, TaskState.READY))
    seen = list(tasks.values())

    def one_scheduler(who: str) -> list[Outcome[Task]]:
        return commit(
            graph.tasks,
            [Change(task.id, claiming(who, n), task) for n, task in enumerate(seen)],
        )

    schedulers = [f"s:{n}" for n in range(6)]
    with ThreadPoolExecutor(len(schedulers)) as pool:
        results = dict(zip(schedulers, pool.map(one_scheduler, schedulers), strict=True))
    wins: Counter[str] = Counter()
    for who, outcomes in results.items():
        for n, outcome in enumerate(outcomes):
            if outcome.is_ours:
                wins[seen[n].id] += 1
                assert outcome.value is not None
                assert outcome.value.token.claim_id == f"{who}/{n}"
            else:
                assert isinstance(outcome.error, LostRace)

    assert wins == dict.fromkeys((t.id for t in tasks.values()), 1)
    assert [task.token.number for task in graph.tasks.held("eu")] == [1] * len(names)


def signing(who: str) -> Callable[[Run], Run]:
    def decide(run: Run) -> Run:
        signatures = run.reason.split()
        return run if who in signatures else replace(run, reason=f"{run.reason} {who}".strip())

    return decide


def test_no_writer_overwrites_another(graph: ArangoGraph) -> None:
    put(graph, "runs", [a_run()])
    writers = [f"w{n}" for n in range(8)]

    def sign(who: str) -> Outcome[Run]:
        while True:
            (outcome,) = commit(graph.runs, [Change("run1", signing(who))])
            if not isinstance(outcome.error, LostRace):
                return outcome

    with ThreadPoolExecutor(len(writers)) as pool:
        outcomes = list(pool.map(sign, writers))
    (run,) = graph.runs.read(["run1"])

    assert {o.fate for o in outcomes} == {Fate.COMMITTED}
    assert run is not None
    assert sorted(run.reason.split()) == writers


@pytest.mark.parametrize("kind", [F.ANSWER_DROPPED, F.NOT_SENT, F.CONFLICT, F.TIMED_OUT])
def test_one_fault_on_the_way_changes_nothing_in_the_end(
    engine: GraphServer, faulty_graph: ArangoGraph, kind: FaultKind
) -> None:
    (run,) = put(faulty_graph, "runs", [a_run()])
    engine.inject(kind, path=DOCUMENTS, method="PATCH", times=1)
    (outcome,) = commit(faulty_graph.runs, [Change("run1", signing("me"), run)])
    if kind is F.NOT_SENT and engine.tells_not_sent:
        assert outcome.fate is Fate.REFUSED
        (outcome,) = commit(faulty_graph.runs, [Change("run1", signing("me"), run)])

    assert outcome.is_ours
    assert faulty_graph.runs.read(["run1"])[0] == outcome.value
    assert outcome.value is not None
    assert outcome.value.reason == "me"


def test_conflicts_without_a_winner_are_bounded(
    engine: GraphServer, faulty_graph: ArangoGraph
) -> None:
    put(faulty_graph, "runs", [a_run()])
    engine.inject(F.CONFLICT, path=DOCUMENTS, method="PATCH")
    with pytest.raises(LostRace):
        commit_one(faulty_graph.runs, Change("run1", signing("me")))


def test_answers_lost_for_good_are_bounded_and_unknown(
    engine: GraphServer, faulty_graph: ArangoGraph
) -> None:
    put(faulty_graph, "runs", [a_run()])
    engine.inject(F.UNAVAILABLE, path=DOCUMENTS, method="PATCH")
    with pytest.raises(OutcomeUnknown):
        commit_one(faulty_graph.runs, Change("run1", signing("me")))
    engine.heal()

    assert commit_one(faulty_graph.runs, Change("run1", signing("me"))).reason == "me"


def test_a_task_goes_its_way_once_while_answers_are_lost(
    engine: GraphServer, faulty_graph: ArangoGraph
) -> None:
    """Every other write meets a fault; each act is repeated as the protocol says."""
    tasks = put_graph(faulty_graph, [], {f"t{n}": TaskState.READY for n in range(10)})
    engine.inject(F.ANSWER_DROPPED, path=DOCUMENTS, method="PATCH", rate=0.3)
    engine.inject(F.CONFLICT, path=DOCUMENTS, method="PATCH", rate=0.2)
    engine.inject(F.TIMED_OUT, path=DOCUMENTS, method="PATCH", rate=0.2, is_applied=True)
    engine.inject(F.RESIGNED, path=DOCUMENTS, method="PATCH", rate=0.1)
    for task in tasks.values():
        token = _through(faulty_graph, task, claiming("s:1")).token
        _through(faulty_graph, task, partial(start, token=token, holder=WORKER, at=AT))
        with pytest.raises(Fenced):
            _through(faulty_graph, task, partial(start, token=token, holder=OTHER, at=AT))
        ended = Exit(kind=ExitKind.OK)
        _through(
            faulty_graph, task, partial(complete, token=token, holder=WORKER, ended=ended, at=AT)
        )
    engine.heal()

    for found in faulty_graph.tasks.read([task.id for task in tasks.values()]):
        assert found is not None
        assert (found.state, found.attempt, found.token.number) == (TaskState.DONE, 1, 1)
        assert [e.kind.value for e in found.history[-3:]] == ["claimed", "started", "ended"]


def _through(graph: ArangoGraph, task: Task, decide: Callable[[Task], Task]) -> Task:
    for _ in range(50):
        try:
            return commit_one(graph.tasks, Change(task.id, decide))
        except (OutcomeUnknown, LostRace):
            continue
    raise AssertionError("never came through")


def test_of_many_creators_one_is_first_and_all_find_the_same(graph: ArangoGraph) -> None:
    def creator(n: int) -> tuple[bool, str]:
        (created,) = create(graph.runs, [a_run(reason=f"by {n}")])
        return created.is_new, created.value.reason

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(creator, range(6)))

    assert sum(is_new for is_new, _ in found) == 1
    assert len({reason for _, reason in found}) == 1
