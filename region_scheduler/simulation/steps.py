"""Steps that only leave a trace: the world's own log of effects, which no store can falsify."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from region_scheduler.domain.ids import ReceiptId, TaskId
from region_scheduler.domain.step import Found, StepJob, StopWish
from region_scheduler.domain.task import Exit, ExitKind, Token, Verdict

_MOMENT_S: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Fact:
    """The start or the end of a step, as a shim would note it; see `verify.counters.StepFact`."""

    event: str
    task: TaskId
    token: Token
    receipt_id: ReceiptId
    region: str
    boot: float
    shim_pid: int


@dataclass(frozen=True, slots=True)
class Effect:
    """One step that ran, in true order."""

    task: TaskId
    name: str
    token: Token
    receipt_id: ReceiptId
    attempt: int
    region: str


class Crash(BaseException):
    """A process of the world dies here; no handler of errors may survive it."""


@dataclass(slots=True)
class EffectLog:
    """A runner for every kind of step; `fails` counts down the attempts that end retryable.

    Attributes:
        now: True time, seconds.
        facts: When each step began and ended.
        crashes: Counts down the attempts that take their worker with them, once they have acted.
        awaiting: Names of tasks that wait for an answer instead of running.
        during: What happens while a task's step runs; an exit that it returns is the step's end.
    """

    now: Callable[[], float]
    name: str = "simulate"
    facts: list[Fact] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    inspected: list[Effect] = field(default_factory=list)
    fails: dict[str, int] = field(default_factory=dict)
    crashes: dict[str, int] = field(default_factory=dict)
    awaiting: frozenset[str] = frozenset()
    during: dict[str, Callable[[StopWish], Exit | None]] = field(default_factory=dict)
    verdict: Verdict = Verdict.NOT_DONE

    def run(self, job: StepJob, should_stop: StopWish) -> Exit:
        """Leave a trace and end."""
        if job.spec.name in self.awaiting or job.spec.runner in {"approval", "external-wait"}:
            return Exit(kind=ExitKind.AWAIT, message="waits for an answer")
        self.effects.append(_effect(job))
        with self._noted(job):
            return self._ran(job, should_stop)

    def _ran(self, job: StepJob, should_stop: StopWish) -> Exit:
        happens = self.during.get(job.spec.name)
        if happens is not None and (ended := happens(should_stop)) is not None:
            return ended
        if _is_due(self.crashes, job.spec.name):
            raise Crash(job.spec.name)
        if _is_due(self.fails, job.spec.name):
            return Exit(kind=ExitKind.RETRYABLE, message="told to fail")
        seen = {name: outputs.get("name") for name, outputs in job.upstream.items()}
        return Exit(kind=ExitKind.OK, outputs={"name": job.spec.name, "seen": seen})

    def inspect(self, job: StepJob, should_stop: StopWish) -> Found:
        """Look at what an earlier attempt did."""
        del should_stop
        self.inspected.append(_effect(job))
        with self._noted(job):
            pass
        return Found(verdict=self.verdict, outputs={"name": job.spec.name})

    @contextmanager
    def _noted(self, job: StepJob) -> Iterator[None]:
        """Note the start and the end, whatever ends it; all instants differ, as true ones do."""
        number = len(self.facts)
        self._note("start", job, number)
        try:
            yield
        finally:
            self._note("end", job, number)

    def _note(self, event: str, job: StepJob, number: int) -> None:
        boot = self.now() + len(self.facts) * _MOMENT_S
        self.facts.append(
            Fact(event, job.task, job.token, job.receipt_id, job.region, boot, number)
        )


def _is_due(left: dict[str, int], name: str) -> bool:
    count = left.get(name, 0)
    if count:
        left[name] = count - 1
    return count > 0


def _effect(job: StepJob) -> Effect:
    return Effect(job.task, job.spec.name, job.token, job.receipt_id, job.attempt, job.region)
