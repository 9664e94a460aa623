"""What is told of runs that are under way, and when a watch may end."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from region_scheduler.cli.watching import Glance, closing, progress_rows, waiting_lines
from region_scheduler.domain.ids import RunId, task_id
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import Task, TaskSpec

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
RUN = Run(
    id=RunId("r1"),
    tenant="acme",
    name="blue",
    home_region="eu",
    regions=("eu", "us"),
    task_count=4,
    edge_count=0,
    digest="",
    created_at=NOON,
)


def task(name: str, state: TaskState, region: str = "eu", runner: str = "x") -> Task:
    spec = TaskSpec(name=name, runner=runner, region=region, allowed_regions=(region,))
    return Task(
        id=task_id(RUN.id, name),
        run=RUN.id,
        tenant="acme",
        spec=spec,
        needs=0,
        region=region,
        state=state,
        reason=f"why {name}",
    )


def glance(*tasks: Task, run: Run = RUN) -> Glance:
    states = [one.state for one in tasks]
    return Glance([run], tasks, {run.id: {state: states.count(state) for state in states}})


def test_progress_is_told_by_run_and_region() -> None:
    seen = glance(
        task("a", TaskState.DONE),
        task("b", TaskState.SKIPPED),
        task("c", TaskState.RUNNING),
        task("d", TaskState.FAILED, "us"),
    )

    assert [
        (row["region"], row["done"], row["running"], row["failed"]) for row in progress_rows(seen)
    ] == [("eu", "2/3", 1, 0), ("us", "0/1", 0, 1)]


def test_people_come_first_among_what_waits() -> None:
    seen = glance(
        task("lock", TaskState.READY),
        task("person", TaskState.AWAITING),
        task("later", TaskState.PENDING),
    )

    assert waiting_lines(seen) == [
        "person: why person",
        "lock: why lock",
        "1 wait for the steps before them",
    ]


@pytest.mark.parametrize(
    ("others", "runner", "is_due"),
    [
        ([TaskState.DONE, TaskState.PENDING], "approval", True),
        ([TaskState.DONE, TaskState.PENDING], "terraform", True),
        ([TaskState.DONE], "external-wait", False),
        ([TaskState.RUNNING], "approval", False),
        ([TaskState.READY], "approval", False),
        ([TaskState.IN_DOUBT], "approval", False),
    ],
)
def test_a_person_is_due_when_nothing_else_can_move(
    others: list[TaskState], runner: str, is_due: bool
) -> None:
    waiting = task("w", TaskState.AWAITING, runner=runner)

    assert glance(waiting, *(task(s, s) for s in others)).awaits_person is is_due


def test_the_end_says_what_failed_and_who_is_waited_for() -> None:
    seen = glance(task("a", TaskState.FAILED), task("b", TaskState.AWAITING))

    assert list(closing(seen)) == [
        "blue: running, 0 of 4 tasks done",
        "  failed: a",
        "  waits for you: region-scheduler tasks approve r1/b",
    ]


def test_runs_have_ended_when_all_have() -> None:
    ended = replace(RUN, state=RunState.FAILED)

    assert not glance(task("a", TaskState.DONE)).has_ended
    assert glance(task("a", TaskState.FAILED), run=ended).has_ended
