"""A submitter that kills or stops itself, for real, at one of the writes of an admission."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any

from region_scheduler.assembly.operator import Operator
from region_scheduler.assembly.tether import tie
from region_scheduler.config.load import Values, load
from region_scheduler.domain.admission import Plan
from region_scheduler.errors import RegionSchedulerError
from region_scheduler.simulation.faults import Kind, kinds_of

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__, "region_scheduler.assembly.production"])


@dataclass(frozen=True)
class Moment:
    """When a submitter signals itself: at its write `number`, counted from 0.

    Attributes:
        number: Beyond the last write is never.
    """

    number: int
    is_after: bool
    signal: signal.Signals

    def __str__(self) -> str:
        return f"{'after' if self.is_after else 'before'} write {self.number}"


NEVER = Moment(1_000_000, is_after=False, signal=signal.SIGKILL)


@dataclass(frozen=True)
class Submission:
    """What a submitter is told."""

    settings: Values
    plan: Plan
    key: str
    moment: Moment = NEVER


def launch(submission: Submission) -> tuple[ForkServerProcess, Connection]:
    """Start a submitter; it tells what came of it, unless it is killed."""
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_submit, args=(submission, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _submit(submission: Submission, told: Connection) -> None:
    """Submit as the command line does; tell the run and the writes, or the refusal."""
    tie(os.getppid())
    writes: list[str] = []
    with ExitStack() as closing:
        operator = Operator(load(submission.settings).settings, closing)
        operator.ports = operator.ports.through(_at(submission.moment, writes))
        try:
            with operator.submitter() as intake:
                admitted = intake.admit(submission.plan, submission.key)
        except RegionSchedulerError as error:
            told.send((type(error).__name__, writes))
        else:
            told.send((admitted.run.id, writes))


def _at(moment: Moment, writes: list[str]) -> Callable[[str, partial[Any]], Any]:
    def hook(point: str, call: partial[Any]) -> Any:
        # The lease's own writes come at any time, from a thread of their own.
        is_write = Kind.CRASH_AFTER in kinds_of(point) and not point.startswith("instances.")
        if not is_write:
            return call()
        writes.append(point)
        is_now = len(writes) == moment.number + 1
        if is_now and not moment.is_after:
            os.kill(os.getpid(), moment.signal)
        done = call()
        if is_now and moment.is_after:
            os.kill(os.getpid(), moment.signal)
        return done

    return hook
