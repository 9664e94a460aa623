"""A doubt, once there, is never forgotten: the next attempt looks before it does anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from region_scheduler.domain.cancel import cancel
from region_scheduler.domain.ids import ClaimId
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import Exit, ExitKind, OnLoss, Task
from region_scheduler.domain.transitions import (
    answer,
    claim,
    complete,
    lose,
    request_stop,
    resume,
)
from tests.unit.domain.samples import (
    AT,
    SCHEDULER,
    STAMP,
    WORKER,
    a_spec,
    ended,
    in_doubt,
    running,
)

S = TaskState
CUT_SHORT = [
    ExitKind.RETRYABLE,
    ExitKind.CAPPED,
    ExitKind.AWAIT,
    ExitKind.HAND_BACK,
    ExitKind.IN_DOUBT,
    ExitKind.FENCED,
]


def after(kind: ExitKind, task: Task) -> Task:
    return complete(task, task.token, WORKER, Exit(kind=kind), AT)


@pytest.mark.parametrize("kind", CUT_SHORT)
def test_an_attempt_that_was_to_be_cancelled_does_not_come_back(kind: ExitKind) -> None:
    assert after(kind, cancel(running(), "by anna", STAMP)).state is S.CANCELLED


@pytest.mark.parametrize("kind", CUT_SHORT)
def test_one_that_was_to_stop_for_another_reason_does(kind: ExitKind) -> None:
    stopping = request_stop(running(), "cap", STAMP)

    assert after(kind, stopping).state is after(kind, running()).state


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (ExitKind.OK, S.DONE),
        (ExitKind.UNCHANGED, S.SKIPPED),
        (ExitKind.PERMANENT, S.FAILED),
        (ExitKind.CANCELLED, S.CANCELLED),
    ],
)
def test_a_completion_that_comes_first_stands(kind: ExitKind, state: TaskState) -> None:
    assert after(kind, cancel(running(), "by anna", STAMP)).state is state


@pytest.mark.parametrize("on_loss", [OnLoss.INSPECT, OnLoss.HOLD])
@pytest.mark.parametrize("is_cancelled", [True, False])
def test_a_step_that_was_broken_off_leaves_a_doubt(on_loss: OnLoss, is_cancelled: bool) -> None:
    task = running(spec=a_spec(on_loss=on_loss))
    if is_cancelled:
        task = cancel(task, "by anna", STAMP)

    assert after(ExitKind.FENCED, task).is_inspect
    assert after(ExitKind.IN_DOUBT, task).is_inspect
    assert lose(task, task.token, task.holder, "lease over", STAMP).is_inspect


def test_a_repeatable_step_that_was_broken_off_leaves_none() -> None:
    assert not ended(ExitKind.FENCED).is_inspect
    assert not lose(running(), running().token, running().holder, "lease over", STAMP).is_inspect


def test_a_doubt_outlives_cancel_and_resume() -> None:
    task = resume(cancel(in_doubt(), "by anna", STAMP), STAMP)

    assert (task.state, task.is_inspect) == (S.PENDING, True)


def test_a_doubt_outlives_failure_and_resume() -> None:
    spec = a_spec(on_loss=OnLoss.INSPECT, retry=replace(a_spec().retry, losses_limit=0))
    task = running(spec=spec)
    lost = lose(task, task.token, task.holder, "lease over", STAMP)
    assert lost.state is S.FAILED
    resumed = resume(lost, STAMP)

    assert resumed.state is S.READY
    assert claim(resumed, ClaimId("claim-2"), SCHEDULER, "eu", AT).is_inspect


def test_too_many_inspections_ask_a_person_whose_yes_settles_the_doubt() -> None:
    spec = a_spec(on_loss=OnLoss.INSPECT, retry=replace(a_spec().retry, inspections_limit=0))
    for waiting in (
        ended(ExitKind.IN_DOUBT, spec=spec),
        ended(ExitKind.FENCED, spec=spec),
        lose(running(spec=spec), running(spec=spec).token, running().holder, "lease over", STAMP),
    ):
        assert (waiting.state, waiting.is_inspect) == (S.AWAITING, True)
        assert not answer(waiting, True, {}, "by anna", STAMP).is_inspect
        assert answer(waiting, False, {}, "by anna", STAMP).is_inspect
