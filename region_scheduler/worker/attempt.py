"""One attempt, from a message to its settled end."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from tenacity import Retrying, retry_if_exception_type, wait_exponential

from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.ids import Incarnation, ReceiptId
from region_scheduler.domain.lease import LeaseTimings
from region_scheduler.domain.run import RunMode
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.step import Found, Runner, StepJob
from region_scheduler.domain.task import (
    SCHEMA,
    Exit,
    ExitKind,
    Holder,
    Json,
    OnLoss,
    Task,
    Verdict,
)
from region_scheduler.domain.transitions import (
    CANCEL,
    Stamp,
    complete,
    record_verdict,
    requeue,
    start,
)
from region_scheduler.errors import (
    Fenced,
    IllegalMove,
    LostRace,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from region_scheduler.lifecycle.answers import apply_answers
from region_scheduler.lifecycle.residence import Residence
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.ports.queue import AttemptMessage
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock, Ids
from region_scheduler.worker.stop_watch import StopWatch

R = TypeVar("R")

_NOT_OURS = (Fenced, LostRace, IllegalMove, NotFound)
_NO_ANSWER = (Unavailable, OutcomeUnknown)


class Receipts(Protocol):
    """The receipts that this worker's beat lists."""

    def enter(self, receipt_id: ReceiptId) -> None:
        """Answer for a receipt from now on; returns when the beat would list it."""
        ...

    def leave(self, receipt_id: ReceiptId) -> None:
        """Answer for it no longer."""
        ...


@dataclass(frozen=True, slots=True)
class WorkerPaths:
    """Where a worker keeps things; all of them directories of its region, but the lease file."""

    work_dir: Path
    state_dir: Path
    log_dir: Path
    steps_log: Path
    lease_path: Path


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """Who the worker is.

    Attributes:
        incarnation: The life of the worker's master; its pool children hold tasks in its name.
    """

    incarnation: Incarnation
    region: str


