"""Put a pause in place: what people do, and what a process does that finds the store set back."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from region_scheduler.commit.create import create
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.pause import EVERYTHING, Pause, paused_again
from region_scheduler.ports.records import PauseStore


def put_pause(store: PauseStore, wanted: Pause) -> Pause:
    """Put `wanted` in place, also where that scope was paused before.

    Raises:
        Unavailable, OutcomeUnknown: Call again; the same pause twice is one.
    """
    (created,) = create(store, [wanted])
    if created.is_new:
        return created.value
    again = partial(paused_again, wanted=wanted, now=wanted.at)
    return commit_one(store, Change(wanted.id, again, known=created.value))


def stop_claiming(store: PauseStore, by: str, reason: str, at: datetime) -> Pause:
    """Let nothing be promoted anywhere until a person has looked; what runs goes on.

    Args:
        store: The pauses.
        by: Who found the reason.
        reason: For people.
        at: Now, by the wall clock of `by`.

    Raises:
        Unavailable, OutcomeUnknown: Call again.
    """
    told = f"{reason}; compare what ran with what the store says, then unpause"
    return put_pause(store, Pause(id=EVERYTHING.key, scope=EVERYTHING, reason=told, by=by, at=at))
