"""Steps that wait for a person or an event; nothing runs and nothing is held meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from region_scheduler.domain.step import StepJob, StopWish
from region_scheduler.domain.task import Exit, ExitKind
from region_scheduler.worker.runners.inspection import ChangesNothing


@dataclass(slots=True)
class AwaitRunner(ChangesNothing):
    """Puts the task into `awaiting`.

    Inputs:
        question: What the person is asked.
        event: The event that is due. The step's purpose unless one of them is given.

    Attributes:
        name: `approval` or `external-wait`.
    """

    name: str

    def run(self, job: StepJob, should_stop: StopWish) -> Exit:  # noqa: ARG002 -- at once
        """Say what is waited for."""
        inputs = job.spec.inputs
        what = inputs.get("question") or inputs.get("event") or job.spec.purpose or job.spec.name
        due = "approval" if self.name == "approval" else "event"
        return Exit(kind=ExitKind.AWAIT, message=f"waits for {due}: {what}")