class AttemptHandler:
    """Handles messages one at a time; many handlers may share one worker's lease.

    Args:
        who: This worker.
        graph: The graph store.
        settler: Does what follows a completion.
        runners: Runners by name.
        receipts: This worker's register.
        deadline: Reads the lease's deadline, by this machine's monotonic clock.
        timings: Lease arithmetic.
        clock: This machine's clock.
        ids: For receipts.
        paths: Where files go.
        pause: Waits so many seconds between two tries of a call that was not answered.
        is_ending: Whether the worker was told to end: steps are stopped and go back.
        on_refused: Told of an attempt whose completion came too late: its token had moved.
        residence: The way to resident data; without it a resident task is not run.
    """

    def __init__(
        self,
        who: WorkerIdentity,
        graph: GraphStores,
        settler: Settler,
        runners: Mapping[str, Runner],
        receipts: Receipts,
        deadline: Callable[[], float],
        timings: LeaseTimings,
        clock: Clock,
        ids: Ids,
        paths: WorkerPaths,
        pause: Callable[[float], None],
        is_ending: Callable[[], bool] = lambda: False,
        on_refused: Callable[[Task, Fenced], None] = lambda _task, _error: None,
        residence: Residence | None = None,
    ) -> None:
        self._who = who
        self._graph = graph
        self._settler = settler
        self._runners = runners
        self._receipts = receipts
        self._deadline = deadline
        self._timings = timings
        self._clock = clock
        self._ids = ids
        self._paths = paths
        self._pause = pause
        self._is_ending = is_ending
        self._on_refused = on_refused
        self._residence = residence

    def handle(self, message: AttemptMessage) -> None:
        """Run the attempt that `message` is about, if it is still to be had.

        A message that starts nothing is dropped: its task is claimed by another, or comes back by
        the dispatch time-out.

        Raises:
            Unavailable, OutcomeUnknown: The completion could not be written; the lease will tell.
        """
        if message.schema != SCHEMA or message.region != self._who.region:
            self._hand_back(message, f"delivered to {self._who.region}")
            return
        if not self._may_begin():
            self._hand_back(message, "the worker's lease is about to run out")
            return
        receipt_id = ReceiptId(self._ids.new())
        self._receipts.enter(receipt_id)
        try:
            self._attempt(message, receipt_id)
        finally:
            self._receipts.leave(receipt_id)

    def _may_begin(self) -> bool:
        """Say whether the lease lasts, if need be after a renewal that is on its way.

        The pause also keeps a worker that cannot renew from handing one task back without an end:
        its scheduler, which still can, would send it again at once.
        """
        if self._seconds_left() <= self._timings.stop_s:
            self._pause(self._timings.retry_s)
        return self._seconds_left() > self._timings.stop_s

    def _attempt(self, message: AttemptMessage, receipt_id: ReceiptId) -> None:
        holder = Holder(self._who.incarnation, receipt_id)
        begin = partial(start, token=message.token, holder=holder, at=self._clock.now())
        try:
            known = self._glimpsed(message)
            task = commit_one(self._graph.tasks, Change(message.task, begin, known=known))
        except _NO_ANSWER:
            return  # dropped: only the document that carries this receipt may run
        except _NOT_OURS:
            self._settler.wake([self._who.region])  # what is dropped makes room in the queue
            return
        try:
            ended = self._run(task, holder)
        except _NOT_OURS:
            return  # the token moved while the attempt was still looking
        except ResidentDataMissing as missing:
            ended = Exit(kind=ExitKind.RETRYABLE, message=str(missing))
        except _NO_ANSWER as error:
            ended = Exit(kind=ExitKind.HAND_BACK, message=f"the step did not begin: {error}")
        else:
            ended = self._sealed(task, ended)
        self._complete(task, holder, ended)

    def _glimpsed(self, message: AttemptMessage) -> Task | None:
        """Return the task if the follower shows the very claim that the message is about.

        It saves a round trip to the leader; whatever else it shows is asked of the leader.
        """
        with suppress(Unavailable):
            seen = self._graph.tasks.glimpse(message.task)
            if seen and (seen.state, seen.token) == (TaskState.CLAIMED, message.token):
                return seen
        return None

    def _run(self, task: Task, holder: Holder) -> Exit:
        """Run the step; whatever this raises was raised before the step began."""
        if self._seconds_left() <= self._timings.stop_s:
            return Exit(kind=ExitKind.HAND_BACK, message="the lease ran out before the step began")
        runner = self._runners.get(task.spec.runner)
        if runner is None:
            known = ", ".join(sorted(self._runners))
            text = f"no runner {task.spec.runner!r} at this worker; it has {known}"
            return Exit(kind=ExitKind.PERMANENT, message=text)
        if task.spec.is_resident and self._residence is None:
            return Exit(kind=ExitKind.PERMANENT, message="this worker knows no resident storage")
        job = self._job(task, holder.receipt_id)
        should_stop = StopWatch(
            self._graph, task, self._is_ending, self._clock, self._timings.renew_every_s
        ).ask
        try:
            ended = None
            if task.is_inspect:
                ended = self._inspect(runner, job, task, holder, should_stop)
            return _by_wish(ended or runner.run(job, should_stop), task, should_stop())
        finally:
            shutil.rmtree(job.work_dir, ignore_errors=True)

    def _inspect(
        self,
        runner: Runner,
        job: StepJob,
        task: Task,
        holder: Holder,
        should_stop: Callable[[], str],
    ) -> Exit | None:
        """Look before doing; None means that the attempt goes on."""
        found = runner.inspect(job, should_stop)
        if found.verdict is Verdict.UNDECIDED:
            if should_stop():
                return Exit(kind=ExitKind.CANCELLED, message="stopped while it was inspecting")
            if self._seconds_left() <= self._timings.stop_s:
                return Exit(kind=ExitKind.FENCED, message="the lease ran out while it inspected")
            return Exit(kind=ExitKind.AWAIT, message=f"cannot tell what was done: {found.detail}")
        record = partial(
            record_verdict,
            token=task.token,
            holder=holder,
            verdict=found.verdict,
            at=self._clock.now(),
        )
        self._persist(lambda: commit_one(self._graph.tasks, Change(task.id, record)))
        return _found_done(found) if found.verdict is Verdict.DONE else None

    def _complete(self, task: Task, holder: Holder, ended: Exit) -> None:
        finish = partial(
            complete, token=task.token, holder=holder, ended=ended, at=self._clock.now()
        )
        try:
            after = self._persist(lambda: commit_one(self._graph.tasks, Change(task.id, finish)))
        except Fenced as refused:
            self._on_refused(task, refused)  # what this attempt did counts for nothing
            return
        except _NOT_OURS:
            return
        moved = apply_answers(self._graph, [after], self._clock) if _is_awaiting(ended) else []
        self._settler.settle(moved or [after])
        self._settler.wake([self._who.region])  # a worker is free again

    def _job(self, task: Task, receipt_id: ReceiptId) -> StepJob:
        work_dir = self._paths.work_dir / receipt_id
        work_dir.mkdir(parents=True, exist_ok=True)
        log_dir = self._paths.log_dir / task.run
        log_dir.mkdir(parents=True, exist_ok=True)
        key = task.id.rpartition(".")[2]
        before = self._persist(lambda: self._graph.tasks.outputs_before(task.id))
        return StepJob(
            task=task.id,
            run=task.run,
            tenant=task.tenant,
            zone=task.zone,
            mode=RunMode.APPLY,
            spec=replace(task.spec, inputs=self._opened(task.spec.inputs)),
            token=task.token,
            receipt_id=receipt_id,
            attempt=task.attempt,
            region=self._who.region,
            upstream={name: self._opened(outputs) for name, outputs in before.items()},
            work_dir=str(work_dir),
            state_dir=str(self._paths.state_dir),
            log_path=str(log_dir / f"{key}.{task.submission}.{task.attempt}.log"),
            steps_log=str(self._paths.steps_log),
            lease_path=str(self._paths.lease_path),
        )

    def _sealed(self, task: Task, ended: Exit) -> Exit:
        """Return an end as it may be written down; what is resident of it stays in this region."""
        residence = self._residence
        if residence is None:
            return ended
        return self._persist(lambda: residence.sealed_exit(task, ended))

    def _opened(self, value: Mapping[str, Json]) -> Mapping[str, Json]:
        if self._residence is None:
            return value
        try:
            return self._residence.opened(value)
        except Unavailable as missing:
            raise ResidentDataMissing(str(missing)) from missing

    def _hand_back(self, message: AttemptMessage, reason: str) -> None:
        stamp = Stamp(self._who.incarnation, self._clock.now())
        give_back = partial(requeue, token=message.token, reason=reason, stamp=stamp)
        try:
            task = commit_one(self._graph.tasks, Change(message.task, give_back))
        except (*_NOT_OURS, *_NO_ANSWER):
            return  # the dispatch time-out gives it back
        self._settler.settle([task])

    def _persist(self, call: Callable[[], R]) -> R:
        """Repeat a call that may safely be repeated until it is answered or the lease is over."""
        retrying = Retrying(
            retry=retry_if_exception_type(_NO_ANSWER),
            wait=wait_exponential(multiplier=0.05, max=1.0),
            stop=lambda _: self._seconds_left() <= self._timings.stop_s,
            sleep=self._pause,
            reraise=True,
        )
        return retrying(call)

    def _seconds_left(self) -> float:
        return self._deadline() - self._clock.monotonic()


class ResidentDataMissing(Exception):
    """Resident data that an attempt needs is in no region that answers; it is tried again later."""


def _by_wish(ended: Exit, task: Task, wish: str) -> Exit:
    """Return the end as the wish to stop meant it: only a cancel ends the task for good.

    After any other the task goes back, in doubt if the step may have changed the world.
    """
    if ended.kind is not ExitKind.CANCELLED or wish == CANCEL:
        return ended
    is_harmless = task.spec.on_loss is OnLoss.RETRY
    return replace(ended, kind=ExitKind.HAND_BACK if is_harmless else ExitKind.IN_DOUBT)


def _found_done(found: Found) -> Exit:
    message = f"an earlier attempt had done it: {found.detail}"
    return Exit(kind=ExitKind.OK, message=message, outputs=found.outputs)


def _is_awaiting(ended: Exit) -> bool:
    return ended.kind is ExitKind.AWAIT
