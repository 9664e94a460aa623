"""Roles, built from given ports. Production, tests and simulation build the same ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial

from region_scheduler.admission.cluster_manager import ClusterManager
from region_scheduler.admission.intake import Intake
from region_scheduler.admission.saga import AdmissionSaga, Calls, in_turn
from region_scheduler.admission.schedules import Timekeeper
from region_scheduler.assembly.instrumented import Hook, instrumented
from region_scheduler.domain.ids import ReceiptId
from region_scheduler.domain.instance import Instance
from region_scheduler.domain.lease import Instant, LeaseTimings
from region_scheduler.domain.limits import LIMITS, Limits
from region_scheduler.domain.region import REPLICA_AGE_MAX_S
from region_scheduler.domain.retention import RETENTION, Retention
from region_scheduler.domain.tenant import QUOTAS, Quota
from region_scheduler.identity.quotas import Quotas
from region_scheduler.lifecycle.pauses import stop_claiming
from region_scheduler.lifecycle.residence import Residence
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.operations.schedules import plan_of_schedule
from region_scheduler.ports.backlog import Backlog, Metadata
from region_scheduler.ports.follower import Follower
from region_scheduler.ports.history import History
from region_scheduler.ports.leftovers import Leftovers
from region_scheduler.ports.queue import TaskQueue, WakeUps
from region_scheduler.ports.records import (
    AdmissionStore,
    AnswerStore,
    AuditStore,
    CalendarStore,
    ConflictStore,
    DurationStore,
    GrantStore,
    GraphStores,
    InstanceStore,
    PauseStore,
    RegionStore,
    RunStore,
    ScheduleStore,
    SlotStore,
    TenantStore,
    ZoneStore,
)
from region_scheduler.ports.tasks import TaskStore
from region_scheduler.ports.time import Chance, Clock, Ids
from region_scheduler.regions.failover import Failover
from region_scheduler.regions.flow import Flow
from region_scheduler.regions.replica import ReplicaWatch
from region_scheduler.resources.sweep import ResourceManager
from region_scheduler.scheduling.collector import Collector
from region_scheduler.scheduling.learner import Learner
from region_scheduler.scheduling.mend import Mender
from region_scheduler.scheduling.reconcile import Reconciler
from region_scheduler.scheduling.scheduler import Promoted, Scheduler
from region_scheduler.scheduling.settings import SchedulerSettings


@dataclass(frozen=True, slots=True)
class Stores:
    """The graph stores as plain fields, so that a single one can be replaced."""

    tasks: TaskStore
    runs: RunStore
    zones: ZoneStore
    regions: RegionStore
    instances: InstanceStore
    slots: SlotStore
    admissions: AdmissionStore
    conflicts: ConflictStore
    answers: AnswerStore
    tenants: TenantStore
    grants: GrantStore
    pauses: PauseStore
    calendars: CalendarStore
    schedules: ScheduleStore
    durations: DurationStore
    leftovers: Leftovers
    audit: AuditStore
    history: History
    follower: Follower

    @classmethod
    def of(cls, graph: GraphStores, hook: Hook | None = None) -> Stores:
        """Return the stores of `graph`, every call passed through `hook` if one is given."""
        stores = {field.name: getattr(graph, field.name) for field in fields(cls)}
        if hook is not None:
            stores = {name: instrumented(port, name, hook) for name, port in stores.items()}
        return cls(**stores)


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything that one process of a region reaches.

    Attributes:
        carry: How the writes of a big admission are made; see `AdmissionSaga`.
        residence: The way to resident data; None refuses plans that have some.
    """

    graph: GraphStores
    backlog: Backlog
    metadata: Metadata
    queue: TaskQueue
    wake_ups: WakeUps
    clock: Clock
    ids: Ids
    chance: Chance
    carry: Callable[[Calls], None] = in_turn
    residence: Residence | None = None

    def through(self, hook: Hook) -> Ports:
        """Return the same ports with every call passed through `hook` at its named point."""
        return replace(
            self,
            graph=Stores.of(self.graph, hook),
            backlog=instrumented(self.backlog, "backlog", hook),
            metadata=instrumented(self.metadata, "metadata", hook),
            queue=instrumented(self.queue, "queue", hook),
            wake_ups=instrumented(self.wake_ups, "wake_ups", hook),
        )


