"""The scheduler role: one tick looks, promotes, claims, assigns and dispatches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from region_scheduler.commit.gate import Change, Fate, commit
from region_scheduler.domain.calendar import Calendar, outlook, shut_too
from region_scheduler.domain.ids import ClaimId, TaskId
from region_scheduler.domain.lease import LeaseTimings
from region_scheduler.domain.pause import EVERYTHING, Closed, Scope, ScopeKind, closed_at
from region_scheduler.domain.region import RegionStatus
from region_scheduler.domain.slot import Slot
from region_scheduler.domain.task import Task
from region_scheduler.domain.transitions import LOCK_LOST, Stamp, claim, requeue
from region_scheduler.errors import LostRace, Unavailable
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.ports.backlog import Backlog, BacklogRow, Metadata
from region_scheduler.ports.queue import AttemptMessage, TaskQueue
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.standing import Standing
from region_scheduler.ports.time import Chance, Clock, Ids
from region_scheduler.resources.assign import (
    Assignment,
    assign_slots,
    slots_of,
)
from region_scheduler.resources.conflicts import lost_assignment, lost_claim, record
from region_scheduler.scheduling.batcher import Batcher
from region_scheduler.scheduling.memory import Acknowledged, proof_of_age
from region_scheduler.scheduling.ownership import Owner
from region_scheduler.scheduling.promote import NO_ROOM, Queued, Room, idle
from region_scheduler.scheduling.settings import SchedulerSettings


@dataclass(frozen=True, slots=True)
class Promoted:
    """What one tick did.

    Attributes:
        wait_s: Seconds after which the next tick is due if nothing wakes the scheduler.
        queues: How long each queue was when the tick looked, with what it put there since.
        idle: Slots of live workers that nothing was there for.
    """

    wait_s: float
    dispatched: tuple[TaskId, ...] = ()
    claims_lost: int = 0
    assignments_lost: int = 0
    queues: Mapping[str, Queued] = field(default_factory=dict)
    idle: Room = NO_ROOM


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
        self._queue = queue
        self._keeper = keeper
        self._timings = timings
        self._clock = clock
        self._ids = ids
        self._chance = chance
        self._owner = Owner(settings.ownership, keeper.instance.id, graph, backlog)
        self._batcher = Batcher(settings, graph, backlog, metadata, timings, clock)
        self._acknowledged = Acknowledged()
        self._calendars: Sequence[Calendar] = ()
        self._outlook = outlook((), clock.now())

    def notice(self) -> None:
        """Say that a task may have become ready; returns at once, from any thread."""
        self._batcher.notice()

    def tick(self) -> Promoted:
        """Promote what can run now.

        Raises:
            Unavailable, OutcomeUnknown: Claims made in this tick come back by time-out.
            Fenced: The store was set back; this process must end.
        """
        slow = self._timings.reconcile_every_s
        if not self._keeper.may_act():
            return Promoted(slow)
        beat = self._keeper.instance.beat
        standing = self._graph.regions.standing(self._settings.region, self._batcher.tenants())
        region = standing.region
        if region is None or region.status is not RegionStatus.ACTIVE:
            return Promoted(slow)
        if not self._is_current(standing, beat):
            return Promoted(slow)
        closed = self._closed(standing)
        if closed.why([EVERYTHING, Scope(ScopeKind.REGION, region.id)]):
            # If that is because the store was set back, a person decides from when it is believed.
            self._acknowledged.forget()
            return Promoted(slow)
        if not self._owner.may_promote(region):
            return Promoted(slow)
        mine = self._owner.part(standing, self._batcher.room(standing, self._queue.length))
        batch = self._batcher.promotable(standing, closed, mine)
        unused = idle(standing.workers, standing.in_flight, batch.rows)
        unused = unused.within(mine.room.total - len(batch.rows))
        if not batch.rows:
            return Promoted(self._next_wait(), queues=self._batcher.queues, idle=unused)
        claimed, losers, spent = self._claim(batch.rows)
        assignments = self._assign(claimed, batch.slots)
        if not self._keeper.may_act():
            return Promoted(slow)  # paused meanwhile: a lease that is over sends nothing any more
        dispatched = self._dispatch([a.task for a in assignments if not a.lost])
        lost = [a for a in assignments if a.lost]
        self._give_back(lost)
        # What only keeps books comes last: if it fails, no claim has to wait for its time-out.
        self._backlog.remove(spent)
        self._record(losers, lost)
        # Where only the size of a batch was in the way, the next one follows at once.
        is_cut = bool(dispatched) and len(batch.rows) == self._settings.batch_max
        return Promoted(
            0.0 if is_cut else self._next_wait(),
            tuple(task.id for task in dispatched),
            len(losers),
            len(lost),
            self._queues(dispatched),
            unused,
        )

    def _is_current(self, standing: Standing, beat: int) -> bool:
        """Say whether it shows our lease, and at least the beat acknowledged before it was asked.

        Else a deposed leader has answered, or the store was set back: our next renewal tells.
        """
        me = self._keeper.instance.id
        return any(one.id == me and one.beat >= beat for one in standing.members)

    def _queues(self, dispatched: Sequence[Task]) -> Mapping[str, Queued]:
        put = Counter(task.spec.pool for task in dispatched)
        seen = self._batcher.queues
        return {p: replace(queue, length=queue.length + put[p]) for p, queue in seen.items()}

    def _closed(self, standing: Standing) -> Closed:
        """Return where nothing is promoted now; calendars are looked at anew when they change."""
        now = self._clock.now()
        if standing.calendars != self._calendars or not self._outlook.holds_at(now):
            self._calendars, self._outlook = standing.calendars, outlook(standing.calendars, now)
        return shut_too(closed_at(standing.pauses, now), self._outlook.shut)

    def _claim(
        self, rows: Sequence[BacklogRow]
    ) -> tuple[list[Task], list[Task], list[tuple[TaskId, int]]]:
        """Claim each row's task; return those won, those lost to others, and the rows to drop."""
        me, region, at = self._keeper.instance.id, self._settings.region, self._clock.now()
        known = self._batcher.ready([row.task for row in rows])
        self._require_current(known)
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
        if losers:
            self._batcher.distrust()
        won = [o.value for o in outcomes if o.is_ours and o.value is not None]
        self._acknowledged.note(won)
        return won, losers, spent

    def _require_current(self, tasks: Sequence[Task]) -> None:
        """Go on if none of `tasks` shows less than we have written.

        Raises:
            Fenced: The store was set back; nothing is claimed any more.
            Unavailable, OutcomeUnknown: It looks like it; nothing was claimed.
        """
        older = [task for task in tasks if task.seq < self._acknowledged.seq(task.id)]
        if not older:
            return
        seen, known = older[0], self._acknowledged.seq(older[0].id)
        (outcome,) = commit(
            self._graph.tasks, [Change(seen.id, partial(proof_of_age, known=known), known=seen)]
        )
        if outcome.fate is Fate.COMMITTED:
            self._keeper.set_back(f"task {seen.id} was at write {known}, and is at {seen.seq}")
        raise Unavailable(dependency="graph store", detail="an old leader answered")

    def _record(self, losers: Sequence[Task], lost: Sequence[Assignment]) -> None:
        """Write down what others won; a slot that did not answer was won by nobody."""
        me, region = self._keeper.instance.id, self._settings.region
        claims = [lost_claim(task, me, region, self._clock) for task in losers]
        assignments = [
            lost_assignment(a.task, a.lost, a.winner, self._clock) for a in lost if a.winner
        ]
        record(self._graph.conflicts, [*claims, *assignments])

    def _assign(
        self, claimed: Sequence[Task], seen: Mapping[str, Sequence[Slot]]
    ) -> list[Assignment]:
        needy = [task for task in claimed if task.spec.locks]
        slots = slots_of(self._graph.slots, [n for t in needy for n in t.spec.locks], seen)
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
        returned = [o.value for o in outcomes if o.is_ours and o.value is not None]
        self._acknowledged.note(returned)
        return returned

    def _next_wait(self) -> float:
        most = min(self._timings.reconcile_every_s, self._batcher.wait_s)
        now_s = self._now_s()
        due_s = self._backlog.next_due_s(now_s)
        return most if due_s is None else min(most, max(0.0, due_s - now_s))

    def _now_s(self) -> float:
        return self._clock.now().timestamp()


def _why_lost(assignment: Assignment) -> str:
    if assignment.winner:
        return f"{LOCK_LOST}{assignment.lost} is held by {assignment.winner}"
    return f"the slots of {assignment.lost} did not answer"
