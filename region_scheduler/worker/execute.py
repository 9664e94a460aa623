"""Running a program as a step: in a shim, with a clean environment, to the death of its tree."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.util import cache_from_source
from pathlib import Path
from types import ModuleType
from typing import IO, Final, cast

import orjson

from region_scheduler.domain.step import StepJob, StopWish
from region_scheduler.errors import ensure
from region_scheduler.ports.time import Clock
from region_scheduler.worker import shim, steplog
from region_scheduler.worker.memory import Memory
from region_scheduler.worker.processes import RECEIPT_VARIABLE, kill_receipt
from region_scheduler.worker.receipts import Receipts
from region_scheduler.worker.steplog import Act

INHERITED: Final = frozenset({"PATH", "HOME", "LANG", "TZ", "TMPDIR"})
"""What a step sees of the worker's environment; everything else, secrets above all, is given."""

LOG_TAIL_BYTES: Final = 8192
_ASK_S: Final = 0.2


class How(StrEnum):
    """What ended an execution."""

    EXITED = "exited"
    STOP = "stop"
    CAP = "cap"
    MEMORY = "memory"
    LEASE = "lease"
    PARENT = "parent"
    HAND_BACK = "hand-back"
    NOT_STARTED = "not-started"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an execution ended; no process of it is left.

    Attributes:
        code: Exit code of its first process, negative for a signal; None if it never ran or nobody
            saw its end.
        is_killed: It had to be killed, so it may have left its work half done.
        started_at: CLOCK_BOOTTIME, seconds; 0 if not known.
        ended_at: CLOCK_BOOTTIME, seconds; 0 if not known.
        stop_reason: What `should_stop` said, if it said anything.
        detail: Why it was not started or what is known of its loss.
    """

    how: How
    code: int | None = None
    is_killed: bool = False
    started_at: float = 0.0
    ended_at: float = 0.0
    stop_reason: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """Starts programs in shims, for every runner that needs one. Threads may share it.

    Attributes:
        environ: The worker's environment; steps see of it what `INHERITED` names.
        receipts: Where shims are named before they are let go.
        stop_s: SIGINT comes this long before the lease's deadline, seconds.
        stop_grace_s: A cancelled or capped step may take this long to end, seconds.
        log_bytes_max: Output kept of one execution; its last 8 KiB always are.
        memory_mib_max: Of all processes of a step whose task says nothing, MiB; 0 for no bound.
    """

    clock: Clock
    environ: Mapping[str, str] = field(repr=False)
    receipts: Receipts
    stop_s: float
    stop_grace_s: float
    log_bytes_max: int = 16 * 1024 * 1024
    memory_mib_max: int = 0

    def memory_mib(self, job: StepJob) -> int:
        """Return the bound that holds for a job, MiB; 0 for none."""
        return job.spec.memory_mib_max or self.memory_mib_max

    def execute(
        self,
        job: StepJob,
        argv: Sequence[str],
        should_stop: StopWish,
        *,
        env: Mapping[str, str] | None = None,
        act: Act = Act.RUN,
        cap_s: float | None = None,
    ) -> Ended:
        """Run `argv` in the job's scratch directory until the last process of its tree is dead.

        Args:
            job: Names the log, the lease and the steps log, and who this is.
            argv: Program, looked up on the step's PATH, and its arguments; never a shell's text.
            should_stop: Asked five times a second; a reason interrupts the step.
            env: Added to what is inherited.
            act: What the steps log calls it.
            cap_s: Longest time, seconds; the step's own unless given.

        Returns:
            The end; a program that cannot be started is one, too.

        Raises:
            OSError: The shim could not be started, or the receipt not be kept. Nothing ran.
        """
        if reason := should_stop():
            return Ended(how=How.STOP, stop_reason=reason, detail="stopped before it began")
        command = self._command(job, argv, act, job.spec.cap_s if cap_s is None else cap_s)
        step_env = self._environment(job, env or {})
        with (
            open(job.log_path, "ab", opener=_private) as log,
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                cwd=job.work_dir,
                env=step_env,
                start_new_session=True,
            ) as process,
        ):
            return self._attend(job, act, process, should_stop)

    def _attend(
        self,
        job: StepJob,
        act: Act,
        process: subprocess.Popen[bytes],
        should_stop: StopWish,
    ) -> Ended:
        """Let the shim go, pass on a wish to stop, and read its report.

        An exception on the way lets go of the leash, at which the shim kills everything.
        """
        leash, reports = _pipes(process)
        stop_reason = ""
        memory = Memory(process.pid, self.memory_mib(job), self.clock)
        try:
            self.receipts.attach(job.receipt_id, process.pid)
            _tell(leash, b"go\n")
            poller = select.poll()
            poller.register(reports, select.POLLIN)
            while not poller.poll(_ASK_S * 1000):
                if not stop_reason and (stop_reason := should_stop()):
                    _tell(leash, b"stop\n")
                if word := memory.look():
                    _tell(leash, word)
            report = reports.read()
        finally:
            leash.close()
            process.wait()
        return self._ended(job, act, process, report, stop_reason)

    def _ended(
        self,
        job: StepJob,
        act: Act,
        process: subprocess.Popen[bytes],
        report: bytes,
        stop_reason: str,
    ) -> Ended:
        try:
            said = orjson.loads(report)
        except orjson.JSONDecodeError:
            return self._lost(job, act, process)
        errno = said["errno"]
        return Ended(
            how=How(said["how"]),
            code=said["code"],
            is_killed=bool(said["is_killed"]),
            started_at=said["started_at"],
            ended_at=said["ended_at"],
            stop_reason=stop_reason,
            detail=os.strerror(errno) if errno else self._told(job, said["how"]),
        )

    def _told(self, job: StepJob, how: str) -> str:
        return f"{self.memory_mib(job)} MiB" if how == How.MEMORY else ""

    def _lost(self, job: StepJob, act: Act, process: subprocess.Popen[bytes]) -> Ended:
        """Clear up after a shim that was killed; its step died with it, its orphans do here."""
        poller = select.poll()
        while kill_receipt(job.receipt_id):
            poller.poll(20)
        record = steplog.identity(job, act) | {
            "event": "end",
            "at": self.clock.now().timestamp(),
            "boot": self.clock.monotonic(),
            "shim_pid": process.pid,
            "exit": How.LOST.value,
            "code": None,
        }
        with suppress(OSError):
            steplog.append(job.steps_log, record)
        return Ended(how=How.LOST, detail=f"its shim ended with {process.returncode} unreported")

    def _command(self, job: StepJob, argv: Sequence[str], act: Act, cap_s: float) -> list[str]:
        orders = {
            "parent": os.getpid(),
            "lease": job.lease_path,
            "stop_s": self.stop_s,
            "stop_grace_s": self.stop_grace_s,
            "cap_s": cap_s,
            "log": job.log_path,
            "log_bytes_max": self.log_bytes_max,
            "steps_log": job.steps_log,
            "record": orjson.dumps(steplog.identity(job, act)).decode(),
        }
        said = [f"{name}={value}" for name, value in orders.items()]
        return [sys.executable, "-I", "-S", program_of(shim), *said, "--", *argv]

    def _environment(self, job: StepJob, given: Mapping[str, str]) -> dict[str, str]:
        inherited = {name: value for name, value in self.environ.items() if name in INHERITED}
        return inherited | dict(given) | {RECEIPT_VARIABLE: job.receipt_id}


def program_of(module: ModuleType) -> str:
    """Return the file to run a module as a program: compiled, if that was kept at its import.

    The interpreter compiles a program anew at every start, which costs the shim 5 ms.
    """
    source = module.__file__ or ""
    compiled = cache_from_source(source)
    return compiled if os.path.exists(compiled) else source


def log_tail(job: StepJob) -> str:
    """Return the last lines of the job's log, at most 8 KiB; empty if it has none."""
    try:
        with Path(job.log_path).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LOG_TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return text.encode()[-LOG_TAIL_BYTES:].decode("utf-8", "ignore")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    ensure(process.stdin is not None and process.stdout is not None, "a shim has both its pipes")
    return cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)


def _tell(leash: IO[bytes], word: bytes) -> None:
    with suppress(BrokenPipeError):  # the shim has ended already, and its report says how
        leash.write(word)