@dataclass(frozen=True, slots=True)
class Services:
    """The roles that one serving process of a region carries."""

    keeper: LeaseKeeper
    settler: Settler
    scheduler: Scheduler
    mender: Mender
    reconciler: Reconciler
    resource_manager: ResourceManager
    cluster_manager: ClusterManager
    intake: Intake
    timekeeper: Timekeeper
    failover: Failover
    collector: Collector
    learner: Learner
    flow: Flow
    replica: ReplicaWatch

    def promote(self) -> Promoted:
        """Promote what can run now, and fetch more where slots are idle.

        Raises:
            Unavailable, OutcomeUnknown: As `Scheduler.tick` and `Flow.draw`.
        """
        promoted = self.scheduler.tick()
        fetched = self.flow.draw(sorted(promoted.idle.pools), promoted.idle.total)
        return replace(promoted, wait_s=0.0) if fetched else promoted


def lease_keeper(
    ports: Ports,
    instance: Instance,
    timings: LeaseTimings,
    receipts: Callable[[], tuple[ReceiptId, ...]] = tuple,
    on_deadline: Callable[[Instant], None] = lambda _: None,
    on_fenced: Callable[[], None] = lambda: None,
    on_set_back: Callable[[str], None] = lambda _: None,
) -> LeaseKeeper:
    """Return the keeper of `instance`; see `LeaseKeeper`.

    If it finds the store set back, everything is paused before `on_set_back` is told.
    """

    def set_back(reason: str) -> None:
        stop_claiming(ports.graph.pauses, instance.id, reason, ports.clock.now())
        on_set_back(reason)

    return LeaseKeeper(
        ports.graph.instances,
        instance,
        timings,
        ports.clock,
        receipts,
        on_deadline,
        on_fenced,
        set_back,
    )


def settler(ports: Ports, who: str) -> Settler:
    """Return a settler that stamps in the name of `who`."""
    return Settler(ports.graph, ports.wake_ups, ports.clock, who)


def mender(ports: Ports, region: str) -> Mender:
    """Return what holds the relational store of `region` against the graph."""
    return Mender(region, ports.graph, ports.backlog, ports.metadata, ports.clock)


def intake(
    ports: Ports, instance: Instance, quotas: Quotas | None = None, limits: Limits = LIMITS
) -> Intake:
    """Return the submitter role of `instance`; without quotas tenants have those of their own."""
    settles = settler(ports, instance.id)
    saga = AdmissionSaga(instance.region, ports.graph, ports.metadata, settles, ports.carry)
    quotas = quotas or Quotas(ports.graph, Quota(), ports.clock)
    return Intake(
        ports.graph, saga, instance.id, ports.clock, ports.ids, quotas, limits, ports.residence
    )


def region_services(
    ports: Ports,
    settings: SchedulerSettings,
    timings: LeaseTimings,
    keeper: LeaseKeeper,
    limits: Limits = LIMITS,
    *,
    retention: Retention = RETENTION,
    is_failover_automatic: bool = True,
    replica_age_max_s: float = REPLICA_AGE_MAX_S,
) -> Services:
    """Return every role of one region on `ports`, under one lease."""
    graph, clock, region = ports.graph, ports.clock, settings.region
    settles = settler(ports, keeper.instance.id)
    saga = AdmissionSaga(region, graph, ports.metadata, settles, ports.carry)
    quotas = Quotas(graph, QUOTAS[settings.level_default.name], clock)
    submits = Intake(
        graph, saga, keeper.instance.id, clock, ports.ids, quotas, limits, ports.residence
    )
    mends = mender(ports, region)
    planner = partial(plan_of_schedule, graph)
    return Services(
        keeper=keeper,
        settler=settles,
        scheduler=Scheduler(
            settings,
            graph,
            ports.backlog,
            ports.metadata,
            ports.queue,
            keeper,
            timings,
            clock,
            ports.ids,
            ports.chance,
        ),
        mender=mends,
        reconciler=Reconciler(region, graph, keeper, settles, clock),
        resource_manager=ResourceManager(region, graph, keeper, settles, timings, clock),
        cluster_manager=ClusterManager(graph, saga, keeper, timings, clock),
        intake=submits,
        timekeeper=Timekeeper(region, graph, submits, planner, keeper, timings, clock, ports.ids),
        flow=Flow(region, graph, ports.backlog, keeper.instance.id, timings.watch_every_s, clock),
        failover=Failover(region, is_failover_automatic, graph, keeper, settles, timings, clock),
        replica=ReplicaWatch(graph, replica_age_max_s, clock),
        learner=Learner(region, graph, keeper, clock),
        collector=Collector(graph, retention, mends.forget, keeper, timings, clock),
    )
