"""The conditional write: the one way in which anything is decided.

Every kind of document is reached through a `Documents` of its type. A write is conditional on the
revision of the value that was read; there is no write without that condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from region_scheduler.ports.consistency import Deciding


class Identified(Protocol):
    """A value that knows its document: its id, and the revision that it was read at."""

    @property
    def id(self) -> str:
        """Its id within its kind."""
        ...

    @property
    def rev(self) -> str:
        """The revision it was read at; empty before it was inserted."""
        ...


D = TypeVar("D", bound=Identified)


@dataclass(frozen=True, slots=True)
class Reference:
    """A document by its id, at a revision."""

    id: str
    rev: str


class WriteResult(StrEnum):
    """What became of one conditional write. All but `UNKNOWN` are definite."""

    APPLIED = "applied"
    CONFLICT = "conflict"
    MISSING = "missing"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Written(Generic[D]):
    """The result of one write; `value` (with its new revision) only if it was applied."""

    result: WriteResult
    value: D | None = None


class Documents(Protocol[D]):
    """Documents of one kind. Batches are not atomic: each element stands alone, in input order."""

    def read(self, ids: Sequence[str]) -> Deciding[list[D | None]]:
        """Return the documents at the leader, in the order of `ids`; None where there is none.

        Raises:
            Unavailable: No answer; reading again is safe.
        """
        ...

    def insert(self, values: Sequence[D]) -> list[Written[D]]:
        """Insert each value under its id; `CONFLICT` if the id is taken, never overwritten.

        Repeating an insert after `UNKNOWN` is safe: `CONFLICT` then means "look whose it is".

        Raises:
            Unavailable: Nothing was written.
        """
        ...

    def write(self, changes: Sequence[tuple[D, D]]) -> list[Written[D]]:
        """Write each (before, after), provided the document still has the revision of `before`.

        Only attributes that differ are sent; unknown attributes of the document survive.

        Raises:
            Unavailable: Not sent, or refused as a whole. Nothing was written.
        """
        ...

    def remove(self, values: Sequence[Identified]) -> list[WriteResult]:
        """Remove each document, provided it still has the revision of its value.

        Repeating a removal after `UNKNOWN` is safe: `MISSING` then means that it is gone.

        Raises:
            Unavailable: Nothing was removed.
        """
        ...
