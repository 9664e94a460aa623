"""Promises about what goes on, and about runs and records: broken by hand, and found."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from region_scheduler.assembly.instrumented import instrumented
from region_scheduler.domain.ids import RunId, task_id
from region_scheduler.domain.run import Run
from region_scheduler.domain.slot import SlotHolder
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import Token
from region_scheduler.simulation.world import World
from region_scheduler.verify.invariants import Invariant
from region_scheduler.verify.verifier import Source, verify
from tests.simulation.acts import admit, task_of
from tests.simulation.scenarios import ZONE, a_plan, graph_of, spec
from tests.simulation.verify.plants import (
    looked_at,
    of,
    opened,
    plant,
    run_now,
    with_entry,
)

# -- 8: no stuck


def stuck(world: World, run: Run) -> None:
    """Let `b` wait though `a` is done, in a run that goes on."""
    fresh: dict[str, Any] = {
        "state": TaskState.PENDING,
        "token": Token(),
        "history": (),
        "attempt": 0,
    }
    plant(world, run, "b", lambda task: replace(task, **fresh))
    now = run_now(world, run)
    graph_of(world).runs.write([(now, opened(now))])


def test_a_task_that_nobody_unlocks_is_stuck(world: World, run: Run) -> None:
    stuck(world, run)

    report = looked_at(world, steps=None, is_at_rest=False, wait=world.renew)

    assert report.broken == (Invariant.NO_STUCK,)
    a = task_of(world, run, "a")
    assert of(report, Invariant.NO_STUCK).evidence == (f"{a.id}: done under token {a.token}",)


def test_a_task_that_is_unlocked_meanwhile_was_not_stuck(world: World, run: Run) -> None:
    stuck(world, run)

    report = looked_at(world, steps=None, is_at_rest=False, wait=lambda: world.pass_time(3))

    assert (report.broken, report.unsettled) == ((), 1)
    assert looked_at(world, steps=None).broken == ()


def test_where_nobody_is_at_work_nothing_is_called_stuck(world: World, run: Run) -> None:
    stuck(world, run)

    report = looked_at(world, steps=None, is_at_rest=False, wait=lambda: None)

    assert (report.broken, report.unsettled) == ((), 1)


# -- 9: no leak


@pytest.mark.parametrize("name", ["b", "nobody"])
def test_a_slot_of_a_finished_or_missing_task_is_a_leak(world: World, run: Run, name: str) -> None:
    (slot,) = graph_of(world).slots.all()
    token = task_of(world, run, "b").token
    holder = SlotHolder(task_id(run.id, name), token)
    graph_of(world).slots.write([(slot, replace(slot, holder=holder))])

    report = looked_at(world)

    assert report.broken == (Invariant.NO_LEAK,)
    assert of(report, Invariant.NO_LEAK).evidence[0] == f"held by {holder.task} under token {token}"
    assert looked_at(world, is_at_rest=False, wait=lambda: world.pass_time(3)).broken == ()


# -- 10: idempotency


def test_a_second_run_of_one_occurrence_is_found(world: World, run: Run) -> None:
    graph = graph_of(world)
    now = run_now(world, run)
    caused = replace(now, cause="schedule nightly@2026-01-01T00:00:00+00:00")
    graph.runs.write([(now, caused)])
    graph.runs.insert([replace(caused, id=RunId("other"), task_count=0, edge_count=0)])

    report = looked_at(world)

    assert report.broken == (Invariant.IDEMPOTENCY,)
    assert report.violations == 2  # and nobody asked for it
    (verdict,) = (v for v in report.verdicts if v.invariant is Invariant.IDEMPOTENCY)
    assert {f"run {run.id}", "run other"} in [set(one.evidence) for one in verdict.findings]


def test_a_run_of_another_request_than_was_accepted_is_found(world: World, run: Run) -> None:
    now = run_now(world, run)
    graph_of(world).runs.write([(now, replace(now, digest="other"))])

    assert of(looked_at(world), Invariant.IDEMPOTENCY).what == "its run is of another request"


# -- 11: acyclic


def test_tasks_that_wait_for_each_other_are_found(world: World, run: Run) -> None:
    a, b = (task_id(run.id, name) for name in "ab")
    graph_of(world).tasks.insert_edges([(b, a)])

    found = of(looked_at(world), Invariant.ACYCLIC)

    assert set(found.evidence) == {f"{b} waits for {a}", f"{a} waits for {b}"}


def test_a_task_that_waits_for_itself_is_found(world: World, run: Run) -> None:
    a = task_id(run.id, "a")
    graph_of(world).tasks.insert_edges([(a, a)])

    assert of(looked_at(world), Invariant.ACYCLIC).evidence == (f"{a} waits for {a}",)


# -- 13: tenancy


def test_a_task_of_another_tenant_than_its_run_is_found(world: World, run: Run) -> None:
    plant(world, run, "a", lambda task: replace(task, tenant="globex"))

    report = looked_at(world)

    assert report.broken == (Invariant.TENANCY,)
    assert of(report, Invariant.TENANCY).evidence == ("task: globex; run: acme; zone: acme",)


# -- 14: audit


def test_what_a_person_did_without_an_entry_is_found(world: World, run: Run) -> None:
    graph = graph_of(world)
    (region, *_) = graph.regions.all()
    graph.regions.write([(region, replace(region, status_by="operator:anna"))])

    report = looked_at(world)

    assert report.broken == (Invariant.AUDIT,)
    assert "by operator:anna: the audit does not know of it" in of(report, Invariant.AUDIT).what


# -- 15: zone


def test_a_second_run_that_changes_a_zone_is_found(world: World, run: Run) -> None:
    """The first holds it still; the other has something ready all the same."""
    graph = graph_of(world)
    (zone,) = graph.zones.read([ZONE])
    assert zone is not None
    graph.zones.write([(zone, replace(zone, active_run=run.id, active_round=1))])
    other = admit(world, a_plan([spec("a")], zone=ZONE), key="second")
    entry = task_of(world, run, "a").history[0]
    plant(world, other, "a", lambda t: replace(t, state=TaskState.READY, history=(entry,)))

    report = looked_at(world, is_at_rest=False)

    assert report.broken == (Invariant.ZONE,)
    assert of(report, Invariant.ZONE).evidence[0] == f"zone prod: held by {run.id}"
    assert looked_at(world, other, is_at_rest=False).broken == (Invariant.ZONE,)
    assert looked_at(world, run, is_at_rest=False).broken == ()


# -- what counts


def test_a_finding_in_two_documents_counts_only_if_both_are_as_they_were_read(
    world: World, run: Run
) -> None:
    graph = graph_of(world)
    a = task_id(run.id, "a")
    plant(world, run, "b", lambda task: with_entry(task, 0, seen={a: "99/never"}))
    assert looked_at(world).broken == (Invariant.ORDER,)

    def meanwhile(point: str, call: partial[Any]) -> Any:
        if point == "history.revisions":
            plant(world, run, "a", lambda task: replace(task, log_tail="moved"))
        return call()

    report = verify(Source(history=instrumented(graph.history, "history", meanwhile)))

    assert (report.broken, report.unsettled) == ((), 1)
