"""The serving process of a region: its roles as loops under one lease."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Final

import structlog

from region_scheduler.admission.schedules import Timekeeper
from region_scheduler.assembly.member import Membership, new_instance, tell_set_back
from region_scheduler.assembly.production import (
    open_broker,
    open_graph,
    open_ports,
    patiently,
)
from region_scheduler.assembly.services import Ports, Services, lease_keeper, region_services
from region_scheduler.commit.create import create
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.config.settings import Settings
from region_scheduler.domain.instance import Role
from region_scheduler.domain.region import Region
from region_scheduler.domain.tenant import LEVELS
from region_scheduler.errors import Fenced
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.operations.views import Views
from region_scheduler.ports.consistency import Reads
from region_scheduler.ports.time import Clock
from region_scheduler.regions.failover import FailedOver, Failover
from region_scheduler.regions.replica import ReplicaWatch
from region_scheduler.resources.peers import ManagerSilent
from region_scheduler.runtime.loop import Loop
from region_scheduler.runtime.pulse import Pulse
from region_scheduler.runtime.service import Part
from region_scheduler.runtime.system import collect_seldom
from region_scheduler.scheduling.collector import Collector
from region_scheduler.scheduling.learner import EVERY_S
from region_scheduler.scheduling.settings import SchedulerSettings

log = structlog.get_logger()

ROLES: Final = (Role.API, Role.SUBMITTER, Role.SCHEDULER, Role.RESOURCES, Role.CLUSTER_MANAGER)
_PATIENCE_S: Final = 60.0
_VIEW_S: Final = 3.0
"""Who looks at a view waits no longer for a store."""
_TICK_LEASES_MAX: Final = 3
"""A scheduler that does not come back from a tick for so many leases lets its region wait."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What a serving process runs.

    Attributes:
        parts: In starting order: the lease first.
        wake: Wakes the scheduler; returns at once, from any thread.
        replica: Knows how old the local follower's view is.
        views: What the API shows.
    """

    parts: Sequence[Part]
    keeper: LeaseKeeper
    clock: Clock
    wake: Callable[[], None]
    replica: ReplicaWatch
    views: Views


def serve_region(
    settings: Settings, url: str, closing: ExitStack, on_fenced: Callable[[], None]
) -> Serving:
    """Return the roles of a region, its region document being in place.

    Args:
        settings: Of this process.
        url: Where its HTTP surface answers.
        closing: Closes the stores.
        on_fenced: Told once if the lease turns out to be over; ends the process.

    Raises:
        Misconfigured: An address is missing, or a store refuses us.
        Unavailable: A store was not reached for a minute.
    """
    collect_seldom()
    ports = open_ports(settings, closing, _PATIENCE_S)
    patiently(lambda: _register_region(ports, settings, url), _PATIENCE_S)
    instance = new_instance(settings, "serve", ROLES, ports.clock, ports.ids, url=url)
    keeper = lease_keeper(
        ports,
        instance,
        settings.lease,
        on_fenced=partial(_tell, on_fenced),
        on_set_back=tell_set_back,
    )
    services = region_services(
        ports,
        _scheduling(settings),
        settings.lease,
        keeper,
        settings.limits,
        retention=settings.retention,
        is_failover_automatic=settings.failover.is_automatic,
        replica_age_max_s=settings.scheduler.replica_age_max_s,
    )
    pulse = Pulse(_TICK_LEASES_MAX * settings.lease.lease_s)

    def promote() -> float:
        pulse.beat()
        promoted = services.promote()
        pulse.rest()
        return promoted.wait_s

    scheduler = Loop("scheduler", promote)

    def wake() -> None:
        services.scheduler.notice()
        scheduler.wake()

    parts: list[Part] = [
        Membership(keeper, lambda: pulse.is_stuck),
        scheduler,
        *_slow_loops(services, settings, scheduler.wake),
        _listener(settings, wake),
    ]
    views = _views(settings, closing, services.replica, ports.clock)
    parts.append(_snapshot_loop(views, settings))
    return Serving(parts, keeper, ports.clock, wake, services.replica, views)


def _views(settings: Settings, closing: ExitStack, replica: ReplicaWatch, clock: Clock) -> Views:
    """Return what the API reads by connections of its own: a hanging leader keeps no one waiting.

    The stores were reached a moment ago; each is made ready at the leader once more.
    """
    opened = [
        open_graph(settings, closing, _PATIENCE_S, reads, _VIEW_S)
        for reads in (Reads.AT_FOLLOWER, Reads.AT_LEADER)
    ]
    return Views(opened[0], opened[1], lambda: replica.age, clock)


def _snapshot_loop(views: Views, settings: Settings) -> Loop:
    def keep() -> float:
        views.keep()
        return settings.lease.reconcile_every_s

    return Loop("snapshot", keep)


def _scheduling(settings: Settings) -> SchedulerSettings:
    return SchedulerSettings(
        region=settings.region,
        look_ahead=settings.scheduler.look_ahead,
        in_flight_max=settings.scheduler.in_flight_max,
        level_default=LEVELS[settings.tenants.level_default],
        ownership=settings.scheduler.ownership,
    )


def _slow_loops(services: Services, settings: Settings, wake: Callable[[], None]) -> list[Loop]:
    every_s = settings.lease.reconcile_every_s
    watch_every_s = settings.lease.watch_every_s

    def reconcile() -> float:
        services.reconciler.tick()
        return every_s

    def mend() -> float:
        mended = services.mender.tick()
        if not mended.is_nothing:
            log.info("relational store mended", **asdict(mended))
        if mended.added or mended.renewed:
            wake()
        return every_s

    def watch() -> float:
        swept = services.resource_manager.tick()
        if swept.unresponsive:
            log.error("stop not answered: fenced", instances=swept.unresponsive)
        _tell_silent(swept.silent)
        return watch_every_s

    def finish_admissions() -> float:
        services.cluster_manager.tick()
        return watch_every_s

    def learn() -> float:
        services.learner.tick()
        return EVERY_S

    return [
        _timekeeper_loop(services.timekeeper, settings.lease.skew_max_s),
        Loop("reconciler", reconcile),
        Loop("mender", mend),
        Loop("resource-manager", watch),
        Loop("cluster-manager", finish_admissions),
        _failover_loop(services.failover, watch_every_s),
        _collector_loop(services.collector),
        _replica_loop(services.replica, settings),
        Loop("learner", learn),
    ]


def _timekeeper_loop(timekeeper: Timekeeper, ahead_max_s: float) -> Loop:
    def keep_time() -> float:
        fired = timekeeper.tick()
        if fired.clock_ahead_s:
            ahead_s = round(fired.clock_ahead_s, 1)
            log.error(
                "clock ahead of the others: fires no schedule", ahead_s=ahead_s, max_s=ahead_max_s
            )
        if fired.fired:
            log.info("schedules fired", **fired.fired)
        if fired.missed:
            log.warning("occurrences of schedules missed", **fired.missed)
        for name, told in fired.held.items():
            log.warning("an occurrence of a schedule waits", schedule=name, waits_for=told)
        return fired.wait_s

    return Loop("timekeeper", keep_time)


def _collector_loop(collector: Collector) -> Loop:
    def collect() -> float:
        seen = collector.tick()
        if seen.clock_ahead_s:
            ahead_s = round(seen.clock_ahead_s, 1)
            log.error("clock ahead of the others: removes nothing", ahead_s=ahead_s)
        if seen.gone or seen.forgotten:
            counts = {kind.value: count for kind, count in seen.gone.items()}
            log.info("records removed", **counts, rows=seen.forgotten)
        return seen.wait_s

    return Loop("collector", collect)


def _replica_loop(replica: ReplicaWatch, settings: Settings) -> Loop:
    every_s = min(settings.lease.watch_every_s, settings.scheduler.replica_age_max_s / 4)
    was_stale = False

    def look() -> float:
        nonlocal was_stale
        age = replica.tick()
        if age.is_stale and not was_stale:
            log.error("replica stale: nothing is read from it", age_s=round(age.seconds, 1))
        elif was_stale and not age.is_stale:
            log.info("replica current again")
        was_stale = age.is_stale
        return every_s

    return Loop("replica", look)


def _tell_silent(silent: Sequence[ManagerSilent]) -> None:
    for one in silent:
        who = one.instance or "none"
        log.error(
            "resource manager silent", of=one.region, manager=who, seconds=round(one.seconds, 1)
        )


def _failover_loop(failover: Failover, every_s: float) -> Loop:
    waiting: Mapping[str, int] = {}

    def fail_over() -> float:
        nonlocal waiting
        seen = failover.tick()
        _tell_failover(seen, waiting)
        waiting = seen.waiting
        return every_s

    return Loop("failover", fail_over)


def _tell_failover(seen: FailedOver, waited: Mapping[str, int]) -> None:
    """Log what the failover did, and how many tasks wait for a region if that has changed."""
    for region in seen.failed:
        log.error("region given up: no process of it has a lease", down=region)
    for region in seen.returned:
        log.info("region takes work again", region=region)
    for (source, to), count in seen.moved.items():
        log.info("tasks moved", source=source, to=to, count=count)
    for region, count in seen.waiting.items():
        if waited.get(region) != count:
            log.error("tasks wait for a region", down=region, count=count)


def _listener(settings: Settings, on_wake: Callable[[], None]) -> Part:
    from region_scheduler.drivers.celery.wakeups import WakeListener

    return WakeListener(open_broker(settings), settings.region, on_wake)


def _register_region(ports: Ports, settings: Settings, url: str) -> None:
    """Put the region's document in place; what an operator said of its status stays."""
    wanted = Region(id=settings.region, url=url)
    (created,) = create(ports.graph.regions, [wanted])
    standing = created.value
    if standing.url != url:
        commit_one(
            ports.graph.regions,
            Change(standing.id, lambda region: _moved_to(region, url), known=standing),
        )


def _moved_to(region: Region, url: str) -> Region:
    return region if region.url == url else replace(region, url=url)


def _tell(on_fenced: Callable[[], None]) -> None:
    log.error("lease is over: this process ends", code=Fenced.code)
    on_fenced()
