"""The whole error tree, and `ensure`.

`Unavailable` (nothing was done) and `OutcomeUnknown` (the answer was lost) are never merged: mixing
them is how work runs twice or vanishes. Only process edges catch the root.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


class RegionSchedulerError(Exception):
    """Root of the tree; caught only at a process edge."""

    code: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 1
    is_retryable: ClassVar[bool] = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild by field name, so that errors survive a worker's process pool."""
        return _rebuild, (type(self), dict(self.__dict__))


def _rebuild(error: type[RegionSchedulerError], fields: Mapping[str, Any]) -> RegionSchedulerError:
    return error(**fields)


class Rejected(RegionSchedulerError):
    """A rule says no, and will say so again: the caller is wrong. Nothing was written."""

    code = "rejected"
    exit_code = 2


@dataclass(eq=False, kw_only=True)
class InvalidInput(Rejected):
    """A value that cannot be accepted: which field, what it was, and the way out."""

    code: ClassVar[str] = "invalid_input"
    field: str
    value: str
    expected: str

    def __str__(self) -> str:
        """Name the field, the value and the way out."""
        return f"{self.field}: {self.value!r} is not accepted; {self.expected}"


@dataclass(eq=False, kw_only=True)
class CyclicGraph(Rejected):
    """The dependencies wait on each other for ever.

    Attributes:
        cycle: Task names in order; the last leads to the first again.
        places: Where the source says each edge, beginning with that from the first name; empty
            texts where it does not tell.
        is_shortest: No cycle among the same tasks is shorter; else it is only a short one.
    """

    code: ClassVar[str] = "cyclic_graph"
    cycle: Sequence[str]
    places: Sequence[str] = ()
    is_shortest: bool = True

    def __str__(self) -> str:
        """Name the members in order, and where their edges are."""
        path = " -> ".join([*self.cycle, self.cycle[0]])
        what = "a cycle" if self.is_shortest else "a cycle (a short one; its tasks have others)"
        told = f"the graph has {what}, so none of its members could ever start: {path}"
        where = [place for place in self.places if place]
        return f"{told} (edges: {', '.join(where)})" if where else told


@dataclass(eq=False, kw_only=True)
class InvalidGraph(Rejected):
    """A graph that is not one: duplicate ids, edges to nowhere, and their like."""

    code: ClassVar[str] = "invalid_graph"
    problems: Sequence[str]

    def __str__(self) -> str:
        """List the problems, one clause each."""
        return "the graph is refused: " + "; ".join(self.problems)


@dataclass(eq=False, kw_only=True)
class UnknownZoneType(Rejected):
    """No zone type of that name."""

    code: ClassVar[str] = "unknown_zone_type"
    name: str
    known: Sequence[str]

    def __str__(self) -> str:
        """Name the type and those there are."""
        return f"zone type {self.name!r} does not exist; there are: {', '.join(self.known)}"


@dataclass(eq=False, kw_only=True)
class IllegalMove(Rejected):
    """A state change that the transition table does not contain."""

    code: ClassVar[str] = "illegal_move"
    thing: str
    current: str
    target: str

    def __str__(self) -> str:
        """Name the move that was refused."""
        return f"{self.thing} cannot go from {self.current} to {self.target}"


@dataclass(eq=False, kw_only=True)
class KeyReused(Rejected):
    """An idempotency key came back with another body."""

    code: ClassVar[str] = "key_reused"
    key: str
    run_id: str

    def __str__(self) -> str:
        """Say which run the key belongs to."""
        return (
            f"key {self.key!r} was already used for run {self.run_id} with another body;"
            " use a new key for new work"
        )


@dataclass(eq=False, kw_only=True)
class NotFound(RegionSchedulerError):
    """An id that the store does not know."""

    code: ClassVar[str] = "not_found"
    exit_code: ClassVar[int] = 4
    thing: str
    id: str

    def __str__(self) -> str:
        """Name what was looked for."""
        return f"{self.thing} {self.id!r} does not exist"


