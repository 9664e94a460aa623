"""The batcher: which of the backlog's tasks are promoted next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

from region_scheduler.domain.ids import RunId, TaskId
from region_scheduler.domain.lease import LeaseTimings
from region_scheduler.domain.pause import Closed, ScopeKind
from region_scheduler.domain.slot import Slot
from region_scheduler.domain.task import Task
from region_scheduler.domain.tenant import Level
from region_scheduler.identity.tenants import levels_of
from region_scheduler.ports.backlog import Backlog, BacklogRow, Eligible, Metadata, TaskRow
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.standing import Standing
from region_scheduler.ports.time import Clock
from region_scheduler.resources.assign import is_made
from region_scheduler.scheduling.mend import is_ready_in
from region_scheduler.scheduling.ownership import Part
from region_scheduler.scheduling.promote import (
    Claimant,
    Picked,
    Queued,
    Room,
    pick,
    promotable,
    queue_bounds,
    shares,
)
from region_scheduler.scheduling.settings import SchedulerSettings

_SPARE: Final = 16
"""Rows of a tenant that are looked at beyond its share, in case locks keep some back."""
_DEEPER: Final = 4
_LOOKS_SHARE: Final = 20
"""One part in so many of the time may go into looks while the backlog fills the room anyway: with
many ready tasks a look is work for the store."""
_PASSES_MAX: Final = 8
"""How often others may take a lock that a better row waits for, before that row is tried."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What is to be promoted.

    Attributes:
        rows: Best first.
        slots: Of the resources that were looked at for it, as far as there are any.
    """

    rows: Sequence[BacklogRow] = ()
    slots: Mapping[str, Sequence[Slot]] = field(default_factory=dict)


class Batcher:
    """Keeps the backlog up to what is ready, and chooses from it.

    Args:
        settings: Of this region.
        graph: The graph store; what is ready comes from the local follower.
        backlog: This region's backlog.
        metadata: The attributes of this region's tasks.
        timings: Lease arithmetic.
        clock: This machine's clock.
    """

    def __init__(
        self,
        settings: SchedulerSettings,
        graph: GraphStores,
        backlog: Backlog,
        metadata: Metadata,
        timings: LeaseTimings,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._graph = graph
        self._backlog = backlog
        self._metadata = metadata
        self._timings = timings
        self._clock = clock
        self._notice, self._noticed = object(), object()
        self._looked_at, self._again_at = -inf, inf
        self._pause_s = settings.look_every_s
        self._wait_s = inf
        self._fresh: dict[TaskId, Task] = {}
        self._slots: dict[str, list[Slot]] = {}
        self._waiting: list[str] = []
        self._waited: list[str] = []
        self._passed: dict[TaskId, int] = {}
        self.queues: Mapping[str, Queued] = {}

    def notice(self) -> None:
        """Say that a task may have become ready; returns at once, from any thread."""
        self._notice = object()

    @property
    def wait_s(self) -> float:
        """How long it may be left alone unless it is woken, seconds.

        A wake-up can come before the follower shows what it is about: whatever it was for is
        looked for once more, and a lock that looked taken is looked at again.
        """
        return self._wait_s

    def tenants(self) -> list[str]:
        """Return whose levels the next batch may need: of tenants that wait, or waited last.

        Raises:
            Unavailable: No answer.
        """
        self._waited = self._waiting or self._waited
        self._waiting = self._backlog.tenants()
        return sorted({*self._waited, *self._waiting})

    def room(self, standing: Standing, queue_length: Callable[[str], int]) -> Room:
        """Return K: how many more tasks the region may have in flight, as far as one batch goes.

        Args:
            standing: How the region stands.
            queue_length: Tells how many messages wait in a pool.

        Raises:
            Unavailable: The broker does not answer.
        """
        workers, in_flight = standing.workers, standing.in_flight
        bounds = queue_bounds(workers, self._settings.look_ahead)
        self.queues = {pool: Queued(queue_length(pool), most) for pool, most in bounds.items()}
        # What timed out before a worker came to it is still in the queue, and takes room there.
        under_way = {
            pool: max(in_flight.by_pool.get(pool, 0), queue.length)
            for pool, queue in self.queues.items()
        }
        room = promotable(workers, self._settings.look_ahead, under_way)
        return room.within(self._settings.in_flight_max - in_flight.total, self._settings.batch_max)

    def promotable(self, standing: Standing, closed: Closed, mine: Part) -> Batch:
        """Return what to promote, the graph asked for new ones only where they may matter.

        Nothing is asked while there is no room. Whatever is not looked for here gets its row from
        the mender, within `reconcile_every_s`.

        Args:
            standing: How the region stands.
            closed: What is paused.
            mine: This scheduler's part.

        Raises:
            Unavailable: No answer; nothing was decided.
            OutcomeUnknown: A row may be there or not.
        """
        self._wait_s = inf
        self._slots = {}
        if self._clock.monotonic() - self._looked_at >= self._pause_s:
            self.distrust()
        if not mine.room.total or not mine.room.pools:
            return Batch()
        since_s = self._clock.monotonic() - self._looked_at
        least_s = self._pause_s if self._is_noticed() else inf
        is_due = since_s >= min(least_s, self._timings.reconcile_every_s)
        if is_due:
            self._discover(self._foremost(standing, closed, mine))
        batch = self._choose(standing, closed, mine)
        is_short = len(batch.rows) < mine.room.total
        if is_short and self._may_find_more() and self._discover([r.task for r in batch.rows]):
            batch = self._choose(standing, closed, mine)
        if is_short:
            self._wait_s = min(self._wait_s, max(0.0, self._again_at - self._clock.monotonic()))
        return batch

    def _may_find_more(self) -> bool:
        return self._is_noticed() or self._clock.monotonic() >= self._again_at

    def _is_noticed(self) -> bool:
        return self._notice is not self._noticed

    def _discover(self, chosen: Sequence[TaskId]) -> bool:
        """Take over what became ready, whoever admitted it; say whether there was anything.

        Those of `chosen`, which may be claimed next, are read in the same breath.
        """
        notice, at = self._notice, self._clock.monotonic()
        region = self._settings.region
        seen = self._graph.tasks.marks_claimable(region, self._settings.scan_limit)
        rows = self._backlog.marks(list(seen))
        new = [id_ for id_, seq in seen.items() if rows.get(id_, -1) < seq]
        self.distrust()
        self._fresh = {task.id: task for task in self.ready([*chosen, *new])}
        ready = [self._fresh[id_] for id_ in new if id_ in self._fresh]
        if ready:
            self._backlog.add([BacklogRow.of(task) for task in ready], self._now_s())
            self._waiting = self._backlog.tenants()
            self._note(ready)
        # Only now: what a look that failed was for is still to be looked for.
        self._again_at = at + self._settings.look_every_s if self._noticed is not notice else inf
        self._noticed, self._looked_at = notice, at
        took_s = self._clock.monotonic() - at
        self._pause_s = max(self._settings.look_every_s, _LOOKS_SHARE * took_s)
        return bool(ready)

    def ready(self, ids: Sequence[TaskId]) -> list[Task]:
        """Return those of the tasks that this region may claim, as read at the leader.

        What the last look read is given out once, and not read again: a revision that is over
        by now costs a claim another round.

        Raises:
            Unavailable: No answer.
        """
        unread = [id_ for id_ in ids if id_ not in self._fresh]
        found = self._graph.tasks.known(unread) if unread else {}
        tasks = [found.get(id_) or self._fresh.pop(id_, None) for id_ in ids]
        region = self._settings.region
        return [task for task in tasks if task is not None and is_ready_in(region, task)]

    def distrust(self) -> None:
        """Forget what the last look read: it is old, or others claim here as well."""
        self._fresh = {}

    def _note(self, tasks: Sequence[Task]) -> None:
        """Keep the attributes of tasks that are new here: another region may have admitted them."""
        self._metadata.record([TaskRow.of(task) for task in tasks])

    def _choose(self, standing: Standing, closed: Closed, mine: Part) -> Batch:
        """Return what to promote: of each tenant that waits, by its share, the best that can run.

        Where locks or full pools keep many back, it looks deeper.
        """
        claimants = self._claimants(standing, closed)
        if not claimants:
            return Batch()
        asked = _asked(claimants, mine.room)
        limit, pools = self._settings.scan_limit, mine.room.pools
        eligible = _eligible(standing, closed, mine)
        insistent = self._insistent()
        seen: dict[TaskId, BacklogRow] = {}
        while True:
            found = self._backlog.top(asked, self._now_s(), replace(eligible, pools=pools))
            seen |= {row.task: row for row in found}  # a deeper look only adds behind
            rows = list(seen.values())
            slots = self._slots_seen(rows)
            # One that was made in part is as good as never seen: its first taker makes the rest.
            made = {name: units for name, units in slots.items() if is_made(units)}
            picked = pick(rows, made, mine.room, claimants, insistent)
            counts = Counter(row.tenant for row in found)
            cut = [n for n in picked.short if asked[n] <= counts[n] < limit]
            if not cut:
                self._count_passes(rows, picked, insistent)
                self._wait_s = self._settings.look_every_s if picked.is_short_of_locks else inf
                return Batch(picked.rows, slots)
            if pools - picked.pools:
                pools &= picked.pools  # what waits for a full pool hides what could run in another
            else:
                asked |= {name: min(_DEEPER * asked[name], limit) for name in cut}

    def _foremost(self, standing: Standing, closed: Closed, mine: Part) -> list[TaskId]:
        """Return the tasks among which the next batch is, unless better ones turn up."""
        asked = _asked(self._claimants(standing, closed), mine.room)
        eligible = replace(_eligible(standing, closed, mine), pools=mine.room.pools)
        return [row.task for row in self._backlog.top(asked, self._now_s(), eligible)]

    def _claimants(self, standing: Standing, closed: Closed) -> Mapping[str, Claimant]:
        paused = closed.names(ScopeKind.TENANT)
        tenants = [name for name in self._waiting if name not in paused]
        levels, in_flight = self._levels(standing, tenants), standing.in_flight.by_tenant
        return {name: Claimant(levels[name], in_flight.get(name, 0)) for name in tenants}

    def _insistent(self) -> TaskId | None:
        """Return the task that was passed most often, if that was too often."""
        task = max(self._passed, key=lambda task: self._passed[task], default=None)
        return task if task is not None and self._passed[task] >= _PASSES_MAX else None

    def _count_passes(
        self, rows: Sequence[BacklogRow], picked: Picked, insistent: TaskId | None
    ) -> None:
        """Note who was passed; one that was tried begins anew, one that is gone is forgotten."""
        tried = {row.task for row in picked.rows} | ({insistent} if insistent else set())
        self._passed = {
            row.task: self._passed.get(row.task, 0) + picked.passed.get(row.task, 0)
            for row in rows
            if row.task not in tried and (row.task in self._passed or row.task in picked.passed)
        }

    def _levels(self, standing: Standing, tenants: Sequence[str]) -> Mapping[str, Level]:
        """Return the tenants' levels; those that came with this very batch are asked for."""
        default = self._settings.level_default
        late = [name for name in tenants if name not in standing.levels]
        known = {name: level or default for name, level in standing.levels.items()}
        return {**known, **levels_of(self._graph.tenants, late, default)}

    def _slots_seen(self, rows: Sequence[BacklogRow]) -> dict[str, list[Slot]]:
        """Return the slots that `rows` need; what was seen for this very batch is not asked for."""
        names = {name for row in rows for name in row.locks}
        unseen = sorted(names - self._slots.keys())
        self._slots |= {name: [] for name in unseen}
        for slot in self._graph.slots.of_resources(unseen) if unseen else ():
            self._slots[slot.resource].append(slot)
        return self._slots

    def _now_s(self) -> float:
        return self._clock.now().timestamp()


def _asked(claimants: Mapping[str, Claimant], room: Room) -> dict[str, int]:
    """Return how many rows of each tenant are looked at, a few more than it would be given."""
    return {
        name: share + _SPARE if claimants[name].may_have(1) else 0
        for name, share in shares(claimants, room.total).items()
    }


def _eligible(standing: Standing, closed: Closed, mine: Part) -> Eligible:
    runs = {RunId(name) for name in closed.names(ScopeKind.RUN)}
    zones = closed.names(ScopeKind.ZONE)
    of_zones = {run for zone in zones for run in standing.zone_runs.get(zone, ())}
    # A step lets a wave of a paused run pass; what else closes the run it does not open.
    passports = {closed.passports[run] for run in runs - of_zones}
    return Eligible(None, frozenset(runs | of_zones), frozenset(passports), mine.buckets)
