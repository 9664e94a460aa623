"""Steps that only take time, and fail as told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from region_scheduler.domain.ids import digest_of
from region_scheduler.domain.step import StepJob, StopWish
from region_scheduler.domain.task import Exit, ExitKind, Json
from region_scheduler.worker.lease_file import LeaseReader
from region_scheduler.worker.runners.in_process import InProcess
from region_scheduler.worker.runners.inspection import ChangesNothing

_GLANCE_S: Final = 0.2
_ALLOWED: Final = frozenset({ExitKind.OK, ExitKind.RETRYABLE, ExitKind.PERMANENT})


@dataclass(slots=True)
class SimulateRunner(ChangesNothing):
    """Waits `duration_s` x time scale inside the worker; nothing else happens.

    Inputs:
        duration_s: Seconds; the step's expected duration unless given.
        failure_rate: Share of attempts that end retryable, from 0 to 1; the same ones at every
            replay of the same task.
        failures: How attempts 1, 2, … end: `ok`, `retryable` or `permanent`; later ones end ok.
        outputs: What dependents read.

    Attributes:
        wait: Returns after so many seconds.
        replaces: Name of the runner that it stands in for; its inputs are then not read, but for
            `simulated_outputs`.
    """

    in_process: InProcess
    wait: Callable[[float], object]
    replaces: str = ""
    name: str = "simulate"

    def run(self, job: StepJob, should_stop: StopWish) -> Exit:
        """Wait, honouring the lease, the cap and a wish to stop, then end as told."""
        inputs: Mapping[str, Json] = {} if self.replaces else job.spec.inputs
        if self.replaces:
            inputs = {"outputs": job.spec.inputs.get("simulated_outputs", {})}
        duration_s = float(inputs.get("duration_s", job.spec.expected_s)) * job.time_scale
        return self.in_process.run(
            job, lambda lease: self._wait(job, should_stop, lease, duration_s) or _end(job, inputs)
        )

    def _wait(
        self, job: StepJob, should_stop: StopWish, lease: LeaseReader, duration_s: float
    ) -> Exit | None:
        """Return why the wait ended early, or nothing."""
        clock = self.in_process.clock
        began_at = clock.monotonic()
        end_at = began_at + duration_s
        while True:
            now = clock.monotonic()
            stop_at = lease.deadline() - self.in_process.stop_s
            if now >= stop_at:  # before all else: the process may have been paused
                return Exit(kind=ExitKind.FENCED, message="the worker's lease ran out")
            if now >= end_at:
                return None
            if reason := should_stop():
                return Exit(kind=ExitKind.CANCELLED, message=f"stopped: {reason}")
            cap_at = began_at + job.spec.cap_s
            if now >= cap_at:
                text = f"it took longer than its cap of {job.spec.cap_s:g} s"
                return Exit(kind=ExitKind.CAPPED, message=text)
            self.wait(min(end_at - now, cap_at - now, stop_at - now, _GLANCE_S))


def _end(job: StepJob, inputs: Mapping[str, Json]) -> Exit:
    kind = _fate(job, inputs)
    if kind is ExitKind.OK:
        return Exit(kind=kind, message="simulated", outputs=inputs.get("outputs", {}))
    return Exit(kind=kind, message=f"attempt {job.attempt} was told to end {kind.value}")


def _fate(job: StepJob, inputs: Mapping[str, Json]) -> ExitKind:
    failures: Sequence[str] = inputs.get("failures", ())
    if job.attempt <= len(failures):
        kind = ExitKind(failures[job.attempt - 1])
        return kind if kind in _ALLOWED else ExitKind.PERMANENT
    drawn = int(digest_of(job.task, str(job.attempt))[:8], 16) / 0xFFFFFFFF
    is_failure = drawn < float(inputs.get("failure_rate", 0.0))
    return ExitKind.RETRYABLE if is_failure else ExitKind.OK
