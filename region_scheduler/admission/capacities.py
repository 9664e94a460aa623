"""What there is of the resources that a graph names: known to the store, or said in the graph.

A resource that exists has the units that it has, whatever a graph says of it: its capacity may have
been changed by an operator. What a graph says counts for a resource that does not exist yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from region_scheduler.domain.admission import Plan
from region_scheduler.domain.task import units_needed

CapacityOf = Callable[[Sequence[str]], Mapping[str, int]]
"""Returns the units of those of the named resources that exist; raises `Unavailable`."""


def none_known(_names: Sequence[str]) -> Mapping[str, int]:
    """Return what is known where no store is asked."""
    return {}


def known_of(plan: Plan, ask: CapacityOf) -> Mapping[str, int]:
    """Return what the check of a plan has to know; nobody is asked if no task takes two units.

    Raises:
        Unavailable: No answer.
    """
    names: set[str] = set()
    for spec in plan.tasks:
        if spec.locks:
            names |= {name for name, count in units_needed(spec).items() if count > 1}
    return ask(sorted(names)) if names else {}


def known_to(nodes: Sequence[Mapping[str, Any]], ask: CapacityOf) -> Mapping[str, int]:
    """Return what the nodes of a graph leave to be known, wherever they are well formed.

    Raises:
        Unavailable: No answer.
    """
    names = {
        lock["resource"]
        for node in nodes
        if isinstance(locks := node.get("locks"), list)
        for lock in locks
        if isinstance(lock, dict) and isinstance(lock.get("resource"), str)
        if "capacity" not in lock or lock.get("units", 1) != 1
    }
    return ask(sorted(names)) if names else {}
