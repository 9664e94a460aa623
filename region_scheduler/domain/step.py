"""One execution of a step, as a runner sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from region_scheduler.domain.ids import ReceiptId, RunId, TaskId
from region_scheduler.domain.run import RunMode
from region_scheduler.domain.task import Exit, Json, TaskSpec, Token, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class StepJob:
    """What a runner is given.

    Attributes:
        upstream: Outputs of the direct predecessors, by task name.
        time_scale: Durations of simulated steps are multiplied by this; 0 means at once.
        work_dir: Scratch of this attempt; exists, empty, removed afterwards.
        state_dir: This region's directory for terraform states; survives attempts.
        log_path: File that the step's output goes to.
        steps_log: File to which the step process itself appends its start and end (JSON lines).
        lease_path: File that holds the lease deadline of this worker; see `worker.lease_file`.
    """

    task: TaskId
    run: RunId
    tenant: str
    zone: str
    mode: RunMode = RunMode.APPLY
    spec: TaskSpec
    token: Token
    receipt_id: ReceiptId
    attempt: int
    region: str
    upstream: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    time_scale: float = 1.0
    work_dir: str
    state_dir: str
    log_path: str
    steps_log: str
    lease_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What an inspection saw of an earlier attempt.

    Attributes:
        outputs: Read back, if the verdict is `done`.
        detail: For the person who may have to decide.
    """

    verdict: Verdict
    outputs: Mapping[str, Json] = field(default_factory=dict)
    detail: str = ""


StopWish = Callable[[], str]
"""Asked now and then while a step runs; returns why it should stop, or an empty text."""


class Runner(Protocol):
    """Runs steps of one kind."""

    name: str

    def run(self, job: StepJob, should_stop: StopWish) -> Exit:
        """Run the step to its end; every failure is an `Exit`, never an exception."""
        ...

    def inspect(self, job: StepJob, should_stop: StopWish) -> Found:
        """Look, without changing anything, at what a lost attempt has done."""
        ...
