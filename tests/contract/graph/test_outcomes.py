"""What a write or a read is told when something goes wrong, and what is true afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from region_scheduler.commit.create import create
from region_scheduler.domain.run import Run
from region_scheduler.drivers.arango.graph import ArangoGraph
from region_scheduler.embedded.arango.faults import FaultKind
from region_scheduler.errors import Unavailable
from region_scheduler.ports.documents import WriteResult
from tests.contract.graph.samples import a_run, put, put_graph
from tests.engines import GraphServer
from tests.unit.domain.samples import IN_STATE, a_task

F = FaultKind
PATH = "/_api/document/runs"
NOTHING_DONE = [F.READ_ONLY, F.NOT_LEADER]
NOBODY_KNOWS = [F.RESIGNED, F.UNAVAILABLE, F.TIMED_OUT]


def changed(run: Run) -> tuple[Run, Run]:
    return run, replace(run, reason="changed")


def standing(graph: ArangoGraph) -> str:
    (run,) = graph.runs.read(["run1"])
    assert run is not None
    return run.reason


@pytest.mark.parametrize("kind", NOTHING_DONE)
def test_nothing_was_done_is_unavailable(
    engine: GraphServer, faulty_graph: ArangoGraph, kind: FaultKind
) -> None:
    (run,) = put(faulty_graph, "runs", [a_run()])
    engine.inject(kind, path=PATH, times=1)
    with pytest.raises(Unavailable):
        faulty_graph.runs.write([changed(run)])

    assert standing(faulty_graph) == ""
    assert faulty_graph.runs.write([changed(run)])[0].result is WriteResult.APPLIED


@pytest.mark.parametrize("kind", NOTHING_DONE)
def test_an_insert_that_was_not_done_is_unavailable(
    engine: GraphServer, faulty_graph: ArangoGraph, kind: FaultKind
) -> None:
    engine.inject(kind, path=PATH, times=1)
    with pytest.raises(Unavailable):
        faulty_graph.runs.insert([a_run()])

    assert faulty_graph.runs.read(["run1"]) == [None]


def test_a_request_that_never_arrived(engine: GraphServer, faulty_graph: ArangoGraph) -> None:
    """A connection that broke after the request was written says no more than that."""
    (run,) = put(faulty_graph, "runs", [a_run()])
    engine.inject(F.NOT_SENT, path=PATH, times=1)
    if engine.tells_not_sent:
        with pytest.raises(Unavailable):
            faulty_graph.runs.write([changed(run)])
    else:
        assert faulty_graph.runs.write([changed(run)])[0].result is WriteResult.UNKNOWN

    assert standing(faulty_graph) == ""
    assert faulty_graph.runs.write([changed(run)])[0].result is WriteResult.APPLIED


@pytest.mark.parametrize("is_applied", [True, False])
@pytest.mark.parametrize("kind", NOBODY_KNOWS)
def test_an_answer_that_does_not_say_is_unknown(
    engine: GraphServer, faulty_graph: ArangoGraph, kind: FaultKind, is_applied: bool
) -> None:
    (run,) = put(faulty_graph, "runs", [a_run()])
    engine.inject(kind, path=PATH, times=1, is_applied=is_applied)
    (written,) = faulty_graph.runs.write([changed(run)])

    assert (written.result, written.value) == (WriteResult.UNKNOWN, None)
    (again,) = faulty_graph.runs.write([changed(run)])
    assert again.result is (WriteResult.CONFLICT if is_applied else WriteResult.APPLIED)
    assert standing(faulty_graph) == "changed"


def test_a_lost_answer_is_unknown_and_its_repeat_definite(
    engine: GraphServer, faulty_graph: ArangoGraph
) -> None:
    (run,) = put(faulty_graph, "runs", [a_run()])
    engine.inject(F.ANSWER_DROPPED, path=PATH, times=1)

    assert faulty_graph.runs.write([changed(run)])[0].result is WriteResult.UNKNOWN
    assert faulty_graph.runs.write([changed(run)])[0].result is WriteResult.CONFLICT
    assert standing(faulty_graph) == "changed"


def test_a_lost_answer_to_an_insert_is_found_to_be_ours(
    engine: GraphServer, faulty_graph: ArangoGraph
) -> None:
    engine.inject(F.ANSWER_DROPPED, path=PATH, method="POST", times=1)
    (created,) = create(faulty_graph.runs, [a_run()])

    assert replace(created.value, rev="") == a_run()
    assert not created.is_new


def test_a_write_that_is_still_travelling_is_unknown(
    engine: GraphServer, faulty_graph: ArangoGraph
) -> None:
    (run,) = put(faulty_graph, "runs", [a_run()])
    engine.inject(F.LATE, path=PATH, method="PATCH", times=1, seconds=0.1)

    assert faulty_graph.runs.write([changed(run)])[0].result is WriteResult.UNKNOWN


def test_a_conflict_without_a_winner_changes_nothing(
    engine: GraphServer, faulty_graph: ArangoGraph
) -> None:
    (run,) = put(faulty_graph, "runs", [a_run()])
    engine.inject(F.CONFLICT, path=PATH, times=1)

    assert faulty_graph.runs.write([changed(run)])[0].result is WriteResult.CONFLICT
    assert standing(faulty_graph) == ""
    assert faulty_graph.runs.write([changed(run)])[0].result is WriteResult.APPLIED


def test_a_batch_that_breaks_off_tells_what_it_knows(
    engine: GraphServer, faulty_graph: ArangoGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts are sent one by one: those before the break are definite, the others unknown."""
    tasks: Any = faulty_graph.tasks
    send = tasks._collection.insert_many
    sent: list[int] = []

    def counted(documents: list[Any]) -> Any:
        sent.append(len(documents))
        if len(sent) == 2:
            engine.inject(F.READ_ONLY, path="/_api/document/tasks", times=1)
        return send(documents)

    monkeypatch.setattr(tasks._collection, "insert_many", counted)
    written = faulty_graph.tasks.insert([a_task(f"t{n}") for n in range(2_500)])

    assert sent == [1_000, 1_000]
    assert [w.result for w in written[:1_000]] == [WriteResult.APPLIED] * 1_000
    assert [w.result for w in written[1_000:]] == [WriteResult.UNKNOWN] * 1_500


