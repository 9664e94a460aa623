"""Faults of single requests: seeded, by rule, so that a run repeats exactly."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from region_scheduler.embedded.arango import aql
from region_scheduler.embedded.arango.delivery import Delivery, refusal
from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.message import Request
from region_scheduler.embedded.arango.storage.record import decode


class FaultKind(StrEnum):
    """What may happen to a request.

    `not_sent`: it never arrives. `answer_dropped`: it is executed, the connection breaks before the
    answer. `late`: the connection breaks, and it is executed `seconds` later. `delay`: it arrives
    `seconds` later and is answered. `conflict`: its writes fail with 1200 though nobody else won.
    `read_only`: 403/1004, nothing done. `resigned`: 421/1491. `unavailable`: 503/1478.
    `not_leader`: 503/1496, nothing done. `timed_out`: 500/1457.
    """

    NOT_SENT = "not_sent"
    ANSWER_DROPPED = "answer_dropped"
    LATE = "late"
    DELAY = "delay"
    CONFLICT = "conflict"
    READ_ONLY = "read_only"
    RESIGNED = "resigned"
    UNAVAILABLE = "unavailable"
    NOT_LEADER = "not_leader"
    TIMED_OUT = "timed_out"


_ANSWERS = {
    FaultKind.READ_ONLY: (1004, "the shard has fewer copies in sync than its write concern"),
    FaultKind.RESIGNED: (1491, ""),
    FaultKind.UNAVAILABLE: (1478, ""),
    FaultKind.NOT_LEADER: (1496, ""),
    FaultKind.TIMED_OUT: (1457, ""),
}
_WRITES_ONLY = frozenset({FaultKind.CONFLICT, FaultKind.READ_ONLY})
_MAY_BE_APPLIED = frozenset({FaultKind.RESIGNED, FaultKind.UNAVAILABLE, FaultKind.TIMED_OUT})


@dataclass(slots=True)
class Fault:
    """A rule: which requests meet which fault.

    Attributes:
        kind: What happens.
        rate: How likely it is for a request that matches, from 0 to 1.
        region: Only requests to this region; None for all.
        method: Only this method; None for all.
        path: Only paths in which this regular expression is found; empty for all.
        times: How often it may still happen; None without end.
        seconds: For late and delay.
        is_applied: For resigned, unavailable and timed_out: whether the request is executed all the
            same, and only the answer says otherwise.
    """

    kind: FaultKind
    rate: float = 1.0
    region: str | None = None
    method: str | None = None
    path: str = ""
    times: int | None = None
    seconds: float = 0.0
    is_applied: bool = False

    def __post_init__(self) -> None:
        """Refuse what could not happen.

        Raises:
            ValueError: A rate outside of 0 to 1, negative seconds or times, a bad pattern, or
                `is_applied` for a kind that means that nothing was done.
        """
        if not 0 <= self.rate <= 1:
            raise ValueError("rate must be from 0 to 1")
        if self.seconds < 0 or (self.times is not None and self.times < 0):
            raise ValueError("seconds and times must not be negative")
        if self.is_applied and self.kind not in _MAY_BE_APPLIED:
            raise ValueError(f"{self.kind} means that nothing was done")
        try:
            re.compile(self.path)
        except re.error as error:
            raise ValueError(f"path is no regular expression: {error}") from error

    def matches(self, request: Request, region: str) -> bool:
        """Return whether the rule is about this request."""
        return (
            (self.times is None or self.times > 0)
            and self.region in (None, region)
            and self.method in (None, request.method)
            and (not self.path or re.search(self.path, request.path) is not None)
            and (self.kind not in _WRITES_ONLY or is_write(request))
        )

    def delivery(self, travel_s: float) -> Delivery:
        """Return what becomes of a request that meets the fault.

        Args:
            travel_s: How long it would travel, one way, without the fault.
        """
        if self.kind in _ANSWERS:
            number, message = _ANSWERS[self.kind]
            return Delivery(
                wait_s=travel_s,
                is_executed=self.is_applied,
                answer=refusal(number, message),
                answer_wait_s=travel_s,
            )
        match self.kind:
            case FaultKind.NOT_SENT:
                return Delivery(is_executed=False, is_answered=False)
            case FaultKind.ANSWER_DROPPED:
                return Delivery(wait_s=travel_s, is_answered=False)
            case FaultKind.LATE:
                return Delivery(late_s=travel_s + self.seconds, is_answered=False)
            case FaultKind.DELAY:
                return Delivery(wait_s=travel_s + self.seconds, answer_wait_s=travel_s)
            case _:
                return Delivery(wait_s=travel_s, answer_wait_s=travel_s, is_disturbed=True)


class FaultRules:
    """The rules in force, by number.

    Args:
        chance: Decides the rates.
    """

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._rules: dict[int, Fault] = {}
        self._last = 0

    def __bool__(self) -> bool:
        return bool(self._rules)

    def add(self, fault: Fault) -> int:
        """Put a rule in force and return its number."""
        self._last += 1
        self._rules[self._last] = fault
        return self._last

    def withdraw(self, number: int) -> None:
        """End a rule; nothing happens if it is over."""
        self._rules.pop(number, None)

    def clear(self) -> None:
        """End all rules."""
        self._rules.clear()

    def listed(self) -> dict[int, Fault]:
        """Return the rules in force."""
        return dict(self._rules)

    def meets(self, request: Request, region: str) -> Fault | None:
        """Return the first rule that hits this request, and count it."""
        for fault in self._rules.values():
            if fault.matches(request, region) and self._chance.random() < fault.rate:
                if fault.times is not None:
                    fault.times -= 1
                return fault
        return None


def is_write(request: Request) -> bool:
    """Return whether a request may change documents."""
    if request.method in ("GET", "HEAD") or "onlyget" in request.query:
        return False
    parts = request.path.split("/_api/", 1)
    area = parts[-1].split("/", 1)[0]
    if area != "cursor":
        return area in ("document", "import", "gharial", "collection")
    if not request.path.endswith("/cursor"):
        return False
    try:
        return aql.compile_query(decode(request.body)["query"]).is_modification
    except (ValueError, KeyError, TypeError, ArangoError):
        return False
