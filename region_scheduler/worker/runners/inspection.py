"""What an inspection says of steps that change nothing."""

from __future__ import annotations

from region_scheduler.domain.step import Found, StepJob, StopWish
from region_scheduler.domain.task import Verdict


class ChangesNothing:
    """For runners whose lost attempts have left nothing behind."""

    __slots__ = ()

    def inspect(self, job: StepJob, should_stop: StopWish) -> Found:  # noqa: ARG002 -- the contract
        """Say that nothing was done, so that the attempt goes on."""
        return Found(verdict=Verdict.NOT_DONE, detail="a step of this kind changes nothing")