@dataclass(eq=False, kw_only=True)
class Throttled(RegionSchedulerError):
    """Over quota; nothing was written; worth another try after `retry_after_s` seconds.

    Attributes:
        quota: What is bounded, in words: `zones`, `runs a day`, `runs in flight`.
        limit: How many the tenant may have.
        used: How many it has.
    """

    code: ClassVar[str] = "throttled"
    exit_code: ClassVar[int] = 75
    is_retryable: ClassVar[bool] = True
    tenant: str
    quota: str
    limit: int
    used: int
    retry_after_s: int

    def __str__(self) -> str:
        """Name the quota, its value and what is in use, and say when to come back."""
        return (
            f"tenant {self.tenant} is at its quota of {self.quota}: {self.used} in use,"
            f" {self.limit} at most; try again in {self.retry_after_s} s"
        )


@dataclass(eq=False, kw_only=True)
class LostRace(RegionSchedulerError):
    """Someone else won; nothing of ours was written; read again."""

    code: ClassVar[str] = "lost_race"
    exit_code: ClassVar[int] = 5
    is_retryable: ClassVar[bool] = True
    thing: str
    winner: str

    def __str__(self) -> str:
        """Name the prize and the winner."""
        return f"{self.thing} was taken by {self.winner}"


@dataclass(eq=False, kw_only=True)
class Fenced(RegionSchedulerError):
    """Our token or lease is over: stop the work, never retry. Nothing was written."""

    code: ClassVar[str] = "fenced"
    exit_code: ClassVar[int] = 5
    held: str
    current: str

    def __str__(self) -> str:
        """Show both tokens."""
        return f"token {self.held} is over; the current one is {self.current}"


@dataclass(eq=False, kw_only=True)
class Unavailable(RegionSchedulerError):
    """A dependency said no, or was never reached: nothing was done."""

    code: ClassVar[str] = "unavailable"
    exit_code: ClassVar[int] = 69
    is_retryable: ClassVar[bool] = True
    dependency: str
    detail: str

    def __str__(self) -> str:
        """Name the dependency."""
        return f"{self.dependency} is unavailable, nothing was done: {self.detail}"


@dataclass(eq=False, kw_only=True)
class NotYet(RegionSchedulerError):
    """What the caller has seen elsewhere is not to be seen here yet; ask again.

    Attributes:
        age_s: How old the view is that could be shown, seconds.
    """

    code: ClassVar[str] = "not_yet"
    exit_code: ClassVar[int] = 75
    is_retryable: ClassVar[bool] = True
    thing: str
    seen: str
    age_s: float

    def __str__(self) -> str:
        """Say what is awaited, and how far behind this view is."""
        return (
            f"{self.thing} at version {self.seen} is not to be seen here yet: the view is"
            f" {self.age_s:.1f} s old and its leader does not answer; ask again"
        )


@dataclass(eq=False, kw_only=True)
class OutcomeUnknown(RegionSchedulerError):
    """The answer was lost: perhaps done, perhaps not. Only the same write, same id, may follow."""

    code: ClassVar[str] = "outcome_unknown"
    exit_code: ClassVar[int] = 75
    is_retryable: ClassVar[bool] = True
    dependency: str
    detail: str

    def __str__(self) -> str:
        """Name the dependency."""
        return f"{self.dependency} did not answer; it may or may not have acted: {self.detail}"


@dataclass(eq=False, kw_only=True)
class Misconfigured(RegionSchedulerError):
    """The operator must act before this process can start."""

    code: ClassVar[str] = "misconfigured"
    exit_code: ClassVar[int] = 78
    problems: Sequence[str]

    def __str__(self) -> str:
        """List all problems at once."""
        return "cannot start: " + "; ".join(self.problems)


class BrokenInvariant(Exception):
    """Our bug: stop the loop and let the process restart."""

    exit_code: ClassVar[int] = 70


def ensure(is_true: bool, invariant: str) -> None:
    """Go on if the invariant holds.

    Raises:
        BrokenInvariant: It does not; the text names it.
    """
    if not is_true:
        raise BrokenInvariant(invariant)
