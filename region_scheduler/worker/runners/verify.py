"""Waiting until something is true, with a bound: clouds are eventually consistent."""

from __future__ import annotations

from dataclasses import dataclass

from region_scheduler.domain.step import StepJob, StopWish
from region_scheduler.domain.task import Exit, ExitKind
from region_scheduler.errors import InvalidInput
from region_scheduler.worker.execute import Executor
from region_scheduler.worker.runners.check import judged
from region_scheduler.worker.runners.command import (
    delivered,
    not_true,
    poll_argv,
    poll_result,
    step_environment,
)
from region_scheduler.worker.runners.exits import failed, interrupted
from region_scheduler.worker.runners.in_process import InProcess
from region_scheduler.worker.runners.inspection import ChangesNothing


@dataclass(slots=True)
class VerifyRunner(ChangesNothing):
    """Polls a condition; one that does not become true in time ends retryable.

    Inputs:
        argv: Polled until it ends with 0; `every_s` (5), `timeout_s` (600), `try_timeout_s` (60),
            in seconds.
        assertions: Instead of `argv`: over what the step was given, which cannot change while it
            waits, so they are held against it once and the retries do the waiting.
    """

    executor: Executor
    in_process: InProcess
    name: str = "verify"

    def run(self, job: StepJob, should_stop: StopWish) -> Exit:
        """Return once the condition is true, or its time is over."""
        if "argv" not in job.spec.inputs:
            return self.in_process.run(job, lambda _: judged(job, ExitKind.RETRYABLE))
        try:
            argv = poll_argv(job, None, job.spec.inputs)
        except InvalidInput as error:
            return Exit(kind=ExitKind.PERMANENT, message=str(error))
        ended = self.executor.execute(job, argv, should_stop, env=step_environment(job))
        if early := interrupted(job, ended):
            return early
        said = poll_result(job)
        if said.get("is_true"):
            return delivered(job)
        text = not_true(said) if said else f"its poll ended with {ended.code}"
        return failed(job, ExitKind.RETRYABLE, text)
