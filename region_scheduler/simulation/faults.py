"""One fault at one port call: the world meets it, and must come to the same end.

A call is named by its point and how many calls of that point came before it, so that
`tasks.write#3:lost-after` says exactly what to replay, and goes on saying so when calls of other
points come or go. The fault happens once; then the world goes on: a process that died is
replaced by its next incarnation, everything else tries again as its loop would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from region_scheduler.errors import (
    Fenced,
    LostRace,
    OutcomeUnknown,
    RegionSchedulerError,
    Unavailable,
)
from region_scheduler.ports.documents import WriteResult, Written
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import SimulatedRegion, SimulatedWorker, World

T = TypeVar("T")


class Kind(StrEnum):
    """What happens at a call."""

    CRASH_BEFORE = "crash-before"
    CRASH_AFTER = "crash-after"
    UNAVAILABLE = "unavailable"
    LOST_BEFORE = "lost-before"
    LOST_AFTER = "lost-after"
    TWICE = "twice"
    STORE_GONE = "store-gone"


_WRITES: Final = frozenset(
    {
        "backlog.add",
        "backlog.clear",
        "backlog.prepare",
        "backlog.remove",
        "backlog.rest",
        "metadata.clear",
        "metadata.record",
        "metadata.remove",
        "queue.publish",
        "leftovers.remove_edges",
        "tasks.insert_edges",
    }
)
_DOCUMENT_WRITES: Final = ("insert", "write", "remove")
_RELATIONAL: Final = ("backlog.", "metadata.")
_OF_WRITES: Final = tuple(kind for kind in Kind if kind is not Kind.STORE_GONE)


def kinds_of(point: str) -> tuple[Kind, ...]:
    """Return what can happen at a call: a read changes nothing, a wake-up never raises.

    That the relational stores are gone is seen first by the next call to one of them.
    """
    if point == "wake_ups.wake":
        return (Kind.CRASH_BEFORE, Kind.LOST_BEFORE, Kind.TWICE)
    is_write = point in _WRITES or point.rpartition(".")[2] in _DOCUMENT_WRITES
    kinds = _OF_WRITES if is_write else (Kind.CRASH_BEFORE, Kind.UNAVAILABLE)
    return (*kinds, Kind.STORE_GONE) if point.startswith(_RELATIONAL) else kinds


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at one call.

    Attributes:
        number: How many calls of the point came before, since the faults were armed.
    """

    point: str
    number: int
    kind: Kind

    def __str__(self) -> str:
        """Return what `of` reads."""
        return f"{self.point}#{self.number}:{self.kind}"

    @classmethod
    def of(cls, text: str) -> Fault:
        """Return the fault that `text` names."""
        call, _, kind = text.partition(":")
        point, _, number = call.partition("#")
        return cls(point, int(number), Kind(kind))


@dataclass(slots=True)
class Faults:
    """A hook that counts the calls and, once, makes one of them go wrong.

    Attributes:
        fault: Which, if any.
        lose_stores: Deletes the regions' relational stores.
        calls: How often each point was called so far.
        is_armed: Whether calls count.
        has_struck: Whether the fault has happened.
    """

    fault: Fault | None = None
    lose_stores: Callable[[], None] = lambda: None
    calls: Counter[str] = field(default_factory=Counter)
    is_armed: bool = False
    has_struck: bool = False

    def __call__(self, point: str, call: partial[Any]) -> Any:
        """Make the call, well or not."""
        if not self.is_armed:
            return call()
        number = self.calls[point]
        self.calls[point] += 1
        fault = self.fault
        if fault is None or (fault.point, fault.number) != (point, number):
            return call()
        self.has_struck = True
        if fault.kind is Kind.STORE_GONE:
            self.lose_stores()
            return call()
        return struck(point, fault.kind, call)

    def all(self) -> Iterator[Fault]:
        """Yield everything that could have happened at the calls so far."""
        for point, count in self.calls.items():
            for number in range(count):
                yield from (Fault(point, number, kind) for kind in kinds_of(point))


def struck(point: str, kind: Kind, call: partial[Any]) -> Any:
    """Make a call go wrong in one way, and return or raise what its caller then sees."""
    match kind:
        case Kind.CRASH_BEFORE:
            raise Crash(point)
        case Kind.CRASH_AFTER:
            call()
            raise Crash(point)
        case Kind.UNAVAILABLE:
            if point == "queue.publish":
                return [False] * len(call.args[0])
            raise Unavailable(dependency=point, detail="told to fail")
        case Kind.LOST_BEFORE:
            return _lost_answer(point, call)
        case Kind.LOST_AFTER:
            call()
            return _lost_answer(point, call)
        case _:
            call()
            return call()


def _lost_answer(point: str, call: partial[Any]) -> Any:
    """Return what the port promises to say when nobody knows, or raise it."""
    method = point.rpartition(".")[2]
    if point == "wake_ups.wake":
        return None
    if point == "queue.publish":
        return [True] * len(call.args[0])
    if point == "tasks.insert_edges":
        return [None] * len(call.args[0])
    if point.startswith(_RELATIONAL):
        raise OutcomeUnknown(dependency=point, detail="told to lose its answer")
    if method in {"remove", "remove_edges"}:
        return [WriteResult.UNKNOWN for _ in call.args[0]]
    if method in _DOCUMENT_WRITES:
        return [Written(WriteResult.UNKNOWN) for _ in call.args[0]]
    raise OutcomeUnknown(dependency=point, detail="told to lose its answer")


class FaultyWorld(World):
    """A world whose processes may die at one call, and go on as production would."""

    def __init__(self, directory: Path, regions: tuple[str, ...], fault: Fault | None) -> None:
        self.faults = Faults(fault, self.lose_stores)
        super().__init__(directory, regions, hook=self.faults)

    def perform(
        self, region: SimulatedRegion, act: Callable[[], T], worker: SimulatedWorker | None = None
    ) -> T | None:
        """Let a process act; one that dies is replaced, one that fails tries again later."""
        try:
            return act()
        except (Crash, Fenced):  # a process whose lease is over ends, and is started anew
            self._replace(region, worker)
        except (Unavailable, OutcomeUnknown, LostRace):
            if worker is not None:
                region.broker.return_unacknowledged()
        return None

    def insist(self, region: SimulatedRegion, act: Callable[[], T], tries: int = 3) -> T | None:
        """Let a person act through the serving process of `region`, again after an error.

        Returns:
            What the act returned; None if the process died under it: then nobody asks again.
        """
        for _ in range(tries):
            try:
                return act()
            except Crash:
                self._replace(region, None)
                return None
            except RegionSchedulerError as error:
                if not error.is_retryable:
                    raise
                self.pass_time(self.timings.reconcile_every_s)
        raise AssertionError(f"{tries} tries against a single fault were not enough")

    def _replace(self, region: SimulatedRegion, worker: SimulatedWorker | None) -> None:
        """Start the next incarnation, again if the fault meets it as it starts."""
        try:
            self._start(region, worker)
        except (Crash, Unavailable, OutcomeUnknown):
            self._start(region, worker)

    def _start(self, region: SimulatedRegion, worker: SimulatedWorker | None) -> None:
        if worker is None:
            self.restart(region)
        else:
            self.replace_worker(region, worker)
