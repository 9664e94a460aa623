"""Slot stores to assign from, and tasks that want slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from region_scheduler.assembly.in_process import in_process_graph
from region_scheduler.domain.ids import ClaimId
from region_scheduler.domain.slot import Slot
from region_scheduler.domain.task import LockNeed, Task, Token
from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.ports.records import SlotStore
from region_scheduler.resources.assign import Assignment, assign_slots, slots_of
from region_scheduler.simulation.time import VirtualClock
from tests.unit.domain.samples import a_spec, claimed


def new_store() -> SlotStore:
    clock = VirtualClock()
    engine = Engine(is_cluster=True, regions=("eu",), clock=clock.monotonic, seed=1)
    return in_process_graph(engine, "eu").slots


def wanting(name: str, *needs: LockNeed | str, number: int = 1, **more: Any) -> Task:
    """Return a claimed task that needs those locks, under a claim of its own."""
    locks = tuple(LockNeed(need) if isinstance(need, str) else need for need in needs)
    task = claimed(name=name, spec=a_spec(name, locks=locks))
    return replace(task, token=Token(number, ClaimId(f"{name}-{number}")), **more)


def assigned(store: SlotStore, *tasks: Task, view: SlotStore | None = None) -> list[Assignment]:
    """Assign as a scheduler does, from the view that `view` shows."""
    needs = [need for task in tasks for need in task.spec.locks]
    return assign_slots(store, tasks, slots_of(view or store, needs))


def got(assignments: Sequence[Assignment]) -> dict[str, int]:
    """Return how many units each task got."""
    return {a.task.spec.name: len(a.slots) for a in assignments if not a.lost}


def held(store: SlotStore) -> dict[str, str]:
    """Return the resource and unit of every held slot, with its holder's claim."""
    return {f"{s.resource}.{s.unit}": s.holder.token.claim_id for s in store.taken() if s.holder}


@dataclass
class Watched:
    """A slot store that tells what is written, and lets others act before each call.

    Attributes:
        before: Called before each read and write.
        writes: The slot ids of each write call.
        luck: Replaces the answer of a write call, given the answer.
    """

    inner: SlotStore
    before: Callable[[], None] = lambda: None
    writes: list[list[str]] = field(default_factory=list)
    luck: Callable[[Any], Any] = lambda answers: answers

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def read(self, ids: Sequence[str]) -> list[Slot | None]:
        self.before()
        return self.inner.read(ids)

    def write(self, changes: Sequence[tuple[Slot, Slot]]) -> Any:
        self.before()
        self.writes.append([before.id for before, _ in changes])
        return self.luck(self.inner.write(changes))
