"""Each kind of violation is planted once, and the counter that is for it rises."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from region_scheduler.domain.ids import ClaimId, Incarnation, ReceiptId, RunId, TaskId
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import (
    Exit,
    ExitKind,
    HistoryEntry,
    Holder,
    LockNeed,
    Task,
    TaskSpec,
    Token,
)
from region_scheduler.domain.transitions import Stamp, claim, complete, requeue, start, unlock
from region_scheduler.verify.counters import Counters, count

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
FIRST, SECOND = TaskId("tasks/run.1"), TaskId("tasks/run.2")
BEFORE = {SECOND: [FIRST]}
SOUND = Counters(
    misrouted=0, order_violations=0, overlaps=0, done_twice=0, strays=0, capacity_overruns=0
)


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a steps log."""

    event: str
    task: TaskId
    token: Token
    receipt_id: ReceiptId
    region: str = "eu-west"
    boot: float
    shim_pid: int = 7


def done(id_: TaskId, seen: dict[TaskId, str], receipt: str) -> Task:
    """Lead a task by its real transitions to its completion."""
    spec = TaskSpec(name=id_, runner="command", region="eu-west", allowed_regions=("eu-west",))
    fresh = Task(
        id=id_, run=RunId("run"), tenant="acme", spec=spec, needs=len(seen), region="eu-west"
    )
    ready = unlock(fresh, seen, Stamp("settler", NOON))
    claimed = claim(ready, ClaimId(f"claim-{receipt}"), Incarnation("s:1"), "eu-west", NOON)
    holder = Holder(Incarnation("w:1"), ReceiptId(receipt))
    running = start(claimed, claimed.token, holder, NOON)
    return complete(running, running.token, holder, Exit(kind=ExitKind.OK), NOON)


def ran(task: Task, receipt: str, begin: float, end: float, region: str = "eu-west") -> list[Line]:
    """Return what the step's process wrote."""
    who: dict[str, Any] = {
        "task": task.id,
        "token": task.token,
        "receipt_id": ReceiptId(receipt),
        "region": region,
    }
    return [
        Line(event="start", boot=begin, **who),
        Line(event="end", boot=end, **who),
    ]


@pytest.fixture
def tasks() -> list[Task]:
    first = done(FIRST, {}, "r1")
    return [first, done(SECOND, {FIRST: str(first.token)}, "r2")]


@pytest.fixture
def lines(tasks: list[Task]) -> list[Line]:
    return [*ran(tasks[0], "r1", 1, 2), *ran(tasks[1], "r2", 3, 4)]


def test_a_sound_run_counts_nothing(tasks: list[Task], lines: list[Line]) -> None:
    assert count(lines, tasks, BEFORE) == SOUND
    assert SOUND.total == 0


def test_an_earlier_attempt_that_was_lost_is_no_violation(
    tasks: list[Task], lines: list[Line]
) -> None:
    first = tasks[0]
    lost = replace(first.history[2], receipt_id=ReceiptId("r0"), token=Token(1, ClaimId("c0")))
    tasks[0] = replace(first, history=(first.history[0], lost, *first.history[1:]))

    assert count([*ran(first, "r0", 0.1, 0.9), *lines], tasks, BEFORE) == SOUND


def test_a_step_in_a_foreign_region_is_misrouted(tasks: list[Task], lines: list[Line]) -> None:
    planted = [*ran(tasks[0], "r1", 1, 2, region="us-east"), *lines[2:]]

    assert count(planted, tasks, BEFORE) == replace(SOUND, misrouted=1)


def test_a_step_in_an_allowed_region_that_did_not_start_it_is_misrouted(
    tasks: list[Task], lines: list[Line]
) -> None:
    both = ("eu-west", "us-east")
    tasks[0] = replace(tasks[0], spec=replace(tasks[0].spec, allowed_regions=both))
    planted = [*ran(tasks[0], "r1", 1, 2, region="us-east"), *lines[2:]]

    assert count(planted, tasks, BEFORE) == replace(SOUND, misrouted=1)


def test_a_step_that_begins_before_its_predecessor_ended_violates_the_order(
    tasks: list[Task], lines: list[Line]
) -> None:
    planted = [*lines[:2], *ran(tasks[1], "r2", 1.5, 4)]

    assert count(planted, tasks, BEFORE) == replace(SOUND, order_violations=1)


@pytest.mark.parametrize("seen", [{}, {FIRST: "1/another-claim"}, {TaskId("tasks/run.9"): "1/c"}])
def test_an_unlock_on_anything_but_the_completed_predecessors_violates_the_order(
    tasks: list[Task], lines: list[Line], seen: dict[TaskId, str]
) -> None:
    tasks[1] = done(SECOND, seen, "r2")

    assert count(lines, tasks, BEFORE) == replace(SOUND, order_violations=1)


