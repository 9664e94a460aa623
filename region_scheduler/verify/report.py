"""What was found, promise by promise, with the shortest evidence of each that is broken."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from region_scheduler.domain.task import Json
from region_scheduler.verify.invariants import PROMISES, Finding, Invariant

_TOLD_MAX: Final = 5
"""Findings of one promise that a report shows, the shortest first; it counts all."""


class Status(StrEnum):
    """What can be said of a promise."""

    HOLDS = "holds"
    BROKEN = "broken"
    NOT_CHECKABLE = "not checkable here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found of one promise.

    Attributes:
        count: How often it is broken.
        findings: The few that are easiest to read.
        limits: What of it could not be looked at here, and why; all of it if it is not checkable.
    """

    invariant: Invariant
    status: Status
    count: int = 0
    findings: tuple[Finding, ...] = ()
    limits: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the verdict for people."""
        name, promise = PROMISES[self.invariant]
        told = f": {self.count} times" if self.count > 1 else ""
        yield f"{self.invariant:<4} {name:<12} {self.status}{told} ({promise})"
        for finding in self.findings:
            yield f"     {finding.what} [{finding.subject}]"
            yield from (f"       {line}" for line in finding.evidence)
        yield from (f"     - not looked at: {limit}" for limit in self.limits)

    def document(self) -> dict[str, Json]:
        """Return the verdict for programs."""
        name, promise = PROMISES[self.invariant]
        return {
            "id": self.invariant.value,
            "name": name,
            "promise": promise,
            "status": self.status.value,
            "count": self.count,
            "findings": [
                {"subject": one.subject, "what": one.what, "evidence": list(one.evidence)}
                for one in self.findings
            ],
            "limits": list(self.limits),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was found of all promises.

    Attributes:
        verdicts: One a promise, in their order.
        looked_at: How many runs, tasks, slots … were read.
        unsettled: Findings that do not count: what they rest on has changed since, or might be on
            its way still. Another look tells more.
    """

    verdicts: tuple[Verdict, ...]
    looked_at: Mapping[str, int]
    unsettled: int = 0

    @property
    def checked(self) -> int:
        """How many promises were looked at."""
        return sum(one.status is not Status.NOT_CHECKABLE for one in self.verdicts)

    @property
    def violations(self) -> int:
        """How often any of them is broken."""
        return sum(one.count for one in self.verdicts)

    @property
    def broken(self) -> tuple[Invariant, ...]:
        """Those that do not hold."""
        return tuple(one.invariant for one in self.verdicts if one.status is Status.BROKEN)

    def lines(self) -> Iterator[str]:
        """Yield the report for people."""
        for verdict in self.verdicts:
            yield from verdict.lines()
        looked = ", ".join(f"{count} {what}" for what, count in self.looked_at.items())
        unsettled = f"; {self.unsettled} findings were not settled" if self.unsettled else ""
        yield f"{self.checked} promises checked, {self.violations} violations: {looked}{unsettled}"

    def document(self) -> dict[str, Json]:
        """Return the report for programs."""
        return {
            "ok": not self.violations,
            "checked": self.checked,
            "violations": self.violations,
            "unsettled": self.unsettled,
            "looked_at": dict(self.looked_at),
            "items": [one.document() for one in self.verdicts],
        }


def verdict_of(
    invariant: Invariant, counted: int, findings: Collection[Finding], limits: Sequence[str]
) -> Verdict:
    """Return what is to be said of a promise that was looked at.

    Args:
        invariant: Which.
        counted: How often it is broken.
        findings: As many of these as were kept.
        limits: What of it was not looked at, and why.
    """
    status = Status.BROKEN if counted else Status.HOLDS
    shortest = sorted(findings, key=lambda one: one.weight)[:_TOLD_MAX]
    return Verdict(
        invariant=invariant,
        status=status,
        count=counted,
        findings=tuple(shortest),
        limits=tuple(limits),
    )
