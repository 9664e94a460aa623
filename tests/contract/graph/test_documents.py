"""The laws of `Documents`, on every kind of document and every kind of server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from region_scheduler.domain.durations import Durations
from region_scheduler.domain.grant import Grants
from region_scheduler.domain.region import Region, RegionStatus
from region_scheduler.domain.states import TaskState
from region_scheduler.drivers.arango.graph import ArangoGraph
from region_scheduler.errors import InvalidInput, Unavailable
from region_scheduler.ports.documents import WriteResult
from tests.contract.graph.samples import KINDS, a_run, a_zone, put, put_graph
from tests.unit.domain.samples import a_task, running

APPLIED, CONFLICT, MISSING = WriteResult.APPLIED, WriteResult.CONFLICT, WriteResult.MISSING


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_comes_back_as_it_was(graph: ArangoGraph, kind: str) -> None:
    value = KINDS[kind]()
    (stored,) = put(graph, kind, [value])

    assert stored.rev
    assert replace(stored, rev="") == value
    assert getattr(graph, kind).read([value.id]) == [stored]


@pytest.mark.parametrize("kind", list(KINDS))
def test_an_insert_never_overwrites(graph: ArangoGraph, kind: str) -> None:
    value = KINDS[kind]()
    (stored,) = put(graph, kind, [value])
    store = getattr(graph, kind)
    (again,) = store.insert([replace(value, schema=value.schema)])

    assert (again.result, again.value) == (CONFLICT, None)
    assert store.read([value.id]) == [stored]


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_write_is_conditional_on_the_revision_read(graph: ArangoGraph, kind: str) -> None:
    (first,) = put(graph, kind, [KINDS[kind]()])
    store = getattr(graph, kind)

    (written,) = store.write([(first, _changed(first))])
    assert written.result is APPLIED
    assert written.value.rev != first.rev
    assert replace(written.value, rev="") == replace(_changed(first), rev="")
    assert store.read([first.id]) == [written.value]

    (stale,) = store.write([(first, first)])
    assert (stale.result, stale.value) == (CONFLICT, None)
    assert store.read([first.id]) == [written.value]


def test_a_write_that_changes_nothing_moves_the_revision(graph: ArangoGraph) -> None:
    (run,) = put(graph, "runs", [a_run()])
    (written,) = graph.runs.write([(run, replace(run))])

    assert written.result is APPLIED
    assert written.value is not None
    assert written.value.rev != run.rev
    assert graph.runs.write([(run, run)])[0].result is CONFLICT


def test_reads_come_in_the_order_asked_for(graph: ArangoGraph) -> None:
    runs = put(graph, "runs", [a_run(f"run{n}") for n in range(5)])
    asked = ["run3", "gone", "run0", "run3", "run4"]

    assert graph.runs.read(asked) == [runs[3], None, runs[0], runs[3], runs[4]]
    assert graph.runs.read([]) == []


def test_elements_of_a_batch_stand_each_alone(graph: ArangoGraph) -> None:
    runs = put(graph, "runs", [a_run(f"run{n}") for n in range(3)])
    (moved,) = [w.value for w in graph.runs.write([(runs[1], replace(runs[1], reason="moved"))])]
    changes = [
        (runs[0], replace(runs[0], reason="mine")),
        (runs[1], replace(runs[1], reason="mine")),
        (a_run("gone", rev="_abc"), a_run("gone", reason="mine")),
        (runs[2], replace(runs[2], reason="mine")),
    ]

    assert [w.result for w in graph.runs.write(changes)] == [APPLIED, CONFLICT, MISSING, APPLIED]
    found = graph.runs.read(["run0", "run1", "gone", "run2"])
    assert [run and run.reason for run in found] == ["mine", "moved", None, "mine"]
    assert found[1] == moved


def test_an_insert_of_many_tells_which_were_there(graph: ArangoGraph) -> None:
    put(graph, "runs", [a_run("run1")])
    results = graph.runs.insert([a_run("run0"), a_run("run1"), a_run("run0"), a_run("run2")])

    assert [w.result for w in results] == [APPLIED, CONFLICT, CONFLICT, APPLIED]


def test_a_batch_may_be_larger_than_a_request(graph: ArangoGraph) -> None:
    tasks = put(graph, "tasks", [a_task(f"t{n}") for n in range(2_300)])
    written = graph.tasks.write([(task, replace(task, seq=1)) for task in tasks])

    assert {w.result for w in written} == {APPLIED}
    found = graph.tasks.read([task.id for task in reversed(tasks)])
    assert found == [w.value for w in reversed(written)]


def test_unknown_attributes_survive(graph: ArangoGraph) -> None:
    (run,) = put(graph, "runs", [a_run()])
    graph.db.collection("runs").update(
        {"_key": "run1", "newer": {"deep": [1]}, "digest": run.digest}, check_rev=False
    )
    (current,) = graph.runs.read(["run1"])
    assert current is not None
    (written,) = graph.runs.write([(current, replace(current, reason="why", ended_at=None))])

    assert written.result is APPLIED
    document: Any = graph.db.collection("runs").get("run1")
    assert (document["newer"], document["reason"]) == ({"deep": [1]}, "why")


def test_a_mapping_is_replaced_not_merged(graph: ArangoGraph) -> None:
    (zone,) = put(graph, "zones", [a_zone(parameters={"a": 1, "b": {"c": 2}})])
    graph.zones.write([(zone, replace(zone, parameters={"b": {"d": 3}}))])
    (found,) = graph.zones.read([zone.id])

    assert found is not None
    assert found.parameters == {"b": {"d": 3}}


def test_what_was_set_can_be_unset(graph: ArangoGraph) -> None:
    (task,) = put(graph, "tasks", [running()])
    graph.tasks.write([(task, replace(task, holder=None, history=(), reason=""))])
    (found,) = graph.tasks.read([task.id])

    assert found is not None
    assert (found.holder, found.history) == (None, ())


def test_true_is_not_one(graph: ArangoGraph) -> None:
    (zone,) = put(graph, "zones", [a_zone(parameters={"a": 1})])
    graph.zones.write([(zone, replace(zone, parameters={"a": True}))])
    (found,) = graph.zones.read([zone.id])

    assert found is not None
    assert found.parameters["a"] is True


@pytest.mark.parametrize("id_", ["", "a/b", "Zürich", "a b", "x" * 255, "a\n"])
def test_what_can_be_no_key_is_refused_before_anything_is_sent(
    graph: ArangoGraph, id_: str
) -> None:
    with pytest.raises(InvalidInput):
        graph.runs.insert([a_run("run1"), a_run(id_)])
    with pytest.raises(InvalidInput):
        graph.runs.read([id_])
    assert graph.runs.read(["run1"]) == [None]


def test_what_is_no_json_is_refused_before_anything_is_sent(graph: ArangoGraph) -> None:
    with pytest.raises(InvalidInput):
        graph.zones.insert([a_zone("one"), a_zone("two", parameters={"half": "\ud800"})])
    assert graph.zones.all() == []


def test_a_document_of_a_newer_schema_is_left_alone(graph: ArangoGraph) -> None:
    put(graph, "regions", [Region(id="eu"), Region(id="us")])
    graph.db.collection("regions").update({"_key": "us", "schema": 2}, check_rev=False)

    assert [region.id for region in graph.regions.all()] == ["eu"]
    with pytest.raises(Unavailable, match="schema"):
        graph.regions.read(["eu", "us"])


def test_a_document_in_a_newer_state_is_left_alone(graph: ArangoGraph) -> None:
    put(graph, "regions", [Region(id="eu"), Region(id="us", status=RegionStatus.DOWN)])
    graph.db.collection("regions").update({"_key": "us", "status": "resting"}, check_rev=False)

    assert [region.id for region in graph.regions.all()] == ["eu"]
    with pytest.raises(Unavailable, match="schema"):
        graph.regions.read(["us"])


def test_known_tells_tasks_that_are_there_from_those_that_this_version_understands(
    graph: ArangoGraph,
) -> None:
    tasks = put_graph(graph, [], {"a": TaskState.READY, "new": TaskState.READY})
    gone, new = a_task("gone").id, tasks["new"].id
    key = new.partition("/")[2]
    graph.db.collection("tasks").update({"_key": key, "schema": 2}, check_rev=False)

    found = graph.tasks.known([gone, tasks["a"].id, new])

    assert found == {tasks["a"].id: tasks["a"], new: None}
    assert graph.tasks.known([]) == {}


def _changed(value: Any) -> Any:
    """Return the value with one attribute changed, whatever kind it is."""
    texts = {"reason", "detail", "comment", "zone_type", "url", "winner", "body_digest", "name"}
    for name in sorted(texts):
        if hasattr(value, name):
            return replace(value, **{name: "changed"})
    if isinstance(value, Grants):
        return replace(value, runs=())
    if isinstance(value, Durations):
        return replace(value, figures={})
    return replace(value, is_retiring=not value.is_retiring)