def test_a_large_batch_of_which_nothing_was_sent_is_unavailable(
    engine: GraphServer, faulty_graph: ArangoGraph
) -> None:
    engine.inject(F.READ_ONLY, path="/_api/document/tasks")
    with pytest.raises(Unavailable):
        faulty_graph.tasks.insert([a_task(f"t{n}") for n in range(1_500)])


def test_edges_say_what_became_of_them(engine: GraphServer, faulty_graph: ArangoGraph) -> None:
    tasks = put_graph(faulty_graph, [], {name: a_task().state for name in "abc"})
    pairs = [(tasks["a"].id, tasks["b"].id), (tasks["b"].id, tasks["c"].id)]
    engine.inject(F.ANSWER_DROPPED, path="/_api/document/dependencies", times=1)

    assert faulty_graph.tasks.insert_edges(pairs[:1]) == [None]
    assert faulty_graph.tasks.insert_edges(pairs) == [False, True]
    engine.inject(F.NOT_LEADER, path="/_api/document/dependencies", times=1)
    with pytest.raises(Unavailable):
        faulty_graph.tasks.insert_edges(pairs)


READ_FAULTS = [F.NOT_SENT, F.ANSWER_DROPPED, F.RESIGNED, F.UNAVAILABLE, F.TIMED_OUT, F.NOT_LEADER]


@pytest.mark.parametrize("kind", READ_FAULTS)
def test_a_read_without_an_answer_is_unavailable(
    engine: GraphServer, faulty_graph: ArangoGraph, kind: FaultKind
) -> None:
    put_graph(faulty_graph, [], {"a": next(iter(IN_STATE))})
    engine.inject(kind)
    with pytest.raises(Unavailable):
        faulty_graph.runs.read(["run1"])
    with pytest.raises(Unavailable):
        faulty_graph.tasks.held("eu")
    with pytest.raises(Unavailable):
        faulty_graph.tasks.marks_claimable("eu", 10)
    engine.heal()

    assert faulty_graph.runs.read(["run1"]) == [None]


@pytest.mark.parametrize("is_refusing", [True, False])
def test_a_region_that_is_cut_off_decides_nothing(engine: GraphServer, is_refusing: bool) -> None:
    graph = engine.open("us", database="cut", read_timeout_s=0.3)
    (run,) = [w.value or a_run() for w in graph.runs.insert([a_run()])]
    engine.change("us", is_cut=True, is_refusing=is_refusing)
    try:
        with pytest.raises(Unavailable):
            graph.runs.read(["run1"])
        assert graph.runs.write([changed(run)])[0].result is WriteResult.UNKNOWN
        assert [found.id for found in graph.runs.recent(5)] == [run.id]
    finally:
        engine.heal()
        graph.db.collection("runs").truncate()
