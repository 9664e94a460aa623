"""Choose what to promote: pure arithmetic on facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Final

from region_scheduler.domain.ids import TaskId
from region_scheduler.domain.instance import Instance
from region_scheduler.domain.slot import Slot
from region_scheduler.domain.tenant import Level
from region_scheduler.ports.backlog import BacklogRow
from region_scheduler.ports.tasks import InFlight


@dataclass(frozen=True, slots=True)
class Room:
    """K: how many more tasks the region's queues should hold.

    Attributes:
        total: In all pools together: a worker that serves several runs no more for it.
        by_pool: In each pool that a worker serves.
    """

    total: int
    by_pool: Mapping[str, int]

    def within(self, *bounds: int) -> Room:
        """Return the same room under further bounds of the total."""
        return Room(max(0, min(self.total, *bounds)), self.by_pool)

    @property
    def pools(self) -> frozenset[str]:
        """Those with room for another task."""
        return frozenset(pool for pool, count in self.by_pool.items() if count > 0)


@dataclass(frozen=True, slots=True)
class Queued:
    """How long a queue is.

    Attributes:
        length: Messages that no worker has taken.
        most: What it never passes: its workers' slots with the look-ahead.
    """

    length: int
    most: int


def queue_bounds(workers: Sequence[Instance], look_ahead: int) -> dict[str, int]:
    """Return how many messages the queue of each pool that a worker serves may hold, by name."""
    slots: Counter[str] = Counter()
    for worker in workers:
        slots.update(worker.capacity)
    return {pool: slots[pool] * (1 + look_ahead) for pool in sorted(slots)}


def promotable(workers: Sequence[Instance], look_ahead: int, under_way: Mapping[str, int]) -> Room:
    """Return K, in all and by pool.

    Args:
        workers: Live workers of the region.
        look_ahead: Tasks kept waiting in the queue for each slot of a worker, at least 0.
        under_way: What takes room by pool: claimed and running tasks, or messages if more.
    """
    bounds = queue_bounds(workers, look_ahead)
    capacity = sum(worker.slots for worker in workers)
    taken = sum(under_way.get(pool, 0) for pool in bounds)
    by_pool = {pool: max(0, most - under_way.get(pool, 0)) for pool, most in bounds.items()}
    return Room(max(0, capacity * (1 + look_ahead) - taken), by_pool)


NO_ROOM: Final = Room(0, {})


def idle(workers: Sequence[Instance], in_flight: InFlight, rows: Sequence[BacklogRow]) -> Room:
    """Return the slots of `workers` that neither what is in flight nor `rows` will take."""
    promoted = Counter(row.pool for row in rows)
    under_way = {p: in_flight.by_pool.get(p, 0) + promoted[p] for w in workers for p in w.capacity}
    return promotable(workers, 0, under_way)


@dataclass(frozen=True, slots=True)
class Claimant:
    """A tenant with tasks that wait in this region.

    Attributes:
        level: What its subscription is worth.
        in_flight: How many tasks it has claimed and running here.
    """

    level: Level
    in_flight: int = 0

    def rank(self, picked: int) -> tuple[bool, float]:
        """Return how it stands with `picked` more in flight: the least comes next."""
        count = self.in_flight + picked
        return count >= self.level.floor, count / self.level.weight

    def may_have(self, count: int) -> int:
        """Return how many of `count` more it may have under its own bound."""
        most = self.level.in_flight_max
        return count if most is None else max(0, min(count, most - self.in_flight))


@dataclass(frozen=True, slots=True)
class Picked:
    """What is to be promoted, best first.

    Attributes:
        short: Tenants whose rows ran out before their turn was over.
        pools: Those that have room left for more.
        passed: How many of `rows` took a lock that a better row waits for, by that row's task.
        is_short_of_locks: Whether a lock that looked taken kept any row back.
    """

    rows: tuple[BacklogRow, ...]
    short: frozenset[str]
    pools: frozenset[str]
    passed: Mapping[TaskId, int]
    is_short_of_locks: bool


def shares(claimants: Mapping[str, Claimant], count: int) -> dict[str, int]:
    """Return how many of `count` tasks each tenant gets if all have enough that can run."""
    given = dict.fromkeys(claimants, 0)
    turns = _turns(claimants)
    for _ in range(count):
        if not turns:
            break
        _, name = heappop(turns)
        given[name] += 1
        _again(turns, claimants, name, given[name])
    return given


def pick(
    rows: Sequence[BacklogRow],
    slots: Mapping[str, Sequence[Slot]],
    room: Room,
    claimants: Mapping[str, Claimant],
    insistent: TaskId | None = None,
) -> Picked:
    """Return the rows to promote into `room`, tenants taking turns by weight, floors first.

    A tenant's rows come in the order given. Only rows whose pool has room and whose locks look free
    are taken, each lock given to one taker a unit: small tasks pass a big one that waits for a
    lock. A stale view costs a conflict, no mistake.

    Args:
        rows: Of all tenants, each tenant's best first.
        slots: Of the locks that they need; a lock that is not named is free.
        room: How many, and in which pools.
        claimants: The tenants.
        insistent: One that was passed too often is tried although a lock looks taken: what it loses
            by that, it may reserve in the end.
    """
    waiting: dict[str, list[BacklogRow]] = {name: [] for name in claimants}
    for row in reversed(rows):
        waiting[row.tenant].append(row)
    free = {name: _units_open(units) for name, units in slots.items()}
    left = dict(room.by_pool)
    turns, given = _turns(claimants), dict.fromkeys(claimants, 0)
    picked: list[BacklogRow] = []
    kept_back: list[BacklogRow] = []
    passed: Counter[TaskId] = Counter()
    short: set[str] = set()
    while turns and len(picked) < room.total:
        _, name = heappop(turns)
        found = _next_free(waiting[name], slots, free, left, kept_back, insistent)
        if found is None:
            short.add(name)
            continue
        picked.append(found)
        passed.update(row.task for row in kept_back if not set(row.locks).isdisjoint(found.locks))
        left[found.pool] -= 1
        given[name] += 1
        _again(turns, claimants, name, given[name])
    return Picked(tuple(picked), frozenset(short), Room(0, left).pools, passed, bool(kept_back))


def _turns(claimants: Mapping[str, Claimant]) -> list[tuple[tuple[bool, float], str]]:
    turns = [(c.rank(0), name) for name, c in claimants.items() if c.may_have(1)]
    heapify(turns)
    return turns


def _again(
    turns: list[tuple[tuple[bool, float], str]],
    claimants: Mapping[str, Claimant],
    name: str,
    given: int,
) -> None:
    """Let a tenant that was given its `given`th wait for its next turn, if it may have one."""
    if claimants[name].may_have(given + 1) > given:
        heappush(turns, (claimants[name].rank(given), name))


def _next_free(
    waiting: list[BacklogRow],
    slots: Mapping[str, Sequence[Slot]],
    free: dict[str, int],
    left: Mapping[str, int],
    kept_back: list[BacklogRow],
    insistent: TaskId | None,
) -> BacklogRow | None:
    """Take rows off the end of `waiting` until one's pool has room and its locks are free.

    Those that only a lock keeps back are noted in `kept_back`.
    """
    while waiting:
        row = waiting.pop()
        if left.get(row.pool, 0) < 1:
            continue
        wanted = Counter(row.locks)
        own = {
            name: sum(1 for unit in slots.get(name, ()) if _is_own(unit, row)) for name in wanted
        }
        is_free = all(free.get(name, n) + own[name] >= n for name, n in wanted.items())
        if is_free or row.task == insistent:
            for name, n in wanted.items():
                if name in free:
                    free[name] -= max(0, n - own[name])
            return row
        kept_back.append(row)
    return None


def _units_open(units: Sequence[Slot]) -> int:
    return sum(1 for unit in units if _is_open(unit))


def _is_open(unit: Slot) -> bool:
    return unit.holder is None and unit.reservation is None and not unit.is_retiring


def _is_own(unit: Slot, row: BacklogRow) -> bool:
    if unit.holder is not None:
        return unit.holder.task == row.task
    return unit.reservation is not None and unit.reservation.task == row.task
