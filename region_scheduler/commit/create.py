"""Insert-only creation: whoever comes second finds what the first one made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from region_scheduler.errors import OutcomeUnknown, ensure
from region_scheduler.ports.documents import Documents, Identified, WriteResult

D = TypeVar("D", bound=Identified)
_TRIES_MAX = 5


@dataclass(frozen=True, slots=True)
class Created(Generic[D]):
    """The document that now stands under the id.

    Attributes:
        is_new: This call is known to have inserted it. False also after a lost answer, when it
            may be ours all the same: compare contents, not this flag, to learn whose it is.
    """

    value: D
    is_new: bool


def create(store: Documents[D], values: Sequence[D]) -> list[Created[D]]:
    """Insert each value unless its id is taken, and return what stands there.

    Raises:
        OutcomeUnknown: An answer was lost to the end; the same call may be repeated.
        Unavailable: Nothing of the last try was written; the same call may be repeated.
    """
    standing: list[Created[D] | None] = [None] * len(values)
    for _ in range(_TRIES_MAX):
        open_ = [i for i, created in enumerate(standing) if created is None]
        if not open_:
            break
        answers = store.insert([values[i] for i in open_])
        taken: list[int] = []
        for i, answer in zip(open_, answers, strict=True):
            if answer.result is WriteResult.APPLIED:
                ensure(answer.value is not None, "an applied insert returns its value")
                standing[i] = Created(answer.value or values[i], is_new=True)
            elif answer.result is WriteResult.CONFLICT:
                taken.append(i)
        found = store.read([values[i].id for i in taken]) if taken else []
        for i, value in zip(taken, found, strict=True):
            if value is not None:
                standing[i] = Created(value, is_new=False)
    return [_known(values[i].id, created) for i, created in enumerate(standing)]


def _known(id_: str, created: Created[D] | None) -> Created[D]:
    if created is None:
        raise OutcomeUnknown(dependency="graph store", detail=f"insert of {id_}")
    return created
