"""Look at scarce things, and change how much there is of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from region_scheduler.domain.slot import CAPACITY_MAX, Slot
from region_scheduler.errors import InvalidInput, NotFound
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.operations.audit import Auditor
from region_scheduler.ports.records import GraphStores
from region_scheduler.resources.capacity import set_capacity, units_of


@dataclass(frozen=True, slots=True)
class Usage:
    """A resource in numbers.

    Attributes:
        capacity: Units that may be taken.
        held: Units that tasks hold, retiring ones too.
        reserved: Free units that are kept for somebody.
        retiring: Units that go when they are released.
    """

    resource: str
    capacity: int
    held: int
    reserved: int
    retiring: int


def usage(resource: str, units: Sequence[Slot]) -> Usage:
    """Return how much of a resource is in use."""
    return Usage(
        resource=resource,
        capacity=sum(not slot.is_retiring for slot in units),
        held=sum(slot.holder is not None for slot in units),
        reserved=sum(slot.holder is None and slot.reservation is not None for slot in units),
        retiring=sum(slot.is_retiring and slot.holder is not None for slot in units),
    )


def find_units(graph: GraphStores, resource: str) -> list[Slot]:
    """Return the units of a resource, as read at the leader.

    Raises:
        NotFound: Nobody ever needed it, and nobody made it.
    """
    units = units_of(graph.slots, resource)
    if not units:
        raise NotFound(thing="resource", id=resource)
    return units


def change_capacity(
    graph: GraphStores, settler: Settler, auditor: Auditor, resource: str, capacity: int
) -> list[Slot]:
    """Give a resource another capacity, also below what is in use, and wake the schedulers.

    Raises:
        InvalidInput: The name is empty, or the capacity is out of range; nothing was written.
        Unavailable, OutcomeUnknown: Part of it may be done; call again.
    """
    if not resource:
        raise InvalidInput(field="RESOURCE", value=resource, expected="a name")
    if not 1 <= capacity <= CAPACITY_MAX:
        expected = f"a whole number from 1 to {CAPACITY_MAX}; `pause` keeps work back"
        raise InvalidInput(field="--capacity", value=str(capacity), expected=expected)
    auditor.record("resources.set", resource, f"capacity {capacity}")
    units = set_capacity(graph.slots, resource, capacity)
    settler.wake(region.id for region in graph.regions.all())
    return units
