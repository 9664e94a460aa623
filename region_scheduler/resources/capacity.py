"""How many units a resource has, changed while tasks hold some (docs/protocol.md, section 4)."""

from __future__ import annotations

from itertools import count, islice
from typing import Final

from region_scheduler.commit.gate import Change, commit
from region_scheduler.domain.ids import slot_key
from region_scheduler.domain.slot import Slot, opened, retired
from region_scheduler.domain.task import WhenHolderLost
from region_scheduler.errors import OutcomeUnknown
from region_scheduler.ports.records import SlotStore
from region_scheduler.resources.assign import make_units, unit_of

_PART: Final = 64


def units_of(store: SlotStore, resource: str) -> list[Slot]:
    """Return every unit that the resource ever had, by number, as read at the leader.

    Raises:
        Unavailable: No answer.
    """
    units: list[Slot] = []
    for start in count(0, _PART):
        found = store.read([slot_key(resource, unit) for unit in range(start, start + _PART)])
        units += [slot for slot in found if slot is not None]
        if not any(found):
            return units
    raise AssertionError("unreachable: the loop has no end of its own")


def set_capacity(store: SlotStore, resource: str, capacity: int) -> list[Slot]:
    """Give a resource `capacity` units; return them all, those that retire too.

    Growing opens retired units first. Shrinking retires free ones first, and of the held ones the
    last: they go when they are released. Calls that meet may leave something between the two
    numbers; the last one repeated puts it right.

    Args:
        store: The slots.
        resource: Its name; one that was never seen is made.
        capacity: At least 1.

    Raises:
        Unavailable, OutcomeUnknown: Part of it may be done; call again.
    """
    units = units_of(store, resource)
    open_ = [slot for slot in units if not slot.is_retiring]
    too_many = sorted(open_, key=_last_to_go)[: max(0, len(open_) - capacity)]
    again = [slot for slot in units if slot.is_retiring][: max(0, capacity - len(open_))]
    changes = [Change(slot.id, retired, known=slot) for slot in too_many]
    changes += [Change(slot.id, opened, known=slot) for slot in again]
    if any(not outcome.is_ours for outcome in commit(store, changes)):
        raise OutcomeUnknown(dependency="graph store", detail=f"capacity of {resource}")
    missing = capacity - len(open_) - len(again)
    if missing > 0:
        known = {slot.unit for slot in units}
        numbers = list(islice((unit for unit in count() if unit not in known), missing))
        lost = units[0].when_holder_lost if units else WhenHolderLost.FREE
        make_units(store, [unit_of(resource, unit, lost) for unit in numbers])
    return units_of(store, resource)


def _last_to_go(slot: Slot) -> tuple[bool, bool, int]:
    return slot.holder is not None, slot.reservation is not None, -slot.unit
