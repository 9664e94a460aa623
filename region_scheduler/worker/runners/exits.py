"""From how a program ended to how its attempt ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import orjson

from region_scheduler.domain.step import StepJob
from region_scheduler.domain.task import Exit, ExitKind, Json, OnLoss
from region_scheduler.worker.execute import Ended, How, log_tail

OUTPUT_BYTES_MAX: Final = 64 * 1024

_KINDS: Final = {
    How.STOP: ExitKind.CANCELLED,
    How.CAP: ExitKind.CAPPED,
    How.MEMORY: ExitKind.CAPPED,
    How.LEASE: ExitKind.FENCED,
    How.PARENT: ExitKind.FENCED,
    How.HAND_BACK: ExitKind.HAND_BACK,
    How.NOT_STARTED: ExitKind.PERMANENT,
}


def logged(job: StepJob, kind: ExitKind, message: str, outputs: Mapping[str, Json] | None) -> Exit:
    """Return an exit with the job's log; outputs that are too large make it permanent."""
    size = len(orjson.dumps(outputs or {}))
    if size > OUTPUT_BYTES_MAX:
        kind, outputs = ExitKind.PERMANENT, None
        message = f"its outputs take {size} bytes; at most {OUTPUT_BYTES_MAX} can be handed on"
    return Exit(
        kind=kind,
        message=message,
        outputs=outputs or {},
        log_tail=log_tail(job),
        log_ref=job.log_path,
    )


def failed(job: StepJob, kind: ExitKind, message: str) -> Exit:
    """Return an exit without outputs."""
    return logged(job, kind, message, None)


def interrupted(job: StepJob, ended: Ended) -> Exit | None:
    """Return the exit of a program that did not end by itself; None if it did.

    A program that was asked to stop counts as stopped even if it then said 0: many say so.
    """
    if ended.how is How.EXITED:
        return None
    return failed(job, _kind(job, ended), describe(job, ended))


def describe(job: StepJob, ended: Ended) -> str:
    """Return one line that says what ended it."""
    reasons = {
        How.STOP: f"stopped: {ended.stop_reason}",
        How.CAP: f"it took longer than its cap of {job.spec.cap_s:g} s",
        How.MEMORY: f"its processes took more memory than its cap of {ended.detail}",
        How.LEASE: "the worker's lease ran out",
        How.PARENT: "the worker was lost",
        How.HAND_BACK: "the worker's lease was about to run out; nothing was run",
        How.NOT_STARTED: f"it could not be started: {ended.detail}",
        How.LOST: f"the shim was lost: {ended.detail}",
    }
    killed = "; it had to be killed" if ended.is_killed else ""
    return reasons.get(ended.how, f"it ended with {ended.code}") + killed


def _kind(job: StepJob, ended: Ended) -> ExitKind:
    if ended.how is How.LOST:
        is_repeatable = job.spec.on_loss is OnLoss.RETRY
        return ExitKind.RETRYABLE if is_repeatable else ExitKind.IN_DOUBT
    return _KINDS[ended.how]
