"""Choose what to promote: pure arithmetic on facts (DESIGN.md section 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from region_scheduler.domain.instance import Instance
from region_scheduler.domain.slot import Slot
from region_scheduler.ports.backlog import BacklogRow


def promotable(workers: Sequence[Instance], look_ahead: int, in_flight: int) -> int:
    """Return K: how many more tasks the region's queues should hold.

    Args:
        workers: Live workers of the region.
        look_ahead: Tasks kept waiting in the queue for each slot of a worker, at least 0.
        in_flight: Claimed and running tasks of the region.
    """
    capacity = sum(sum(worker.capacity.values()) for worker in workers)
    return max(0, capacity * (1 + look_ahead) - in_flight)


def pick(
    rows: Sequence[BacklogRow], slots: Mapping[str, Sequence[Slot]], count: int
) -> list[BacklogRow]:
    """Return the first `count` rows whose locks look free, each lock given to one taker a unit.

    Small tasks pass a big one that waits for a lock. A stale view costs a conflict, no mistake.
    """
    free = {name: _units_open(units) for name, units in slots.items()}
    picked: list[BacklogRow] = []
    for row in rows:
        if len(picked) == count:
            break
        wanted = Counter(row.locks)
        own = {
            name: sum(1 for unit in slots.get(name, ()) if _is_own(unit, row)) for name in wanted
        }
        if all(free.get(name, n) + own[name] >= n for name, n in wanted.items()):
            picked.append(row)
            for name, n in wanted.items():
                if name in free:
                    free[name] -= max(0, n - own[name])
    return picked


def waits_for(row: BacklogRow, slots: Mapping[str, Sequence[Slot]]) -> str:
    """Return the first lock that keeps the row back in this view; empty if none does."""
    for name, n in Counter(row.locks).items():
        units = slots.get(name)
        if units is None:
            continue
        if sum(1 for unit in units if _is_open(unit) or _is_own(unit, row)) < n:
            return name
    return ""


def _units_open(units: Sequence[Slot]) -> int:
    return sum(1 for unit in units if _is_open(unit))


def _is_open(unit: Slot) -> bool:
    return unit.holder is None and unit.reservation is None and not unit.is_retiring


def _is_own(unit: Slot, row: BacklogRow) -> bool:
    if unit.holder is not None:
        return unit.holder.task == row.task
    return unit.reservation is not None and unit.reservation.task == row.task
