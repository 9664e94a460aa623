"""What is told of runs that are under way, and when a watch may end."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from region_scheduler.cli.hints import Hints
from region_scheduler.cli.progress import (
    Glance,
    change_lines,
    closing,
    progress_rows,
    waiting_lines,
)
from region_scheduler.domain.ids import RunId, task_id
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import Task, TaskSpec
from region_scheduler.operations.waits import ZoneWait

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
        ([TaskState.DONE], "external-wait", True),
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
    event = task("c d", TaskState.AWAITING, runner="external-wait")
    seen = glance(task("a", TaskState.FAILED), task("b", TaskState.AWAITING), event)

    assert list(closing(seen, Hints(Path("my stack")))) == [
        "blue: running, 0 of 4 tasks done",
        "  failed: a",
        "  waits for you: region-scheduler tasks approve r1/b --state-dir 'my stack'",
        "  waits for you: region-scheduler tasks answer 'r1/c d' --state-dir 'my stack'",
    ]


def test_a_failed_run_says_how_it_goes_on() -> None:
    seen = glance(task("a", TaskState.FAILED), run=replace(RUN, state=RunState.FAILED))

    assert list(closing(seen, Hints()))[-1].endswith(": region-scheduler resume r1")


def test_every_change_is_told_in_a_line_with_what_runs_and_what_waits() -> None:
    seen = glance(
        task("a", TaskState.DONE),
        task("b", TaskState.RUNNING, "us"),
        task("lock", TaskState.READY),
        task("later", TaskState.PENDING),
        task("c", TaskState.AWAITING),
        task("d", TaskState.FAILED),
    )

    assert change_lines(seen, Hints()) == [
        "blue: 1 of 4 done; running b in us; 1 ready (why lock); 1 wait for the steps before them",
        "c: why c",
        "d: why d",
        "waits for you: region-scheduler tasks approve r1/c",
    ]
    assert change_lines(seen, None)[-1] == "d: why d"


def test_a_run_without_its_zone_says_who_has_it() -> None:
    wait = ZoneWait("blue", RunId("r0"), 2)
    seen = replace(glance(task("a", TaskState.PENDING)), waits={RUN.id: wait})
    told = "blue: 0 of 4 done; waits for zone blue, held by run r0, round 2"

    assert change_lines(seen, Hints()) == [told]
    assert waiting_lines(seen) == ["blue: waits for zone blue, held by run r0, round 2"]


def test_a_person_is_due_too_where_the_holder_of_the_zone_waits_for_one() -> None:
    holders = replace(task("w", TaskState.AWAITING), run=RunId("r0"))
    seen = replace(glance(task("a", TaskState.PENDING)), tasks=[holders])

    assert seen.awaits_person
    assert list(closing(seen, Hints()))[1].endswith("tasks approve r0/w")


def test_runs_have_ended_when_all_have() -> None:
    ended = replace(RUN, state=RunState.FAILED)

    assert not glance(task("a", TaskState.DONE)).has_ended
    assert glance(task("a", TaskState.FAILED), run=ended).has_ended
