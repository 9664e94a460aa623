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
from region_scheduler.ports.documents import Documents, Identified, WriteResult

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
    outcomes: list[Outcome[D] | None] = [None] * len(changes)
    current: list[D | None] = [change.known for change in changes]
    wanted: list[D | None] = [None] * len(changes)
    lost: set[int] = set()  # an answer was lost, and the document was not read since
    for _ in range(_ROUNDS_MAX):
        unread = [i for i, o in enumerate(outcomes) if o is None and current[i] is None]
        _read(store, changes, unread, current, outcomes, lost)
        for i, change in enumerate(changes):
            if outcomes[i] is None and wanted[i] is None:
                wanted[i], outcomes[i] = _decided(change, current[i])
        open_ = [i for i, outcome in enumerate(outcomes) if outcome is None]
        if not open_:
            break
        _write(store, open_, current, wanted, outcomes, lost)
    return [
        o if o is not None else _given_up(changes[i].id, i in lost) for i, o in enumerate(outcomes)
    ]


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


def _read(
    store: Documents[D],
    changes: Sequence[Change[D]],
    unread: Sequence[int],
    current: list[D | None],
    outcomes: list[Outcome[D] | None],
    lost: set[int],
) -> None:
    if not unread:
        return
    try:
        found = store.read([changes[i].id for i in unread])
    except Unavailable as error:
        for i in unread:
            # Who lost an answer and then cannot look must not say that nothing was done.
            is_open = i in lost
            outcomes[i] = _given_up(changes[i].id, is_open) if is_open else _refused(None, error)
        return
    lost.difference_update(unread)
    for i, value in zip(unread, found, strict=True):
        current[i] = value
        if value is None:
            missing = NotFound(thing="document", id=changes[i].id)
            outcomes[i] = Outcome(Fate.REFUSED, error=missing)


def _decided(change: Change[D], value: D | None) -> tuple[D | None, Outcome[D] | None]:
    if value is None:
        return None, None
    try:
        after = change.decide(value)
    except (LostRace, Fenced, IllegalMove) as error:
        return None, Outcome(Fate.REFUSED, value, error)
    if after is value:
        return None, Outcome(Fate.UNCHANGED, value)
    return after, None


def _write(
    store: Documents[D],
    open_: Sequence[int],
    current: list[D | None],
    wanted: list[D | None],
    outcomes: list[Outcome[D] | None],
    lost: set[int],
) -> None:
    pairs = [(i, before, after) for i in open_ if (before := current[i]) and (after := wanted[i])]
    try:
        written = store.write([(before, after) for _, before, after in pairs])
    except Unavailable as error:
        for i, before, _ in pairs:
            is_open = i in lost
            outcomes[i] = _given_up(before.id, is_open) if is_open else _refused(before, error)
        return
    for (i, before, _), answer in zip(pairs, written, strict=True):
        match answer.result:
            case WriteResult.APPLIED:
                outcomes[i] = Outcome(Fate.COMMITTED, answer.value)
            case WriteResult.CONFLICT:
                current[i] = wanted[i] = None
            case WriteResult.MISSING:
                gone = NotFound(thing="document", id=before.id)
                outcomes[i] = Outcome(Fate.REFUSED, error=gone)
            case WriteResult.UNKNOWN:
                lost.add(i)


def _refused(value: D | None, error: RegionSchedulerError) -> Outcome[D]:
    return Outcome(Fate.REFUSED, value, error)


def _given_up(id_: str, is_lost: bool) -> Outcome[D]:
    if is_lost:
        unknown = OutcomeUnknown(dependency="graph store", detail=f"write of {id_}")
        return Outcome(Fate.UNKNOWN, error=unknown)
    return Outcome(
        Fate.REFUSED, error=LostRace(thing=id_, winner="writers that came before every try")
    )
