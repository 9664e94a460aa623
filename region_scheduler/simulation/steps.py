"""Steps that only leave a trace: the world's own log of effects, which no store can falsify."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from region_scheduler.domain.ids import ReceiptId, TaskId
from region_scheduler.domain.step import Found, Runner, StepJob, StopWish
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


class SimulatedRunner(Runner, Protocol):
    """What runs the steps of one worker, guarded by shims that read its lease."""

    def lease_moved(self, deadline: float) -> None:
        """Take note of a new deadline of the worker's lease."""
        ...


class Crash(BaseException):
    """A process of the world dies here; no handler of errors may survive it."""


@dataclass(slots=True)
class EffectLog:
    """A runner for every kind of step; `fails` counts down the attempts that end retryable.

    Attributes:
        now: True time, seconds.
        facts: When each step began and ended.
        under_way: Steps whose end is not noted yet, by number, and when each ends at the latest.
        crashes: Counts down the attempts that take their worker with them, once they have acted.
        awaiting: Names of tasks that wait for an answer instead of running.
        during: What happens while a task's step runs; an exit that it returns is the step's end.
    """

    now: Callable[[], float]
    name: str = "simulate"
    facts: list[Fact] = field(default_factory=list)
    under_way: dict[int, tuple[StepJob, Callable[[], float]]] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    inspected: list[Effect] = field(default_factory=list)
    fails: dict[str, int] = field(default_factory=dict)
    crashes: dict[str, int] = field(default_factory=dict)
    awaiting: frozenset[str] = frozenset()
    during: dict[str, Callable[[StopWish], Exit | None]] = field(default_factory=dict)
    verdict: Verdict = Verdict.NOT_DONE

    def lease_moved(self, deadline: float) -> None:
        """Do nothing: these steps take no time but what a test gives them."""

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

    def begin(self, job: StepJob, end: Callable[[], float] = lambda: float("inf")) -> int:
        """Note that a step begins, and return by which number its end is to be noted.

        Args:
            job: The step.
            end: Says when it ends at the latest, even if nobody is there to note it.
        """
        number = len(self.facts)
        self.under_way[number] = (job, end)
        self._note("start", job, number, self.now())
        return number

    def end(self, job: StepJob, number: int, at: float) -> None:
        """Note that a step has ended, and when."""
        self.under_way.pop(number, None)
        self._note("end", job, number, at)

    def seen_now(self) -> tuple[list[Fact], list[int]]:
        """Return the facts as they truly are by now, and the numbers of the steps that go on."""
        found, alive, now = list(self.facts), [], self.now()
        for number, (job, end) in self.under_way.items():
            at = end()
            if at <= now:
                found.append(_fact("end", job, number, at))
            else:
                alive.append(number)
        return found, alive

    @contextmanager
    def _noted(self, job: StepJob) -> Iterator[None]:
        """Note the start and the end, whatever ends it."""
        number = self.begin(job)
        try:
            yield
        finally:
            self.end(job, number, self.now())

    def _note(self, event: str, job: StepJob, number: int, at: float) -> None:
        # No two instants are the same, as true ones are not.
        self.facts.append(_fact(event, job, number, at + len(self.facts) * _MOMENT_S))


def _fact(event: str, job: StepJob, number: int, boot: float) -> Fact:
    return Fact(event, job.task, job.token, job.receipt_id, job.region, boot, number)


def _is_due(left: dict[str, int], name: str) -> bool:
    count = left.get(name, 0)
    if count:
        left[name] = count - 1
    return count > 0


def _effect(job: StepJob) -> Effect:
    return Effect(job.task, job.spec.name, job.token, job.receipt_id, job.attempt, job.region)
