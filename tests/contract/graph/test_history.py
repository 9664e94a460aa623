"""All that is recorded, in pages, on every kind of server."""

from __future__ import annotations

from dataclasses import replace

from region_scheduler.domain.ids import RunId, TaskId, task_id
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import SCHEMA, EventKind
from region_scheduler.drivers.arango.graph import ArangoGraph
from region_scheduler.ports.history import Before, Deed, Kind
from tests.contract.graph.samples import (
    KINDS,
    a_run,
    a_slot,
    a_zone,
    an_admission,
    an_entry,
    an_instance,
    put,
    put_graph,
)
from tests.unit.domain.samples import RUN

S = TaskState
NEWER = SCHEMA + 1


def test_a_task_comes_with_its_direct_predecessors_each_once(graph: ArangoGraph) -> None:
    tasks = put_graph(
        graph,
        [("a", "c"), ("b", "c"), ("c", "d")],
        {"a": S.DONE, "b": S.READY, "c": S.PENDING, "d": S.PENDING},
    )
    put_graph(graph, [("a", "c")], {"a": S.DONE, "c": S.PENDING}, RunId("other"))

    (page,) = graph.history.tasks(RUN)

    assert [record.task for record in page] == sorted(tasks.values(), key=lambda task: task.id)
    before = {record.task.spec.name: record.before for record in page}
    assert {one.id for one in before["c"]} == {tasks["a"].id, tasks["b"].id}
    assert (before["a"], before["b"]) == ((), ())
    a = tasks["a"]
    known = Before(id=a.id, rev=a.rev, state="done", token=str(a.token))
    assert known in before["c"]


def test_a_predecessor_that_is_gone_or_was_cleared_says_so(graph: ArangoGraph) -> None:
    tasks = put_graph(graph, [("a", "c"), ("b", "c")], {"a": S.DONE, "b": S.DONE, "c": S.PENDING})
    graph.tasks.remove([tasks["a"]])
    b = tasks["b"]
    entry = replace(b.history[0], kind=EventKind.CLEARED, token=b.token.left())
    graph.tasks.write([(b, replace(b, history=(entry,)))])

    (page,) = graph.history.tasks(RUN)

    by_id = {one.id: one for record in page for one in record.before}
    assert by_id[tasks["a"].id] == Before(id=tasks["a"].id)
    assert by_id[b.id].cleared == b.token.number + 1


def test_a_big_run_comes_in_pages_lowest_id_first(graph: ArangoGraph) -> None:
    names = [f"t{n}" for n in range(1_001)]
    tasks = put_graph(graph, [], dict.fromkeys(names, S.PENDING))

    pages = list(graph.history.tasks(RUN))

    assert [len(page) for page in pages] == [1_000, 1]
    assert [record.task.id for page in pages for record in page] == sorted(
        task.id for task in tasks.values()
    )
    assert graph.history.counts(RUN) == (1_001, 0)


def test_every_kind_is_read_whole(graph: ArangoGraph) -> None:
    runs = put(graph, "runs", [a_run("r2"), a_run("r1")])
    (zone,) = put(graph, "zones", [a_zone()])
    (region,) = put(graph, "regions", [KINDS["regions"]()])
    instances = put(graph, "instances", [an_instance("w:1"), KINDS["instances"]()])
    (slot,) = put(graph, "slots", [a_slot()])
    (admission,) = put(graph, "admissions", [an_admission()])
    (entry,) = put(graph, "audit", [an_entry()])
    history = graph.history

    assert list(history.runs()) == [runs[1], runs[0]]
    assert list(history.runs(RunId("r2"))) == [runs[0]]
    assert list(history.runs(RunId("r3"))) == []
    assert (history.zone(zone.id), history.zone("none")) == (zone, None)
    assert list(history.regions()) == [region]
    assert list(history.instances()) == sorted(instances, key=lambda one: one.id)
    assert list(history.slots()) == [[slot]]
    assert list(history.audit()) == [Deed(entry.actor, entry.action, entry.thing, entry.at)]
    (summary,) = history.admissions()
    assert (summary.id, summary.rev, summary.run) == (admission.id, admission.rev, admission.run)
    assert summary.task_count == len(admission.plan.tasks)


def test_what_only_a_newer_version_understands_is_passed_over(graph: ArangoGraph) -> None:
    put(graph, "runs", [a_run("r1"), replace(a_run("r2"), schema=NEWER)])
    tasks = put_graph(graph, [], {"a": S.PENDING, "b": S.PENDING})
    graph.tasks.write([(tasks["b"], replace(tasks["b"], schema=NEWER))])

    assert [run.id for run in graph.history.runs()] == ["r1"]
    assert [record.task.id for (record,) in graph.history.tasks(RUN)] == [tasks["a"].id]
    none = task_id(RUN, "none")
    found = graph.history.owners([tasks["a"].id, tasks["b"].id, none])
    assert found == {tasks["a"].id: tasks["a"], tasks["b"].id: None}


def test_revisions_say_what_is_there_now(graph: ArangoGraph) -> None:
    (run,) = put(graph, "runs", [a_run("r1")])
    asked = [run.id, "none"]

    assert graph.history.revisions(Kind.RUNS, asked) == [run.rev, ""]
    (written,) = graph.runs.write([(run, replace(run, reason="moved"))])
    assert written.value is not None
    assert graph.history.revisions(Kind.RUNS, asked) == [written.value.rev, ""]
    assert graph.history.revisions(Kind.TASKS, [TaskId("tasks/none.x")]) == [""]
