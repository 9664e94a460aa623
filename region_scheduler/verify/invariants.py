"""The promises by name, and what it takes to say that one of them is broken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from region_scheduler.ports.history import Kind


class Invariant(StrEnum):
    """The promises by the number under which the design knows them."""

    ONE_HOLDER = "I1"
    ORDER = "I2"
    NO_LOSS = "I3"
    ONCE = "I4"
    CAPACITY = "I5"
    RESIDENCY = "I6"
    FENCING = "I7"
    NO_STUCK = "I8"
    NO_LEAK = "I9"
    IDEMPOTENCY = "I10"
    ACYCLIC = "I11"
    FAIRNESS = "I12"
    TENANCY = "I13"
    AUDIT = "I14"
    ZONE = "I15"


PROMISES: Final[Mapping[Invariant, tuple[str, str]]] = {
    Invariant.ONE_HOLDER: ("one holder", "no two steps of a task run at once, none without it"),
    Invariant.ORDER: ("order", "a task starts after exactly its predecessors were satisfied"),
    Invariant.NO_LOSS: ("no loss", "whatever was accepted is there, and comes to its end"),
    Invariant.ONCE: ("once", "at most one accepted completion per submission"),
    Invariant.CAPACITY: ("capacity", "held units of a resource never exceed its capacity"),
    Invariant.RESIDENCY: (
        "residency",
        "no attempt and no resident byte outside the allowed regions",
    ),
    Invariant.FENCING: ("fencing", "nothing is written under any token but the current one"),
    Invariant.NO_STUCK: ("no stuck", "what can go on does go on"),
    Invariant.NO_LEAK: ("no leak", "no slot held by a finished task or an old token"),
    Invariant.IDEMPOTENCY: ("idempotency", "one run per key and per occurrence of a schedule"),
    Invariant.ACYCLIC: ("acyclic", "no task waits for itself"),
    Invariant.FAIRNESS: ("fairness", "no tenant starves"),
    Invariant.TENANCY: ("tenancy", "nothing crosses tenants"),
    Invariant.AUDIT: ("audit", "every change by a person has an entry"),
    Invariant.ZONE: ("zone", "at most one mutating run per zone"),
}
"""Name, and what is promised in one line."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it was read.

    Attributes:
        rev: Empty if it was not there.
    """

    kind: Kind
    id: str
    rev: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that must not be.

    Attributes:
        subject: What it is about: an id.
        what: What is wrong, in one line.
        evidence: The facts that contradict each other, as few as do.
        documents: What was read one after the other; it counts only if all are still as read. None
            if one document contradicts itself: it did so whenever it was read.
        is_passing: It may be so for a while, until whoever is to act on it has come round.
    """

    invariant: Invariant
    subject: str
    what: str
    evidence: tuple[str, ...] = ()
    documents: tuple[Document, ...] = ()
    is_passing: bool = False

    @property
    def weight(self) -> tuple[int, int, str]:
        """The evidence that is the easiest to read comes first."""
        return len(self.evidence), sum(map(len, self.evidence)), self.subject
