"""The scheduler role: one tick looks, promotes, claims, assigns and dispatches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final

from region_scheduler.commit.gate import Change, Fate, commit
from region_scheduler.domain.ids import ClaimId, TaskId
from region_scheduler.domain.lease import LeaseTimings
from region_scheduler.domain.run import Region, RegionStatus
from region_scheduler.domain.slot import Slot
from region_scheduler.domain.task import Task
from region_scheduler.domain.tenant import LEVEL_DEFAULT, Level
from region_scheduler.domain.transitions import LOCK_LOST, Stamp, claim, requeue
from region_scheduler.errors import LostRace
from region_scheduler.identity.tenants import levels_of
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.ports.backlog import Backlog, BacklogRow, Metadata, TaskRow
from region_scheduler.ports.queue import AttemptMessage, TaskQueue
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.tasks import InFlight
from region_scheduler.ports.time import Chance, Clock, Ids
from region_scheduler.resources.assign import (
    Assignment,
    assign_slots,
    is_made,
    slots_of,
)
from region_scheduler.resources.conflicts import lost_assignment, lost_claim, record
from region_scheduler.scheduling.mend import is_ready_in
from region_scheduler.scheduling.promote import Claimant, Room, pick, promotable, shares

_SPARE: Final = 16
"""Rows of a tenant that are looked at beyond its share, in case locks keep some back."""
_DEEPER: Final = 4


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """How one region's scheduler works.

    Attributes:
        region: The region.
        look_ahead: Tasks that wait in the queue for each worker slot.
        batch_max: Most tasks promoted in one tick.
        in_flight_max: Most claimed and running tasks of the region.
        scan_limit: Most ready tasks looked at in one tick, and rows of one tenant.
        look_every_s: Pause between two looks into the graph while the backlog fills the room.
        level_default: Of tenants that have no document.
        back_off_s: Least pause of a task that lost a slot; jittered up to four times that.
    """

    region: str
    look_ahead: int = 1
    batch_max: int = 200
    in_flight_max: int = 10_000
    scan_limit: int = 2_000
    look_every_s: float = 1.0
    back_off_s: float = 0.1
    level_default: Level = LEVEL_DEFAULT


@dataclass(frozen=True, slots=True)
class Promoted:
    """What one tick did.

    Attributes:
        wait_s: Seconds after which the next tick is due if nothing wakes the scheduler.
    """

    wait_s: float
    dispatched: tuple[TaskId, ...] = ()
    claims_lost: int = 0
    assignments_lost: int = 0


class Scheduler:
    """Drains one region's part of the graph. Several may run at once: overlap costs conflicts.

    Args:
        settings: Of this region.
        graph: The graph store; suggestions come from the local follower.
        backlog: This region's backlog.
        metadata: The attributes of this region's tasks.
        queue: This region's queues.
        keeper: This process's lease; without it nothing is claimed.
        timings: Lease arithmetic.
        clock: This machine's clock.
        ids: For claim ids.
        chance: For jitter.
    """

    def __init__(
        self,
        settings: SchedulerSettings,
        graph: GraphStores,
        backlog: Backlog,
        metadata: Metadata,
        queue: TaskQueue,
        keeper: LeaseKeeper,
        timings: LeaseTimings,
        clock: Clock,
        ids: Ids,
        chance: Chance,
    ) -> None:
        self._settings = settings
        self._graph = graph
        self._backlog = backlog
        self._metadata = metadata
        self._queue = queue
        self._keeper = keeper
        self._timings = timings
        self._clock = clock
        self._ids = ids
        self._chance = chance
        self._notice, self._noticed = object(), object()
        self._looked_at = -inf

    def notice(self) -> None:
        """Say that a task may have become ready; returns at once, from any thread."""
        self._notice = object()

    def tick(self) -> Promoted:
        """Promote what can run now.

        Raises:
            Unavailable, OutcomeUnknown: Claims made in this tick come back by time-out.
        """
        slow = self._timings.reconcile_every_s
        if not self._keeper.may_act() or not self._may_claim():
            return Promoted(slow)
        rows = self._promotable()
        if not rows:
            return Promoted(self._next_wait())
        claimed, losers, spent = self._claim(rows)
        assignments = self._assign(claimed)
        dispatched = self._dispatch([a.task for a in assignments if not a.lost])
        lost = [a for a in assignments if a.lost]
        self._give_back(lost)
        # What only keeps books comes last: if it fails, no claim has to wait for its time-out.
        self._backlog.remove(spent)
        self._note([*claimed, *losers])
        self._record(losers, lost)
        return Promoted(self._next_wait(), tuple(t.id for t in dispatched), len(losers), len(lost))

    def _may_claim(self) -> bool:
        (region,) = self._graph.regions.read([self._settings.region])
        return isinstance(region, Region) and region.status is RegionStatus.ACTIVE

    def _promotable(self) -> Sequence[BacklogRow]:
        """Return the rows to promote, the graph asked for new ones only where they may matter.

        Nothing is asked while there is no room. Whatever is not looked for here gets its row from
        the mender, within `reconcile_every_s`.
        """
        in_flight = self._graph.tasks.in_flight(self._settings.region)
        room = self._room(in_flight)
        if not room.total or not room.pools:
            return ()
        since_s = self._clock.monotonic() - self._looked_at
        least_s = self._settings.look_every_s if self._is_noticed() else inf
        if since_s >= min(least_s, self._timings.reconcile_every_s):
            self._discover()
        rows = self._choose(in_flight, room)
        if len(rows) < room.total and self._is_noticed() and self._discover():
            rows = self._choose(in_flight, room)
        return rows

    def _is_noticed(self) -> bool:
        return self._notice is not self._noticed

    def _discover(self) -> bool:
        """Take over what became ready, whoever admitted it; say whether there was anything."""
        notice, at = self._notice, self._clock.monotonic()
        region = self._settings.region
        seen = self._graph.tasks.marks_claimable(region, self._settings.scan_limit)
        rows = self._backlog.marks(list(seen))
        new = [id_ for id_, seq in seen.items() if rows.get(id_, -1) < seq]
        ready = self._ready(new)
        if ready:
            self._backlog.add([BacklogRow.of(task) for task in ready], self._now_s())
            self._note(ready)
        # Only now: what a look that failed was for is still to be looked for.
        self._noticed, self._looked_at = notice, at
        return bool(ready)

    def _ready(self, ids: Sequence[TaskId]) -> list[Task]:
        """Return those of the tasks that this region may claim, as read at the leader."""
        tasks = self._graph.tasks.known(ids).values() if ids else ()
        region = self._settings.region
        return [task for task in tasks if task is not None and is_ready_in(region, task)]

    def _note(self, tasks: Sequence[Task]) -> None:
        """Keep the attributes of this region's tasks up to date with what was read or written."""
        mine = [TaskRow.of(task) for task in tasks if task.region == self._settings.region]
        if mine:
            self._metadata.record(mine)

    def _room(self, in_flight: InFlight) -> Room:
        workers = self._graph.instances.workers(self._settings.region)
        pools = sorted({pool for worker in workers for pool in worker.capacity})
        # What timed out before a worker came to it is still in the queue, and takes room there.
        under_way = {
            pool: max(in_flight.by_pool.get(pool, 0), self._queue.length(pool)) for pool in pools
        }
        room = promotable(workers, self._settings.look_ahead, under_way)
        return room.within(self._settings.in_flight_max - in_flight.total, self._settings.batch_max)

    def _choose(self, in_flight: InFlight, room: Room) -> Sequence[BacklogRow]:
        """Return the rows to promote: of each tenant, by its share, the best that can run.

        Where locks or full pools keep many back, it looks deeper.
        """
        tenants = self._backlog.tenants()
        if not tenants:
            return ()
        levels = levels_of(self._graph.tenants, tenants, self._settings.level_default)
        claimants = {
            name: Claimant(levels[name], in_flight.by_tenant.get(name, 0)) for name in tenants
        }
        asked = {
            name: share + _SPARE if claimants[name].may_have(1) else 0
            for name, share in shares(claimants, room.total).items()
        }
        limit, pools = self._settings.scan_limit, room.pools
        seen: dict[TaskId, BacklogRow] = {}
        while True:
            found = self._backlog.top(asked, self._now_s(), pools)
            seen |= {row.task: row for row in found}  # a deeper look only adds behind
            rows = list(seen.values())
            picked = pick(rows, self._slots_seen(rows), room, claimants)
            counts = Counter(row.tenant for row in found)
            cut = [n for n in picked.short if asked[n] <= counts[n] < limit]
            if not cut:
                return picked.rows
            if pools - picked.pools:
                pools &= picked.pools  # what waits for a full pool hides what could run in another
            else:
                asked |= {name: min(_DEEPER * asked[name], limit) for name in cut}

    def _slots_seen(self, rows: Sequence[BacklogRow]) -> dict[str, list[Slot]]:
        names = sorted({name for row in rows for name in row.locks})
        slots: dict[str, list[Slot]] = {name: [] for name in names}
        for slot in self._graph.slots.of_resources(names) if names else ():
            slots[slot.resource].append(slot)
        # One that was made in part is as good as never seen: its first taker makes the rest.
        return {name: units for name, units in slots.items() if is_made(units)}

    def _claim(
        self, rows: Sequence[BacklogRow]
    ) -> tuple[list[Task], list[Task], list[tuple[TaskId, int]]]:
        """Claim each row's task; return those won, those lost to others, and the rows to drop."""
        me, region, at = self._keeper.instance.id, self._settings.region, self._clock.now()
        known = self._ready([row.task for row in rows])
        changes = [
            Change(
                task.id,
                partial(
                    claim, claim_id=ClaimId(self._ids.new()), scheduler=me, region=region, at=at
                ),
                known=task,
            )
            for task in known
        ]
        outcomes = commit(self._graph.tasks, changes)
        unknown = {c.id for c, o in zip(changes, outcomes, strict=True) if o.fate is Fate.UNKNOWN}
        spent = [(row.task, row.seq) for row in rows if row.task not in unknown]
        losers = [o.value for o in outcomes if isinstance(o.error, LostRace) and o.value]
        won = [o.value for o in outcomes if o.is_ours and o.value is not None]
        return won, losers, spent

    def _record(self, losers: Sequence[Task], lost: Sequence[Assignment]) -> None:
        """Write down what others won; a slot that did not answer was won by nobody."""
        me, region = self._keeper.instance.id, self._settings.region
        claims = [lost_claim(task, me, region, self._clock) for task in losers]
        assignments = [
            lost_assignment(a.task, a.lost, a.winner, self._clock) for a in lost if a.winner
        ]
        record(self._graph.conflicts, [*claims, *assignments])

    def _assign(self, claimed: Sequence[Task]) -> list[Assignment]:
        needy = [task for task in claimed if task.spec.locks]
        slots = slots_of(self._graph.slots, [n for t in needy for n in t.spec.locks])
        assigned = assign_slots(self._graph.slots, needy, slots) if needy else []
        free = [Assignment(task) for task in claimed if not task.spec.locks]
        return [*free, *assigned]

    def _dispatch(self, tasks: Sequence[Task]) -> list[Task]:
        messages = [
            AttemptMessage(
                task=task.id,
                token=task.token,
                region=task.region,
                pool=task.spec.pool,
                trace=task.trace,
            )
            for task in tasks
        ]
        sent = self._queue.publish(messages) if messages else []
        unsent = [task for task, is_sent in zip(tasks, sent, strict=True) if not is_sent]
        self._requeue([(task, "the broker took no message") for task in unsent])
        return [task for task, is_sent in zip(tasks, sent, strict=True) if is_sent]

    def _give_back(self, lost: Sequence[Assignment]) -> None:
        """Put the loser's own task back: no retry is spent, and it rests for a jittered while."""
        returned = self._requeue([(a.task, _why_lost(a)) for a in lost])
        now_s, pause = self._now_s(), self._settings.back_off_s
        self._backlog.add([BacklogRow.of(task) for task in returned], now_s)
        for task in returned:
            factor = min(4, 1 + task.slots_lost)
            until_s = now_s + self._chance.uniform(pause, pause * factor)
            self._backlog.rest(task.id, task.seq, until_s)
        self._note(returned)

    def _requeue(self, tasks: Sequence[tuple[Task, str]]) -> list[Task]:
        stamp = Stamp(self._keeper.instance.id, self._clock.now())
        changes = [
            Change(
                task.id,
                partial(requeue, token=task.token, reason=reason, stamp=stamp),
                known=task,
            )
            for task, reason in tasks
        ]
        outcomes = commit(self._graph.tasks, changes)
        return [o.value for o in outcomes if o.is_ours and o.value is not None]

    def _next_wait(self) -> float:
        slow = self._timings.reconcile_every_s
        now_s = self._now_s()
        due_s = self._backlog.next_due_s(now_s)
        return slow if due_s is None else min(slow, max(0.0, due_s - now_s))

    def _now_s(self) -> float:
        return self._clock.now().timestamp()


def _why_lost(assignment: Assignment) -> str:
    if assignment.winner:
        return f"{LOCK_LOST}{assignment.lost} is held by {assignment.winner}"
    return f"the slots of {assignment.lost} did not answer"
