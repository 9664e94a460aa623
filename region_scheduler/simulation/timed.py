"""Steps that take time, guarded by shims that do not stand still with their worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from region_scheduler.domain.step import Found, StepJob, StopWish
from region_scheduler.domain.task import Exit, ExitKind, Verdict
from region_scheduler.simulation.steps import Crash, EffectLog
from region_scheduler.simulation.time import SeededChance

_LOOK_S: Final = 0.5
_INSPECTION_S: Final = 0.1
_DONE: Final = 1 / 3
"""How often an inspection finds that all was done."""


@dataclass(slots=True)
class _Shim:
    """One step: when it would end by itself, and when its shim ends it."""

    end: float
    deadline: float

    @property
    def ends_at(self) -> float:
        return min(self.end, self.deadline)


class TimedSteps:
    """A runner whose steps take some time, and now and then fail.

    A shim ends its step at the deadline of the lease, whether or not the worker moves; only a
    renewal that came before moves that. The worker may hear of it much later.

    Args:
        log: Where starts and ends are noted, in true time.
        chance: Says how long each takes, and how it ends.
        sleep: Lets the worker wait.
        now: True time.
        slowness: Durations are multiplied by it.
    """

    name = "simulate"

    def __init__(
        self,
        log: EffectLog,
        chance: SeededChance,
        sleep: Callable[[float], None],
        now: Callable[[], float],
        slowness: float = 1.0,
    ) -> None:
        self._log = log
        self._chance = chance
        self._sleep = sleep
        self._now = now
        self._slowness = slowness
        self._deadline = float("-inf")
        self._shims: list[_Shim] = []

    def lease_moved(self, deadline: float) -> None:
        """Let the shims know, of steps that they have not ended yet."""
        self._deadline = deadline
        for shim in self._shims:
            if self._now() < shim.deadline:
                shim.deadline = max(deadline, shim.deadline)

    def run(self, job: StepJob, should_stop: StopWish) -> Exit:
        """Take time, unless the lease or somebody ends it."""
        takes_s = self._chance.uniform(0.1, 3.0) * job.spec.expected_s * self._slowness
        if (why := self._guarded(job, takes_s, should_stop)) is not None:
            return why
        if self._chance.uniform(0, 1) < job.spec.inputs.get("fails", 0.0):
            return Exit(kind=ExitKind.RETRYABLE, message="told to fail")
        return Exit(kind=ExitKind.OK, outputs={"name": job.spec.name})

    def inspect(self, job: StepJob, should_stop: StopWish) -> Found:
        """Take a moment, and find that some of it was done."""
        if self._guarded(job, _INSPECTION_S, should_stop) is not None:
            return Found(verdict=Verdict.UNDECIDED, detail="it was broken off")
        is_done = self._chance.uniform(0, 1) < _DONE
        return Found(verdict=Verdict.DONE if is_done else Verdict.PARTLY, detail="as told")

    def _guarded(self, job: StepJob, takes_s: float, should_stop: StopWish) -> Exit | None:
        """Let a step take its time; return why it did not come to its end, if it did not."""
        shim = _Shim(self._now() + takes_s, self._deadline)
        number = self._log.begin(job, lambda: shim.ends_at)
        self._shims.append(shim)
        try:
            while self._now() < shim.ends_at:
                self._sleep(min(_LOOK_S, shim.ends_at - self._now()))
                if self._now() < shim.ends_at and should_stop():
                    shim.end = min(shim.end, self._now())
                    return Exit(kind=ExitKind.CANCELLED, message="stopped")
        except Crash:
            shim.end = min(shim.end, self._now())
            raise
        finally:
            self._shims.remove(shim)
            self._log.end(job, number, shim.ends_at)
        if shim.deadline < shim.end:
            return Exit(kind=ExitKind.FENCED, message="the lease ran out")
        return None
