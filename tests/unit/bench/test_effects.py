"""The judge of the contention bench: what it counts, and what it must not count."""

from __future__ import annotations

from pathlib import Path

import pytest

from region_scheduler.bench.contention import Contest
from region_scheduler.bench.effects import Verdict, judged
from region_scheduler.bench.rogue import Planted, misbehave, planted_in
from region_scheduler.domain.ids import ReceiptId, TaskId
from region_scheduler.domain.task import Token
from region_scheduler.errors import InvalidInput
from region_scheduler.local.directories import prepare
from region_scheduler.local.evidence import step_records
from region_scheduler.local.stack import new_stack
from region_scheduler.runtime.system import UuidIds
from region_scheduler.worker.steplog import Act, StepEvent, StepRecord

A, B, C = TaskId("tasks/r.a"), TaskId("tasks/r.b"), TaskId("tasks/r.c")
NEEDS = {A: ("lock",), B: ("lock",), C: ("pair",)}
CAPACITIES = {"lock": 1, "pair": 2}


def ran(task: TaskId, begin: float, end: float | None, code: int = 0) -> list[StepRecord]:
    """Return what a step notes under a receipt of its own."""
    marks: list[tuple[StepEvent, float, int | None]] = [(StepEvent.START, begin, None)]
    marks += [] if end is None else [(StepEvent.END, end, code)]
    return [
        StepRecord(
            event=event,
            act=Act.RUN,
            task=task,
            token=Token(1),
            receipt_id=ReceiptId(f"{task}@{begin}"),
            attempt=1,
            region="r0",
            worker_pid=1,
            shim_pid=1,
            at=at,
            boot=at,
            code=code_then,
        )
        for event, at, code_then in marks
    ]


def test_each_task_done_once_and_one_after_the_other_is_sound() -> None:
    records = [*ran(A, 1, 2), *ran(B, 2, 3), *ran(C, 1, 3)]

    assert judged(records, NEEDS, CAPACITIES) == Verdict(done=3, done_twice=0, overruns=0)


def test_a_step_that_came_to_its_end_twice_is_seen_and_one_that_failed_before_is_not() -> None:
    records = [*ran(A, 1, 2), *ran(A, 5, 6), *ran(B, 2, 3, code=1), *ran(B, 3, 4)]

    assert judged(records, NEEDS, CAPACITIES) == Verdict(done=2, done_twice=1, overruns=0)


@pytest.mark.parametrize(
    ("records", "overruns"),
    [
        ([*ran(A, 1, 3), *ran(B, 2, 4)], 1),
        ([*ran(A, 1, None), *ran(B, 9, 10)], 1),
        ([*ran(C, 1, 4), *ran(C, 2, 4)], 0),
        ([*ran(C, 1, 4), *ran(C, 2, 4), *ran(C, 3, 4), *ran(C, 3.5, 4)], 2),
    ],
    ids=["two at once", "one that never ended", "two of two", "four of two"],
)
def test_each_start_beyond_the_capacity_is_counted(
    records: list[StepRecord], overruns: int
) -> None:
    assert judged(records, NEEDS, CAPACITIES).overruns == overruns


@pytest.mark.parametrize(
    ("planted", "seen"),
    [("done-twice", (1, 0)), ("overrun", (0, 1)), ("overrun,done-twice", (1, 1))],
)
def test_a_rogue_step_is_noted_where_all_steps_are_and_seen(
    planted: str, seen: tuple[int, int], tmp_path: Path
) -> None:
    stack = new_stack(tmp_path, ["r0"], UuidIds())
    prepare(stack)
    needs = {A: ("pair",), B: ()}

    misbehave(stack, planted_in(planted), needs, CAPACITIES)

    records = [*step_records(stack), *ran(A, 1, 2), *ran(B, 1, 2)]
    found = judged(records, needs, CAPACITIES)
    assert (found.done, found.done_twice, found.overruns) == (2, *seen)


def test_what_can_be_planted_is_named_and_nothing_else_is_taken() -> None:
    assert planted_in("") == frozenset()
    assert planted_in("overrun, done-twice") == frozenset(Planted)
    with pytest.raises(InvalidInput, match="done-twice or overrun"):
        planted_in("chaos")


@pytest.mark.parametrize("wrong", ["schedulers", "regions", "tasks", "locks", "stale_ms"])
def test_a_contest_that_cannot_be_is_refused_by_name(wrong: str) -> None:
    sizes = {"schedulers": 2, "regions": 2, "tasks": 10, "locks": 1, "stale_ms": 0}

    with pytest.raises(InvalidInput, match=f"--{wrong.replace('_', '-')}"):
        Contest(**{**sizes, wrong: -1})


def test_the_tasks_of_a_contest_are_in_all_regions_and_every_lock_is_wanted_in_each() -> None:
    contest = Contest(schedulers=3, regions=3, tasks=2_500, locks=5, stale_ms=0)
    specs = [spec for plan in contest.plans() for spec in plan.tasks]

    assert len({spec.name for spec in specs}) == 2_500
    wanted = {(spec.region, need.resource) for spec in specs for need in spec.locks}
    assert len(wanted) == 3 * 5
    assert set(contest.capacities().values()) == {1, 3}
