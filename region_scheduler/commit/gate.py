"""Commit decisions, one by one or in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from region_scheduler.errors import (
    Fenced,
    IllegalMove,
    LostRace,
    NotFound,
    OutcomeUnknown,
    RegionSchedulerError,
    Unavailable,
)
from region_scheduler.ports.documents import Documents, Identified, WriteResult, Written

D = TypeVar("D", bound=Identified)
Decision = Callable[[D], D]
"""From the value read to the value wanted; the same object means that nothing is left to do."""

_ROUNDS_MAX = 12
"""Rounds of writing and reading again before contention is reported as a lost race."""


class Fate(StrEnum):
    """What became of one change."""

    COMMITTED = "committed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Change(Generic[D]):
    """One document to change.

    Attributes:
        id: The document.
        decide: The decision; may be asked more than once, with newer values.
        known: The value to begin with; read at the leader if None. A stale one costs a round.
    """

    id: str
    decide: Decision[D]
    known: D | None = None


@dataclass(frozen=True, slots=True)
class Outcome(Generic[D]):
    """What became of a change.

    Attributes:
        value: The document as it now stands, as far as it is known.
        error: Why it was refused, or that the answer was lost.
    """

    fate: Fate
    value: D | None = None
    error: RegionSchedulerError | None = None

    @property
    def is_ours(self) -> bool:
        """Whether the document now says what was wanted."""
        return self.fate in {Fate.COMMITTED, Fate.UNCHANGED}


def commit(store: Documents[D], changes: Sequence[Change[D]]) -> list[Outcome[D]]:
    """Commit each change on its own; outcomes are data, in the order of `changes`.

    Each round is at most one read and one write call for all that are still open. What is still
    without a definite answer in the end comes back as `UNKNOWN`; only the same change may then
    follow.
    """
    tries = [_Try(change, change.known) for change in changes]
    for _ in range(_ROUNDS_MAX):
        _read(store, [t for t in tries if t.outcome is None and t.value is None])
        for open_try in tries:
            open_try.decide()
        open_ = [t for t in tries if t.outcome is None]
        if not open_:
            break
        _write(store, open_)
    return [t.outcome or t.given_up() for t in tries]


def commit_one(store: Documents[D], change: Change[D]) -> D:
    """Commit one change and return the document as it then stands.

    Raises:
        LostRace, Fenced, IllegalMove: The decision refused; nothing was written.
        NotFound: There is no such document.
        OutcomeUnknown: The answer was lost; only the same change may follow.
        Unavailable: Nothing was done.
    """
    (outcome,) = commit(store, [change])
    if outcome.error is not None:
        raise outcome.error
    assert outcome.value is not None  # noqa: S101 - an outcome without error carries the value
    return outcome.value


@dataclass(slots=True)
class _Try(Generic[D]):
    """How far a change has come.

    Attributes:
        value: The document as last read; None if it must be read again.
        wanted: What is to be written on `value`.
        lost: A write of `wanted` on this revision was sent whose answer was lost: it may still be
            travelling for as long as the document keeps that revision.
    """

    change: Change[D]
    value: D | None
    wanted: D | None = None
    lost: tuple[D, D] | None = None
    outcome: Outcome[D] | None = None

    def found(self, value: D) -> None:
        """Take what the leader has; a lost write stays open only while its revision stands."""
        self.value = value
        if self.lost is not None and self.lost[0].rev == value.rev:
            self.wanted = self.lost[1]  # the very same write again, not a new one like it
        else:
            self.lost = None

    def decide(self) -> None:
        """Ask the decision, unless it has spoken on this value."""
        if self.outcome is not None or self.wanted is not None or self.value is None:
            return
        try:
            after = self.change.decide(self.value)
        except (LostRace, Fenced, IllegalMove) as error:
            self.outcome = Outcome(Fate.REFUSED, self.value, error)
            return
        if after is self.value:
            self.outcome = Outcome(Fate.UNCHANGED, self.value)
        else:
            self.wanted = after

    def answered(self, before: D, after: D, answer: Written[D]) -> None:
        """Take the answer to a write."""
        match answer.result:
            case WriteResult.APPLIED:
                self.outcome = Outcome(Fate.COMMITTED, answer.value)
            case WriteResult.CONFLICT:
                self.value = self.wanted = None
            case WriteResult.MISSING:
                gone = NotFound(thing="document", id=self.change.id)
                self.outcome = Outcome(Fate.REFUSED, error=gone)
            case WriteResult.UNKNOWN:
                self.lost = (before, after)

    def unavailable(self, error: Unavailable) -> None:
        """End without an answer; who lost one before must not say that nothing was done."""
        self.outcome = self.given_up() if self.lost else Outcome(Fate.REFUSED, self.value, error)

    def given_up(self) -> Outcome[D]:
        """Return what can be said when the rounds are used up."""
        if self.lost is not None:
            text = f"write of {self.change.id}"
            unknown = OutcomeUnknown(dependency="graph store", detail=text)
            return Outcome(Fate.UNKNOWN, error=unknown)
        race = LostRace(thing=self.change.id, winner="writers that came before every try")
        return Outcome(Fate.REFUSED, error=race)


def _read(store: Documents[D], unread: Sequence[_Try[D]]) -> None:
    if not unread:
        return
    try:
        values = store.read([t.change.id for t in unread])
    except Unavailable as error:
        for blind in unread:
            blind.unavailable(error)
        return
    for reading, value in zip(unread, values, strict=True):
        if value is None:
            gone = NotFound(thing="document", id=reading.change.id)
            reading.outcome = Outcome(Fate.REFUSED, error=gone)
        else:
            reading.found(value)


def _write(store: Documents[D], open_: Sequence[_Try[D]]) -> None:
    pairs = [(t, before, after) for t in open_ if (before := t.value) and (after := t.wanted)]
    try:
        answers = store.write([(before, after) for _, before, after in pairs])
    except Unavailable as error:
        for writing, _, _ in pairs:
            writing.unavailable(error)
        return
    for (writing, before, after), answer in zip(pairs, answers, strict=True):
        writing.answered(before, after, answer)
