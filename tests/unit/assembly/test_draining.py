"""Steps of a worker that ends go back, and none of them is taken for cancelled."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from region_scheduler.assembly.draining import ENDING, draining
from region_scheduler.domain.ids import ReceiptId, RunId, TaskId
from region_scheduler.domain.step import Found, StepJob, StopWish
from region_scheduler.domain.task import Exit, ExitKind, OnLoss, TaskSpec, Token, Verdict


@dataclass
class Obedient:
    """Stops when it should, and says why."""

    name: str = "obedient"

    def run(self, job: StepJob, should_stop: StopWish) -> Exit:
        reason = should_stop()
        if reason:
            return Exit(kind=ExitKind.CANCELLED, message=reason)
        return Exit(kind=ExitKind.OK, message="ran to its end")

    def inspect(self, job: StepJob, should_stop: StopWish) -> Found:
        return Found(verdict=Verdict.UNDECIDED if should_stop() else Verdict.DONE)


def job(on_loss: OnLoss) -> StepJob:
    spec = TaskSpec(name="t", runner="x", region="r", allowed_regions=("r",), on_loss=on_loss)
    return StepJob(
        task=TaskId("tasks/run.t"),
        run=RunId("run"),
        tenant="acme",
        zone="",
        spec=spec,
        token=Token(1),
        receipt_id=ReceiptId("r1"),
        attempt=1,
        region="r",
        work_dir="",
        state_dir="",
        log_path="",
        steps_log="",
        lease_path="",
    )


@pytest.mark.parametrize(
    ("on_loss", "kind"),
    [
        (OnLoss.RETRY, ExitKind.HAND_BACK),
        (OnLoss.INSPECT, ExitKind.IN_DOUBT),
        (OnLoss.HOLD, ExitKind.IN_DOUBT),
    ],
)
def test_a_step_that_is_stopped_by_the_workers_end_goes_back(
    on_loss: OnLoss, kind: ExitKind
) -> None:
    runner = draining({"x": Obedient()}, lambda: True)["x"]

    ended = runner.run(job(on_loss), lambda: "")

    assert (ended.kind, ended.message) == (kind, ENDING)


def test_a_step_that_somebody_cancelled_stays_cancelled() -> None:
    runner = draining({"x": Obedient()}, lambda: True)["x"]

    ended = runner.run(job(OnLoss.RETRY), lambda: "cancel")

    assert (ended.kind, ended.message) == (ExitKind.CANCELLED, "cancel")


def test_a_worker_that_goes_on_changes_nothing() -> None:
    runners = draining({"x": Obedient()}, lambda: False)

    assert runners["x"].run(job(OnLoss.RETRY), lambda: "").kind is ExitKind.OK
    assert list(runners) == ["x"]
    assert runners.get("y") is None


def test_an_inspection_is_let_to_its_end() -> None:
    runner = draining({"x": Obedient()}, lambda: True)["x"]

    assert runner.inspect(job(OnLoss.INSPECT), lambda: "").verdict is Verdict.DONE
