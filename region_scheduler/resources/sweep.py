"""The resource manager role: whatever holds something and should not any more loses it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

from region_scheduler.commit.gate import Change, commit
from region_scheduler.domain.ids import Incarnation, TaskId
from region_scheduler.domain.instance import Fence, FenceKind, Instance, fenced
from region_scheduler.domain.lease import LeaseTimings
from region_scheduler.domain.region import RegionStatus
from region_scheduler.domain.slot import (
    Reservation,
    Slot,
    is_orphan,
    is_reservation_void,
    release,
)
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import Task
from region_scheduler.domain.transitions import Stamp, lose, requeue
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.membership.observer import Observer
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.telemetry import SILENCE, Telemetry
from region_scheduler.ports.time import Clock
from region_scheduler.resources.peers import ManagerSilent, Peers


@dataclass(frozen=True, slots=True)
class Swept:
    """What one tick did.

    Attributes:
        unresponsive: Fenced because they did not answer a stop.
        silent: Peers that live and do not look, each told once.
    """

    fenced: tuple[Incarnation, ...] = ()
    moved: tuple[Task, ...] = ()
    freed: tuple[Slot, ...] = ()
    unresponsive: tuple[Incarnation, ...] = ()
    silent: tuple[ManagerSilent, ...] = ()


class ResourceManager:
    """Watches leases, dispatches, receipts and slots; one per region, overlapping ones are safe.

    Args:
        region: Whose dispatches and receipts it watches; leases and slots it watches everywhere.
        graph: The graph store.
        keeper: This process's own lease; without it nothing is judged.
        settler: Does what follows a task that was taken away.
        timings: Lease arithmetic.
        clock: This machine's clock.
        telemetry: Is told of peers that are silent.
    """

    def __init__(
        self,
        region: str,
        graph: GraphStores,
        keeper: LeaseKeeper,
        settler: Settler,
        timings: LeaseTimings,
        clock: Clock,
        telemetry: Telemetry = SILENCE,
    ) -> None:
        self._region = region
        self._graph = graph
        self._keeper = keeper
        self._settler = settler
        self._timings = timings
        self._clock = clock
        self._observer = Observer(timings)
        self._peers = Peers(timings)
        self._telemetry = telemetry

    def tick(self) -> Swept:
        """Look once at everything, and act on what is over. Level-triggered: repeating is safe.

        Raises:
            Unavailable, OutcomeUnknown: Part of it may be done; the next tick does the rest.
        """
        if not self._keeper.may_act():
            return Swept()
        instances = self._graph.instances.unfenced()
        newly = self._fence_dead(instances)
        held = self._graph.tasks.held(self._region)
        moved = [*self._sweep_fenced(), *self._watch_region(held, instances)]
        unresponsive = self._fence_unresponsive(held, instances)
        if moved:
            self._settler.settle(moved)
        freed = self._sweep_slots()
        if freed:
            self._settler.wake(region.id for region in self._graph.regions.all())
        silent = self._silent(instances)
        self._keeper.swept()
        return Swept(tuple(newly), tuple(moved), tuple(freed), tuple(unresponsive), tuple(silent))

    def _silent(self, instances: Sequence[Instance]) -> list[ManagerSilent]:
        now, unbroken_since = self._clock.monotonic(), self._keeper.unbroken_since
        me = self._keeper.instance.id  # what its own beat says of its sweeps is older than this one
        seen = [replace(one, swept_ago_s=None) if one.id == me else one for one in instances]
        news = self._peers.news(self._peers.silent(seen, now, unbroken_since))
        for one in news:
            self._telemetry.emit(one)
        return news

    def _fence_dead(self, instances: Sequence[Instance]) -> list[Incarnation]:
        now, unbroken_since = self._clock.monotonic(), self._keeper.unbroken_since
        dead = self._observer.dead(instances, now, unbroken_since)
        fence = Fence(kind=FenceKind.EXPIRED, by=self._keeper.instance.id, at=self._clock.now())
        changes = [Change(i.id, partial(fenced, beat=i.beat, fence=fence), known=i) for i in dead]
        outcomes = commit(self._graph.instances, changes)
        return [o.value.id for o in outcomes if o.is_ours and o.value is not None]

    def _fence_unresponsive(
        self, held: Sequence[Task], instances: Sequence[Instance]
    ) -> list[Incarnation]:
        """Fence the holders that do not answer a stop; their tasks are taken a lease later.

        Only then has the deadline passed at which their shims end what runs, however busy the
        process is. The fence takes all that the process holds: it cannot be trusted with any.
        """
        now, unbroken_since = self._clock.monotonic(), self._keeper.unbroken_since
        running = [task for task in held if task.state is TaskState.RUNNING]
        stuck = self._observer.unanswered(running, now, unbroken_since)
        holders = {task.holder.incarnation for task in stuck if task.holder is not None}
        me, at = self._keeper.instance.id, self._clock.now()
        fence = Fence(kind=FenceKind.UNRESPONSIVE, by=me, at=at)
        changes = [
            Change(one.id, partial(fenced, beat=one.beat, fence=fence), known=one)
            for one in instances
            if one.id in holders
        ]
        outcomes = commit(self._graph.instances, changes)
        return [o.value.id for o in outcomes if o.is_ours and o.value is not None]

    def _sweep_fenced(self) -> list[Task]:
        now, unbroken_since = self._clock.monotonic(), self._keeper.unbroken_since
        ripe = self._observer.sweepable(self._graph.instances.fenced(), now, unbroken_since)
        if not ripe:
            return []
        return self._lose(self._graph.tasks.held_by(ripe), "holder lost its lease")

    def _watch_region(self, held: Sequence[Task], instances: Sequence[Instance]) -> list[Task]:
        claimed = [task for task in held if task.state is TaskState.CLAIMED]
        running = [task for task in held if task.state is TaskState.RUNNING]
        abandoned = self._observer.abandoned(running, {i.id: i for i in instances})
        unheld = self._held_by_nobody(running, instances)
        overdue = self._observer.overdue(claimed, self._clock.monotonic())
        stamp = self._stamp()
        requeues = [
            Change(
                task.id,
                partial(requeue, token=task.token, reason="dispatch timed out", stamp=stamp),
                known=task,
            )
            for task in overdue
        ]
        outcomes = commit(self._graph.tasks, requeues)
        requeued = [o.value for o in outcomes if o.is_ours and o.value is not None]
        return [
            *requeued,
            *self._lose(abandoned, "its process died under a living worker"),
            *self._lose(unheld, "its holder has no lease"),
        ]

    def _held_by_nobody(self, running: Sequence[Task], instances: Sequence[Instance]) -> list[Task]:
        """Return the running tasks whose holder was absent at the leader for ttl + grace."""
        known = {instance.id for instance in instances}
        unknown = sorted({t.holder.incarnation for t in running if t.holder} - known)
        found = self._graph.instances.read(unknown) if unknown else []
        absent = [id_ for id_, instance in zip(unknown, found, strict=True) if instance is None]
        now, unbroken_since = self._clock.monotonic(), self._keeper.unbroken_since
        gone = set(self._observer.gone(absent, now, unbroken_since))
        return [task for task in running if task.holder and task.holder.incarnation in gone]

    def _lose(self, tasks: Sequence[Task], reason: str) -> list[Task]:
        stamp = self._stamp()
        changes = [
            Change(
                task.id,
                partial(lose, token=task.token, holder=task.holder, reason=reason, stamp=stamp),
                known=task,
            )
            for task in tasks
        ]
        outcomes = commit(self._graph.tasks, changes)
        return [o.value for o in outcomes if o.is_ours and o.value is not None]

    def _sweep_slots(self) -> list[Slot]:
        slots = self._graph.slots.taken()
        owners: list[TaskId] = sorted(
            {slot.holder.task for slot in slots if slot.holder is not None}
            | {slot.reservation.task for slot in slots if slot.reservation is not None}
        )
        tasks = dict(zip(owners, self._graph.tasks.read(owners), strict=True)) if owners else {}
        claiming = self._claiming() if any(slot.reservation for slot in slots) else []
        changes: list[Change[Slot]] = []
        for slot in slots:
            if slot.holder is not None and is_orphan(slot, tasks[slot.holder.task]):
                changes.append(Change(slot.id, partial(release, holder=slot.holder), known=slot))
            elif slot.reservation is not None and _is_void(
                slot, tasks[slot.reservation.task], claiming
            ):
                changes.append(
                    Change(slot.id, partial(_unreserved, reservation=slot.reservation), known=slot)
                )
        outcomes = commit(self._graph.slots, changes)
        return [o.value for o in outcomes if o.is_ours and o.value is not None]

    def _claiming(self) -> list[str]:
        regions = self._graph.regions.all()
        return [region.id for region in regions if region.status is RegionStatus.ACTIVE]

    def _stamp(self) -> Stamp:
        return Stamp(self._keeper.instance.id, self._clock.now())


def _is_void(slot: Slot, task: Task | None, claiming: Collection[str]) -> bool:
    """Say whether the owner of a reservation cannot use it now, or may not be claimed now."""
    return is_reservation_void(slot, task) or task is None or task.region not in claiming


def _unreserved(slot: Slot, reservation: Reservation) -> Slot:
    return replace(slot, reservation=None) if slot.reservation == reservation else slot