def test_a_start_without_an_unlock_violates_the_order(tasks: list[Task], lines: list[Line]) -> None:
    tasks[1] = replace(tasks[1], history=tasks[1].history[1:])

    assert count(lines, tasks, BEFORE) == replace(SOUND, order_violations=1)


def test_two_holders_at_once_overlap(tasks: list[Task], lines: list[Line]) -> None:
    tasks[0] = with_start(tasks[0], "r0")

    planted = [*ran(tasks[0], "r0", 0.5, 1.5), *lines]

    assert count(planted, tasks, BEFORE) == replace(SOUND, overlaps=1)


def test_a_step_that_goes_on_overlaps_whatever_follows(
    tasks: list[Task], lines: list[Line]
) -> None:
    tasks[0] = with_start(tasks[0], "r0")
    begun = replace(ran(tasks[0], "r0", 0.5, 0.6)[0], shim_pid=8)

    assert count([begun, *lines], tasks, BEFORE, alive={7, 8}) == replace(SOUND, overlaps=1)
    assert count([begun, *lines], tasks, BEFORE, alive={7}) == SOUND


def test_a_second_accepted_completion_counts(tasks: list[Task], lines: list[Line]) -> None:
    tasks[0] = replace(tasks[0], history=(*tasks[0].history, tasks[0].history[-1]))

    assert count(lines, tasks, BEFORE) == replace(SOUND, done_twice=1)


def test_a_step_that_runs_again_after_its_completion_counts(
    tasks: list[Task], lines: list[Line]
) -> None:
    tasks[0] = with_start(tasks[0], "r9")

    planted = [*lines, *ran(tasks[0], "r9", 5, 6)]

    assert count(planted, tasks, BEFORE) == replace(SOUND, done_twice=1)


def test_a_step_that_no_start_was_accepted_for_is_a_stray(
    tasks: list[Task], lines: list[Line]
) -> None:
    planted = [*ran(tasks[0], "r0", 0.1, 0.9), *lines]

    assert count(planted, tasks, BEFORE) == replace(SOUND, strays=1)


def locked(tasks: list[Task], units: int, capacity: int) -> list[Task]:
    """Let all of them hold units of one resource while they run."""
    need = LockNeed("acme/aws:organizations", capacity=capacity, units=units)
    return [replace(task, spec=replace(task.spec, locks=(need,))) for task in tasks]


@pytest.mark.parametrize(
    ("units", "capacity", "begin", "overruns"),
    [(1, 1, 2.0, 0), (1, 1, 1.9, 1), (1, 2, 1.5, 0), (2, 3, 1.5, 1), (3, 2, 2.0, 2)],
)
def test_a_step_that_begins_while_others_hold_too_much_overruns_the_capacity(
    tasks: list[Task], lines: list[Line], units: int, capacity: int, begin: float, overruns: int
) -> None:
    held = [tasks[0], done(SECOND, {}, "r2")]
    planted = [*lines[:2], *ran(held[1], "r2", begin, 4)]

    found = count(planted, locked(held, units, capacity), {})

    assert found == replace(SOUND, capacity_overruns=overruns)
    assert count(planted, locked(held, units, capacity), {}, (), {"acme/aws:organizations": 9}) == (
        SOUND
    )


def test_a_step_that_goes_on_holds_what_it_took(tasks: list[Task], lines: list[Line]) -> None:
    held = locked([tasks[0], done(SECOND, {}, "r2")], 1, 1)
    begun = ran(held[0], "r1", 1, 2)[0]
    planted = [replace(begun, shim_pid=8), *ran(held[1], "r2", 9, 10)]

    assert count(planted, held, {}, alive={8}) == replace(SOUND, capacity_overruns=1)
    assert count(planted, held, {}, alive={7}) == SOUND


def test_several_programs_of_one_attempt_are_one_execution(
    tasks: list[Task], lines: list[Line]
) -> None:
    planted = [*ran(tasks[0], "r1", 0.2, 0.5), *ran(tasks[0], "r1", 0.6, 0.9), *lines]

    assert count(planted, tasks, BEFORE) == SOUND


def test_a_task_that_was_given_back_before_it_started_is_sound() -> None:
    spec = TaskSpec(name="1", runner="command", region="eu-west", allowed_regions=("eu-west",))
    fresh = Task(id=FIRST, run=RunId("run"), tenant="acme", spec=spec, needs=0, region="eu-west")
    claimed = claim(
        unlock(fresh, {}, Stamp("settler", NOON)),
        ClaimId("c1"),
        Incarnation("s:1"),
        "eu-west",
        NOON,
    )
    returned = requeue(claimed, claimed.token, "lock x is held", Stamp("s:1", NOON))
    assert returned.state is TaskState.READY

    assert count([], [returned], {}) == SOUND


def with_start(task: Task, receipt: str) -> Task:
    """Add the accepted start of another attempt to the history, after the unlock."""
    started: HistoryEntry = replace(task.history[2], receipt_id=ReceiptId(receipt))
    return replace(task, history=(task.history[0], started, *task.history[1:]))
