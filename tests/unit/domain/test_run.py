"""Runs end once, open again once, and zones have one mutating run at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.domain.ids import RunId, zone_key
from region_scheduler.domain.run import (
    Run,
    RunMode,
    Zone,
    ended,
    opened,
    reopened,
    zone_freed,
    zone_taken,
)
from region_scheduler.domain.states import FINAL, RUN_ENDED, SATISFYING, RunState, TaskState
from region_scheduler.errors import IllegalMove, LostRace
from tests.unit.domain.samples import AT

S = TaskState


def a_run(**more: Any) -> Run:
    given_: dict[str, Any] = {
        "id": RunId("run1"),
        "tenant": "acme",
        "name": "run",
        "home_region": "eu",
        "regions": ("eu", "us"),
        "task_count": 4,
        "edge_count": 3,
        "digest": "d",
        "created_at": AT,
    }
    return Run(**{**given_, **more})


def a_zone(**more: Any) -> Zone:
    given_: dict[str, Any] = {
        "id": zone_key("acme", "prod"),
        "tenant": "acme",
        "name": "prod",
        "zone_type": "aws-pci_dss",
        "catalog_version": "1",
        "regions": ("eu",),
        "created_at": AT,
    }
    return Zone(**{**given_, **more})


@pytest.mark.parametrize(
    ("state", "mode", "counts", "end"),
    [
        (RunState.RUNNING, RunMode.APPLY, {S.DONE: 4}, RunState.DONE),
        (RunState.RUNNING, RunMode.APPLY, {S.DONE: 3, S.SKIPPED: 1}, RunState.DONE),
        (RunState.RUNNING, RunMode.DESTROY, {S.DONE: 4}, RunState.DONE),
        (RunState.RUNNING, RunMode.PLAN, {S.DONE: 4}, RunState.PLANNED),
        (RunState.RUNNING, RunMode.APPLY, {S.DONE: 2, S.FAILED: 1, S.PENDING: 1}, RunState.FAILED),
        (RunState.RUNNING, RunMode.PLAN, {S.DONE: 3, S.FAILED: 1}, RunState.FAILED),
        (RunState.RUNNING, RunMode.APPLY, {S.DONE: 3, S.CANCELLED: 1}, RunState.FAILED),
        (RunState.CANCELLING, RunMode.APPLY, {S.DONE: 3, S.CANCELLED: 1}, RunState.CANCELLED),
        (RunState.CANCELLING, RunMode.APPLY, {S.DONE: 3, S.FAILED: 1}, RunState.CANCELLED),
        (RunState.CANCELLING, RunMode.APPLY, {S.DONE: 4}, RunState.DONE),
    ],
)
def test_how_a_run_ends(
    state: RunState, mode: RunMode, counts: dict[TaskState, int], end: RunState
) -> None:
    after = ended(a_run(state=state, mode=mode), counts, can_move=False, at=AT)

    assert (after.state, after.ended_at) == (end, AT)


@pytest.mark.parametrize(
    ("counts", "can_move"),
    [
        ({S.DONE: 4}, True),
        ({S.DONE: 3}, False),
        ({S.DONE: 3, S.PENDING: 1}, False),
        ({S.DONE: 5}, False),
        ({}, False),
    ],
    ids=["can move", "not all counted", "an unlock is due", "too many", "none seen"],
)
def test_a_run_that_does_not_end_stays_the_same_object(
    counts: dict[TaskState, int], can_move: bool
) -> None:
    run = a_run()

    assert ended(run, counts, can_move, AT) is run


@pytest.mark.parametrize("state", sorted(RUN_ENDED | {RunState.ADMITTED}))
def test_an_end_is_written_once_and_not_while_a_round_is_being_opened(state: RunState) -> None:
    run = a_run(state=state)

    assert ended(run, {S.DONE: 4}, False, AT) is run


@given(st.dictionaries(st.sampled_from(TaskState), st.integers(0, 3)), st.booleans())
def test_a_run_never_ends_done_over_an_unfinished_task(
    counts: dict[TaskState, int], can_move: bool
) -> None:
    run = a_run(task_count=sum(counts.values()))
    after = ended(run, counts, can_move, AT)
    unfinished = sum(n for state, n in counts.items() if state not in SATISFYING)
    is_any_failed = any(n for state, n in counts.items() if state in FINAL - SATISFYING)

    assert (after.state is RunState.DONE) == (not can_move and unfinished == 0)
    assert after.state is not RunState.FAILED or is_any_failed


@pytest.mark.parametrize("state", list(RunState))
def test_only_an_ended_run_opens_again(state: RunState) -> None:
    run = a_run(state=state, ended_at=AT, reason="why")
    if state in RUN_ENDED - {RunState.REFUSED}:
        after = reopened(run)
        assert (after.state, after.round, after.ended_at) == (RunState.ADMITTED, 2, None)
        assert after.reason == ""
    else:
        with pytest.raises(IllegalMove, match=f"cannot go from {state} to a further round"):
            reopened(run)


def test_a_round_runs_once_its_tasks_are_moved() -> None:
    opening = reopened(a_run(state=RunState.FAILED))
    running = opened(opening, 2)

    assert running.state is RunState.RUNNING
    assert opened(running, 2) is running
    assert opened(opening, 1) is opening
    ended_again = replace(running, state=RunState.FAILED)
    assert opened(ended_again, 2) is ended_again


@pytest.mark.parametrize(
    ("mode", "zone", "needs"),
    [
        (RunMode.APPLY, "z1", True),
        (RunMode.DESTROY, "z1", True),
        (RunMode.PLAN, "z1", False),
        (RunMode.APPLY, "", False),
    ],
)
def test_only_what_changes_a_zone_needs_it(mode: RunMode, zone: str, needs: bool) -> None:
    assert a_run(mode=mode, zone=zone).needs_zone is needs


def test_a_zone_has_one_run_at_a_time() -> None:
    taken = zone_taken(a_zone(), RunId("run1"), 1)

    assert (taken.active_run, taken.active_round) == ("run1", 1)
    assert zone_taken(taken, RunId("run1"), 1) is taken
    with pytest.raises(LostRace) as lost:
        zone_taken(taken, RunId("run2"), 5)
    assert lost.value.winner == "run1"


def test_a_run_keeps_its_zone_for_its_next_round_and_an_old_round_takes_nothing_back() -> None:
    second = zone_taken(zone_taken(a_zone(), RunId("run1"), 1), RunId("run1"), 2)

    assert second.active_round == 2
    assert zone_taken(second, RunId("run1"), 1) is second


def test_only_its_run_frees_a_zone() -> None:
    taken = zone_taken(a_zone(), RunId("run1"), 1)

    assert zone_freed(taken, RunId("run2"), 9) is taken
    freed = zone_freed(taken, RunId("run1"), 1)
    assert (freed.active_run, freed.active_round) == ("", 0)
    assert zone_freed(freed, RunId("run1"), 1) is freed


def test_the_end_of_an_earlier_round_does_not_free_the_zone() -> None:
    second = zone_taken(a_zone(), RunId("run1"), 2)

    assert zone_freed(second, RunId("run1"), 1) is second
    assert zone_freed(second, RunId("run1"), 3).active_run == ""
