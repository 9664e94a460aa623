"""A worker's directories, lease and executor, for tests that run real steps."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from region_scheduler.domain.ids import ClaimId, ReceiptId, RunId, TaskId
from region_scheduler.domain.run import RunMode
from region_scheduler.domain.step import StepJob
from region_scheduler.domain.task import OnLoss, TaskSpec, Token
from region_scheduler.runtime.system import SystemClock
from region_scheduler.worker.execute import Executor
from region_scheduler.worker.lease_file import LeaseFile
from region_scheduler.worker.receipts import Receipts
from region_scheduler.worker.steplog import StepRecord, read

PYTHON = [sys.executable, "-I", "-S", "-c"]


class Stage:
    """One region's worker in `root`, with a lease of `lease_s` seconds from now."""

    def __init__(
        self,
        root: Path,
        *,
        lease_s: float = 30.0,
        stop_s: float = 0.2,
        stop_grace_s: float = 0.5,
    ) -> None:
        self.root = root
        self.clock = SystemClock()
        self.state_dir = root / "state"
        self.steps_log = root / "steps.jsonl"
        for name in ("state", "logs", "work"):
            (root / name).mkdir(exist_ok=True)
        self.lease = LeaseFile(root / "lease")
        self.receipts = Receipts(root / "receipts")
        self.environ = {"PATH": os.environ["PATH"], "AWS_SECRET_ACCESS_KEY": "s3cret"}
        self.executor = Executor(
            clock=self.clock,
            environ=self.environ,
            receipts=self.receipts,
            stop_s=stop_s,
            stop_grace_s=stop_grace_s,
            log_bytes_max=20_000,
        )
        self.extend(lease_s)

    def extend(self, seconds: float) -> None:
        """Let the lease run out that many seconds from now."""
        self.lease.extend(self.clock.monotonic() + seconds)

    def job(
        self,
        runner: str = "command",
        inputs: Mapping[str, Any] | None = None,
        *,
        name: str = "r1",
        cap_s: float = 20.0,
        upstream: Mapping[str, Mapping[str, Any]] | None = None,
        mode: RunMode = RunMode.APPLY,
        state_key: str = "",
        attempt: int = 1,
        expected_s: float = 0.0,
        time_scale: float = 1.0,
        on_loss: OnLoss = OnLoss.RETRY,
        memory_mib_max: int = 0,
    ) -> StepJob:
        """Return a job with an empty scratch directory of its own, its receipt entered."""
        work_dir = self.root / "work" / name
        work_dir.mkdir()
        # Processes are found by their receipt, machine-wide: tests that run side by side differ.
        receipt_id = ReceiptId(f"{name}-{uuid.uuid4().hex}")
        self.receipts.enter(receipt_id)
        return StepJob(
            task=TaskId("tasks/run.a"),
            run=RunId("run"),
            tenant="acme",
            zone="prod",
            mode=mode,
            spec=TaskSpec(
                name="a",
                runner=runner,
                inputs=inputs or {},
                region="eu-west",
                allowed_regions=("eu-west",),
                cap_s=cap_s,
                memory_mib_max=memory_mib_max,
                expected_s=expected_s,
                on_loss=on_loss,
                state_key=state_key,
            ),
            token=Token(3, ClaimId("c3")),
            receipt_id=receipt_id,
            attempt=attempt,
            region="eu-west",
            upstream=upstream or {},
            time_scale=time_scale,
            work_dir=str(work_dir),
            state_dir=str(self.state_dir),
            log_path=str(self.root / "logs" / f"{name}.log"),
            steps_log=str(self.steps_log),
            lease_path=str(self.lease.path),
        )

    def records(self) -> list[StepRecord]:
        """Return what the steps have noted so far."""
        return read([self.steps_log])

    def log(self, job: StepJob) -> str:
        """Return the output kept of a job."""
        return Path(job.log_path).read_text()


def python(code: str) -> Sequence[str]:
    """Return an argv that runs `code`."""
    return [*PYTHON, code]


def never() -> str:
    """Return no reason to stop."""
    return ""
