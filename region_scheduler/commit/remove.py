"""Conditional removal: a document goes only as it was read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from region_scheduler.errors import OutcomeUnknown
from region_scheduler.ports.documents import Identified, WriteResult

_TRIES_MAX = 5


def remove(
    send: Callable[[Sequence[Identified]], list[WriteResult]], values: Sequence[Identified]
) -> int:
    """Remove each document unless it has changed since it was read; return how many are gone.

    One that another removed counts as well. After a lost answer the same removal is repeated: what
    the first try removed is then missing.

    Args:
        send: A store's `remove`.
        values: The documents, or references to them, at the revisions read.

    Raises:
        OutcomeUnknown: An answer was lost to the end; the same call may be repeated.
        Unavailable: Nothing of the last try was removed; the same call may be repeated.
    """
    gone = 0
    open_ = list(values)
    for _ in range(_TRIES_MAX):
        if not open_:
            return gone
        results = send(open_)
        gone += sum(one in {WriteResult.APPLIED, WriteResult.MISSING} for one in results)
        lost = WriteResult.UNKNOWN
        open_ = [value for value, one in zip(open_, results, strict=True) if one is lost]
    if open_:
        detail = f"removal of {len(open_)} documents"
        raise OutcomeUnknown(dependency="graph store", detail=detail)
    return gone
