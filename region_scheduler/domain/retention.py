"""How long what nobody needs any more is kept, by kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from region_scheduler.domain.instance import Instance

FOR_EVER: Final = datetime(1, 1, 1, tzinfo=UTC)
"""Nothing is older."""
_NO_BOUND: Final = 10**9
_LEAST: Final = {"days": 2, "max": 1, "s": 1}


class RecordKind(StrEnum):
    """What grows with time."""

    RUNS = "runs"
    ADMISSIONS = "admissions"
    INSTANCES = "instances"
    CONFLICTS = "conflicts"
    AUDIT = "audit"


@dataclass(frozen=True, slots=True)
class Retention:
    """Ages and counts beyond which records are removed; 0 is without a bound.

    Age is by the collector's wall clock against the record's; it says when something goes, never
    whether it may go.

    Attributes:
        runs_days: Since the end of a run; its tasks, dependencies and answers go with it.
        runs_max: So many ended runs stay, the newest.
        admissions_days: Since it was accepted, its run being gone; then its key is free again.
        instances_days: Since the end of its lease.
        instances_max: So many ended instances stay, the newest.
        conflicts_days: Since it was recorded.
        conflicts_max: So many stay, the newest.
        audit_days: Since it was recorded.
        audit_max: So many entries stay, the newest.
        every_s: Pause between two looks.
    """

    runs_days: float = 90.0
    runs_max: int = 50_000
    admissions_days: float = 90.0
    instances_days: float = 7.0
    instances_max: int = 1_000
    conflicts_days: float = 30.0
    conflicts_max: int = 100_000
    audit_days: float = 0.0
    audit_max: int = 0
    every_s: float = 3600.0

    def __post_init__(self) -> None:
        """Refuse what is no bound, and what would be in the way of those who are still at it.

        A day's runs count for quotas; whoever has not heard of an end may act on it for a lease.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            least = _LEAST[field.name.rpartition("_")[2]]
            if value < 0 or 0 < value < least:
                raise ValueError(f"{field.name} must be at least {least}, or 0 for no bound")
        if not self.every_s:
            raise ValueError("every_s must be above 0")

    def before(self, kind: RecordKind, now: datetime) -> datetime:
        """Return the instant before which a record of `kind` is too old."""
        days: float = getattr(self, f"{kind}_days")
        return now - timedelta(days=days) if days else FOR_EVER

    def most(self, kind: RecordKind) -> int:
        """Return how many records of `kind` stay."""
        return getattr(self, f"{kind}_max", 0) or _NO_BOUND

    def told(self, kind: RecordKind) -> str:
        """Return the rule for `kind`, for people."""
        days, most = getattr(self, f"{kind}_days"), getattr(self, f"{kind}_max", 0)
        rules = [f"older than {days:g} days"] if days else []
        rules += [f"beyond the newest {most}"] if most else []
        return " or ".join(rules) or "kept for ever"


RETENTION: Final = Retention()
"""What counts unless it is set."""


def ended_long_ago(
    fenced: Sequence[Instance], before: datetime, most: int, needed: Sequence[str]
) -> list[Instance]:
    """Return the ended instances that are too old or too many, and that nothing names any more.

    Args:
        fenced: All whose lease is over.
        before: The instant before which one is too old.
        most: So many stay, the newest.
        needed: Ids that something names: they stay.
    """
    ended = [(one.fenced.at, one) for one in fenced if one.fenced is not None]
    newest = sorted(ended, key=lambda pair: (pair[0], pair[1].id), reverse=True)
    old = [one for n, (at, one) in enumerate(newest) if at < before or n >= most]
    kept = set(needed)
    return [one for one in reversed(old) if one.id not in kept]
