"""What may be removed, and the law of removal, on every kind of server."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from region_scheduler.domain.admission import AdmissionState
from region_scheduler.domain.ids import RunId
from region_scheduler.domain.run import Run, RunMode
from region_scheduler.domain.schedule import Firing
from region_scheduler.domain.states import RUN_ENDED, RunState, TaskState
from region_scheduler.drivers.arango.graph import ArangoGraph
from region_scheduler.ports.documents import Reference, WriteResult
from tests.contract.graph.samples import (
    KINDS,
    a_conflict,
    a_run,
    a_schedule,
    a_zone,
    an_admission,
    an_entry,
    put,
    put_graph,
)
from tests.unit.domain.samples import AT, RUN

S = TaskState
APPLIED, CONFLICT, MISSING = WriteResult.APPLIED, WriteResult.CONFLICT, WriteResult.MISSING
DAY = timedelta(days=1)
NEVER = 10**9
ZONE = a_zone().id


def ended(id_: str, day: float, **more: Any) -> Run:
    at = AT + day * DAY
    return a_run(id_, **{"state": RunState.DONE, "created_at": at, "ended_at": at, **more})


def old(graph: ArangoGraph, day: float, kept: int = NEVER, rested: float = 0) -> list[str]:
    found = graph.leftovers.runs(AT + day * DAY, kept, AT + rested * DAY, 99)
    return [run.id for run in found]


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_removal_is_conditional_on_the_revision_read(graph: ArangoGraph, kind: str) -> None:
    (first,) = put(graph, kind, [KINDS[kind]()])
    store = getattr(graph, kind)
    (changed,) = store.write([(first, replace(first))])

    assert store.remove([first]) == [CONFLICT]
    assert store.read([first.id]) == [changed.value]
    assert store.remove([Reference(first.id, changed.value.rev)]) == [APPLIED]
    assert store.read([first.id]) == [None]
    assert store.remove([changed.value]) == [MISSING]


def test_each_of_a_batch_is_removed_on_its_own(graph: ArangoGraph) -> None:
    a, b, c = put(graph, "conflicts", [a_conflict(name) for name in "abc"])
    graph.conflicts.write([(b, replace(b, winner="other"))])

    assert graph.conflicts.remove([a, b, c]) == [APPLIED, CONFLICT, APPLIED]
    assert [found.id for found in graph.conflicts.recent(9)] == ["b"]


def test_old_runs_are_those_that_ended_long_ago(graph: ArangoGraph) -> None:
    put(graph, "runs", [ended(f"r{day}", day) for day in (1, 2, 3)])
    put(graph, "runs", [a_run(s, state=s) for s in RunState if s not in RUN_ENDED])
    put(
        graph, "runs", [ended("long", 0, ended_at=AT + 9 * DAY), ended("refused", 0, ended_at=None)]
    )

    assert old(graph, 2.5) == ["refused", "r1", "r2"]
    assert old(graph, 0) == []


def test_runs_that_are_too_many_go_if_they_have_rested(graph: ArangoGraph) -> None:
    put(graph, "runs", [ended(f"r{day}", day) for day in range(5)])

    assert old(graph, -9, kept=3, rested=9) == ["r0", "r1"]
    assert old(graph, -9, kept=1, rested=1.5) == ["r0", "r1"]
    assert old(graph, -9, kept=5, rested=9) == []


def test_a_zone_keeps_its_newest_run_that_is_done_and_all_after_it(graph: ArangoGraph) -> None:
    put(graph, "zones", [a_zone()])
    states = [RunState.DONE, RunState.FAILED, RunState.DONE, RunState.FAILED, RunState.CANCELLED]
    put(
        graph, "runs", [ended(f"r{2 * n}", 2 * n, zone=ZONE, state=s) for n, s in enumerate(states)]
    )
    put(graph, "runs", [ended("near", 3.5, zone=ZONE)])  # less than a day: clocks may differ
    put(graph, "runs", [ended("plan", 9, zone=ZONE, mode=RunMode.PLAN)])

    assert old(graph, 99) == ["r0", "r2"]
    (zone,) = graph.zones.read([ZONE])
    assert zone is not None
    graph.zones.write([(zone, replace(zone, active_run="r0"))])
    assert old(graph, 99) == ["r2"]


def test_a_zone_that_is_gone_needs_nothing(graph: ArangoGraph) -> None:
    put(graph, "runs", [ended("r0", 0, zone=ZONE, state=RunState.FAILED)])

    assert old(graph, 99) == ["r0"]


def test_what_a_schedule_is_not_done_with_stays_and_what_is_closed_goes_on(
    graph: ArangoGraph,
) -> None:
    put(graph, "runs", [ended("fired", 0), ended("closed", 50, is_closed=True)])
    put(graph, "schedules", [a_schedule(firings=(Firing(nominal_at=AT, run=RunId("fired")),))])

    assert old(graph, 9) == ["closed"]


def test_a_limit_takes_the_oldest(graph: ArangoGraph) -> None:
    put(graph, "runs", [ended(f"r{day}", day) for day in (3, 1, 2)])

    found = graph.leftovers.runs(AT + 9 * DAY, NEVER, AT, 2)
    assert [run.id for run in found] == ["r1", "r2"]


def test_admissions_go_when_they_are_settled_and_their_run_is_not_there(
    graph: ArangoGraph,
) -> None:
    put(graph, "runs", [a_run("here")])
    made = {
        "open": an_admission("open", run=RunId("gone")),
        "here": an_admission("here", run=RunId("here"), state=AdmissionState.DONE),
        "gone": an_admission("gone", run=RunId("gone"), state=AdmissionState.DONE),
        "young": an_admission(
            "young", run=RunId("gone"), state=AdmissionState.DONE, created_at=AT + 9 * DAY
        ),
    }
    put(graph, "admissions", list(made.values()))

    (found,) = graph.leftovers.admissions(AT + DAY, 9)
    assert found.id == made["gone"].id
    assert graph.admissions.remove([found]) == [APPLIED]


@pytest.mark.parametrize("kind", ["conflicts", "audit"])
def test_records_go_when_they_are_too_old_or_too_many(graph: ArangoGraph, kind: str) -> None:
    make = a_conflict if kind == "conflicts" else an_entry
    put(graph, kind, [make(f"c{n}", at=AT + n * DAY) for n in range(5)])
    ask = getattr(graph.leftovers, kind)

    assert [one.id for one in ask(AT + 1.5 * DAY, NEVER, 9)] == ["c0", "c1"]
    assert [one.id for one in ask(AT - DAY, 2, 9)] == ["c0", "c1", "c2"]
    assert [one.id for one in ask(AT + 9 * DAY, 2, 1)] == ["c0"]
    assert ask(AT - DAY, 5, 9) == []


def test_a_run_is_emptied_of_its_own_tasks_and_dependencies(graph: ArangoGraph) -> None:
    made = put_graph(graph, [("a", "b"), ("b", "c")], dict.fromkeys("abc", S.DONE))
    put_graph(graph, [("a", "b")], dict.fromkeys("ab", S.DONE), RunId("other"))

    tasks, edges = graph.leftovers.tasks(RUN, 2), graph.leftovers.edges(RUN, 9)
    assert len(tasks) == len(edges) == 2
    assert {task.id for task in tasks} < {task.id for task in made.values()}
    assert graph.tasks.remove(tasks) == graph.leftovers.remove_edges(edges) == [APPLIED] * 2
    assert graph.leftovers.remove_edges(edges) == [MISSING] * 2
    assert graph.tasks.counts(RUN) == (1, 0)
    assert graph.tasks.counts(RunId("other")) == (2, 1)
