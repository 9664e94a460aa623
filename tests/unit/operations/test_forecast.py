"""When all would be done: the scheduler's own choice on a copy of the state."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import LockNeed, Task
from region_scheduler.domain.tenant import LEVELS
from region_scheduler.operations.forecast import Places, forecast
from tests.unit.domain.samples import AT, a_spec, a_task, running

LEVEL = {"acme": LEVELS["standard"]}


def task(name: str, locks: tuple[LockNeed, ...] = ()) -> Task:
    spec = a_spec(name, expected_s=10.0, remaining_s=10.0, locks=locks)
    return replace(a_task(name), spec=spec, state=TaskState.READY)


def places(**slots: int) -> Places:
    return Places({region: {"default": count} for region, count in slots.items()}, LEVEL)


def test_tasks_come_one_after_the_other_where_there_is_no_room() -> None:
    tasks = [task(name) for name in "abcd"]

    assert forecast(tasks, {}, places(eu=4), AT).makespan_s == 10
    assert forecast(tasks, {}, places(eu=1), AT).makespan_s == 40
    assert forecast(tasks, {}, places(us=4), AT).stuck == 4


def test_dependents_and_locks_are_waited_for() -> None:
    lock = (LockNeed("acme/x"),)
    tasks = [task("a", locks=lock), task("b", locks=lock), task("c")]
    later = replace(task("d"), state=TaskState.PENDING)
    before = {later.id: [tasks[0].id, tasks[1].id]}

    found = forecast([*tasks, later], before, places(eu=9), AT)

    assert (found.makespan_s, found.stuck) == (30, 0)


def test_what_runs_has_done_a_part_of_it_and_what_waits_for_a_failed_one_is_stuck() -> None:
    begun = replace(running(), spec=a_spec("a", expected_s=10.0, remaining_s=10.0))
    failed = replace(task("f"), state=TaskState.FAILED)
    behind = replace(task("g"), state=TaskState.PENDING)

    started = begun.history[-1].at
    found = forecast(
        [begun, failed, behind],
        {behind.id: [failed.id]},
        places(eu=2),
        started + timedelta(seconds=4),
    )

    assert (found.makespan_s, found.stuck) == (6, 1)
