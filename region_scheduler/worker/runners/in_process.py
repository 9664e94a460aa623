"""Steps that run inside the worker: noted like others, and under the same lease."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from region_scheduler.domain.step import StepJob
from region_scheduler.domain.task import Exit, ExitKind, Json
from region_scheduler.ports.time import Clock
from region_scheduler.worker import steplog
from region_scheduler.worker.execute import How
from region_scheduler.worker.lease_file import LeaseReader
from region_scheduler.worker.steplog import Act, StepEvent

_HOW: Final = {
    ExitKind.CANCELLED: How.STOP,
    ExitKind.CAPPED: How.CAP,
    ExitKind.FENCED: How.LEASE,
}


@dataclass(frozen=True, slots=True)
class InProcess:
    """Runs a piece of work as a step.

    Attributes:
        stop_s: Work begins and goes on only while the lease lasts longer than this, seconds.
    """

    clock: Clock
    stop_s: float

    def run(self, job: StepJob, work: Callable[[LeaseReader], Exit]) -> Exit:
        """Note the start, do `work`, note the end; hand back if the lease is about to run out.

        Work that found its lease gone is noted as ended at the deadline: while its process was
        paused it did nothing.

        Raises:
            OSError: The steps log cannot be written.
        """
        with LeaseReader(job.lease_path) as lease:
            if lease.deadline() - self.clock.monotonic() <= self.stop_s:
                text = "the worker's lease was about to run out; nothing was run"
                return Exit(kind=ExitKind.HAND_BACK, message=text)
            self._note(job, StepEvent.START, self.clock.monotonic())
            ended = work(lease)
            now = self.clock.monotonic()
            is_fenced = ended.kind is ExitKind.FENCED
            boot = min(now, lease.deadline() or now) if is_fenced else now
        how = _HOW.get(ended.kind, How.EXITED)
        code = 0 if ended.kind is ExitKind.OK else 1
        self._note(job, StepEvent.END, boot, exit=how.value, code=code)
        return ended

    def _note(self, job: StepJob, event: StepEvent, boot: float, **more: Json) -> None:
        when = {"at": self.clock.now().timestamp(), "boot": boot, "shim_pid": os.getpid()}
        record = steplog.identity(job, Act.RUN) | {"event": event.value} | when | more
        steplog.append(job.steps_log, record)
