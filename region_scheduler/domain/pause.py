"""Pauses: where nothing new is promoted for now, while what runs goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from region_scheduler.domain.ids import digest_of
from region_scheduler.domain.states import CLAIMABLE
from region_scheduler.domain.task import SCHEMA, Task


class ScopeKind(StrEnum):
    """What a rule applies to."""

    EVERYTHING = "everything"
    REGION = "region"
    TENANT = "tenant"
    ZONE = "zone"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Scope:
    """One run, zone, tenant or region, or everything.

    Attributes:
        name: Id of the run, key of the zone, the tenant or the region; empty for everything.
    """

    kind: ScopeKind
    name: str = ""

    @property
    def key(self) -> str:
        """The key of the one document that a scope has."""
        return digest_of(self.kind, self.name)


EVERYTHING = Scope(ScopeKind.EVERYTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """The pause of a scope, also one that is over: the next one of that scope is its successor.

    Attributes:
        id: `Scope.key`.
        number: Rises when the scope is paused again.
        is_on: Whether it was not lifted.
        until: When it ends by itself; a scheduler looks at its own wall clock, as for schedules.
        by: Who paused it.
    """

    id: str
    rev: str = ""
    schema: int = SCHEMA
    scope: Scope
    number: int = 1
    is_on: bool = True
    reason: str
    by: str
    at: datetime
    until: datetime | None = None

    @property
    def passport(self) -> str:
        """What a task must carry to be promoted in spite of this very pause."""
        return f"{self.id}.{self.number}"

    def holds_at(self, now: datetime) -> bool:
        """Say whether it is in force."""
        return self.is_on and (self.until is None or now < self.until)


def paused_again(pause: Pause, wanted: Pause, now: datetime) -> Pause:
    """Return the pause as `wanted` says; one in force goes on, one that is over begins anew."""
    number = pause.number if pause.holds_at(now) else pause.number + 1
    return replace(wanted, rev=pause.rev, number=number)


def lifted(pause: Pause) -> Pause:
    """Return the pause, over."""
    return replace(pause, is_on=False) if pause.is_on else pause


def let_pass(task: Task, passport: str) -> Task:
    """Release a task that waits for promotion from one pause of its run."""
    if task.state not in CLAIMABLE or task.passport == passport:
        return task
    return replace(task, seq=task.seq + 1, passport=passport)


@dataclass(frozen=True, slots=True)
class Closed:
    """Where nothing new is promoted at some moment.

    Attributes:
        reasons: Why, for every scope that is closed.
        passports: Of the pause of each run: its tasks that carry it pass.
    """

    reasons: Mapping[Scope, str] = field(default_factory=dict)
    passports: Mapping[str, str] = field(default_factory=dict)

    def why(self, scopes: Iterable[Scope]) -> str:
        """Return why one of `scopes` is closed, the first that is; empty if none."""
        return next((self.reasons[scope] for scope in scopes if scope in self.reasons), "")

    def names(self, kind: ScopeKind) -> list[str]:
        """Return the closed scopes of a kind, in a fixed order."""
        return sorted(scope.name for scope in self.reasons if scope.kind is kind)


def closed_at(pauses: Iterable[Pause], now: datetime) -> Closed:
    """Return what `pauses` close at `now`, a reading of the caller's own wall clock."""
    held = [pause for pause in pauses if pause.holds_at(now)]
    return Closed(
        {pause.scope: _reason(pause) for pause in held},
        {p.scope.name: p.passport for p in held if p.scope.kind is ScopeKind.RUN},
    )


def _reason(pause: Pause) -> str:
    until = f" until {pause.until.isoformat(timespec='seconds')}" if pause.until else ""
    return f"{pause.scope.kind} paused by {pause.by}{until}: {pause.reason}"
