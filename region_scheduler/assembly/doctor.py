"""Looks at everything that a region needs, and says what is wrong with it."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from region_scheduler.assembly.environment import inherited
from region_scheduler.assembly.member import settings_digest
from region_scheduler.assembly.production import open_broker, open_graph
from region_scheduler.config.settings import Settings
from region_scheduler.domain.instance import Role
from region_scheduler.domain.lease import LeaseTimings
from region_scheduler.domain.region import RegionStatus
from region_scheduler.domain.skew import ahead_s
from region_scheduler.domain.task import units_needed
from region_scheduler.errors import RegionSchedulerError
from region_scheduler.ports.queue import queue_name
from region_scheduler.ports.records import GraphStores
from region_scheduler.resources.peers import standing_still, unmanaged
from region_scheduler.runtime.system import SystemClock
from region_scheduler.scheduling.promote import queue_bounds
from region_scheduler.scheduling.reconcile import FOREIGN_EVERY

_DISK_FREE_BYTES_MIN = 1 << 30
_ANSWER_S = 10.0
_POOL = "default"
_READY_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one thing.

    Attributes:
        is_ok: None if it could not be looked at because of something before it.
        detail: One line; if it is not well, with the way out.
    """

    subject: str
    is_ok: bool | None
    detail: str


def examine(settings: Settings) -> Iterator[Finding]:
    """Yield a finding a subject, in the order in which they rest on each other."""
    yield _lease(settings)
    yield leftovers_told(settings.lease)
    yield from _graph(settings)
    yield _guarded("broker", lambda: _broker(settings))
    yield _guarded("queues", lambda: _queues(settings))
    yield _guarded("relational store", lambda: _relational(settings))
    yield _guarded("terraform", _terraform)
    yield _guarded("disk", lambda: _disk(settings))


def _guarded(subject: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(subject, True, look())
    except (RegionSchedulerError, OSError, Unwell) as error:
        return Finding(subject, False, str(error))


class Unwell(Exception):
    """A subject that answers, but is not as it should be."""


def _lease(settings: Settings) -> Finding:
    """The relations were checked when the settings were loaded; say what follows from them."""
    lease = settings.lease
    outage_s = lease.ttl_s - lease.renew_every_s - lease.stop_s - lease.retry_s
    detail = (
        f"ttl {lease.ttl_s:g} s, grace {lease.grace_s:g} s: a lost holder is replaced after"
        f" {lease.lease_s:g} s, and a store outage up to {outage_s:.1f} s interrupts no step"
    )
    return Finding("lease", True, detail)


def leftovers_told(lease: LeaseTimings) -> Finding:
    """Say within which time all that a crash leaves is found and finished, by the settings."""
    scans_s = FOREIGN_EVERY * lease.reconcile_every_s
    detail = (
        f"all that a crash leaves is found and finished within"
        f" {lease.left_over_within_s(FOREIGN_EVERY):g} s: what a dead process held is taken after"
        f" {lease.lost_within_s:g} s, a claim that nobody was told of after"
        f" {lease.undispatched_within_s:g} s; what is undone of a run is met within"
        f" {lease.reconcile_every_s:g} s, or {scans_s:g} s if its home region is gone"
    )
    return Finding("leftovers", True, detail)


def _graph(settings: Settings) -> Iterator[Finding]:
    with ExitStack() as closing:
        try:
            graph = open_graph(settings, closing)
            regions = graph.regions.all()
        except RegionSchedulerError as error:
            yield Finding("graph store", False, str(error))
            yield Finding("regions", None, "the graph store does not answer")
            for subject in ("instances", "managers", "clocks", "schedules", "resources"):
                yield Finding(subject, None, "the graph store does not answer")
            return
        kind = "embedded engine" if settings.arango.is_embedded else "ArangoDB"
        yield Finding("graph store", True, f"{kind} {graph.db.version()} at {settings.arango.url}")
        active = [region.id for region in regions if region.status is RegionStatus.ACTIVE]
        told = ", ".join(f"{region.id} {region.status.value}" for region in regions)
        yield Finding("regions", bool(active), told or "none yet: start `serve` in one")
        yield _guarded("instances", lambda: _instances(graph, settings))
        yield _guarded("managers", lambda: managers_told(graph, settings.lease))
        yield _guarded("clocks", lambda: clocks_told(graph, settings.lease.skew_max_s))
        yield _guarded("schedules", lambda: schedules_told(graph, _now(), settings.lease))
        yield _guarded("resources", lambda: resources_told(graph, settings.region))


def _instances(graph: GraphStores, settings: Settings) -> str:
    alive = graph.instances.unfenced()
    mine = settings_digest(settings)
    strangers = [i.id for i in alive if i.settings_digest not in ("", mine)]
    if strangers:
        way_out = "give all processes the same lease settings and signing key"
        raise Unwell(f"{', '.join(strangers)} run with other settings: {way_out}")
    workers = [i for i in alive if i.capacity]
    idle = {i.region for i in alive} - {i.region for i in workers}
    if idle:
        raise Unwell(f"no worker in {', '.join(sorted(idle))}: start `worker --region NAME`")
    return f"{len(alive)} alive, {len(workers)} of them workers, all with these settings"


def managers_told(graph: GraphStores, lease: LeaseTimings) -> str:
    """Return how many resource managers look after leases, dispatches and slots.

    Raises:
        Unwell: One lives and does not look, or a region has none.
    """
    alive = graph.instances.unfenced()
    still = [
        f"{one.instance} for {one.seconds:.0f} s" for one in standing_still(alive, lease.lease_s)
    ]
    if still:
        way_out = "look into its log, and start it again"
        raise Unwell(f"no sweep was finished by {', '.join(still)}: {way_out}")
    if bare := unmanaged(alive):
        way_out = "start `serve` there; until then nobody takes what the dead held there"
        raise Unwell(f"none in {', '.join(bare)}: {way_out}")
    count = sum(Role.RESOURCES in one.roles for one in alive)
    return f"{count} resource managers look after leases, dispatches and slots"


def clocks_told(graph: GraphStores, skew_max_s: float) -> str:
    """Return how far the clocks of the living are apart.

    Raises:
        Unwell: One is so far ahead that it fires no schedule.
    """
    alive = graph.instances.unfenced()
    ahead = {one.id: ahead_s(one.stamped_at, alive) for one in alive}
    far = [f"{id_} by {seconds:.1f} s" for id_, seconds in ahead.items() if seconds > skew_max_s]
    if far:
        way_out = "set its clock; until then it fires no schedule"
        raise Unwell(f"ahead of the others: {', '.join(far)}: {way_out}")
    most = max(ahead.values(), default=0.0)
    return f"none is more than {skew_max_s:g} s ahead of the others (at most {most:.1f} s)"


def schedules_told(graph: GraphStores, now: datetime, lease: LeaseTimings) -> str:
    """Return how many schedules there are, when the next is due, and what was missed.

    Raises:
        Unwell: One is overdue: nobody fires it.
    """
    found = graph.schedules.all()
    bound = timedelta(seconds=lease.lease_s + 2 * lease.reconcile_every_s)
    due = sorted((one.next_at, one.name) for one in found if one.next_at is not None)
    overdue = [name for at, name in due if at + bound < now]
    if overdue:
        way_out = "start `serve`, and look for clocks that are ahead"
        raise Unwell(f"nobody fires {', '.join(overdue)}: {way_out}")
    following = f", the next at {due[0][0].isoformat(timespec='seconds')}" if due else ""
    missed = sum(one.missed_count for one in found)
    return f"{len(found)}{following}, {missed} occurrences missed so far"


def resources_told(graph: GraphStores, region: str) -> str:
    """Return how many scarce things there are.

    Raises:
        Unwell: A ready task of `region` needs more units of one than there are: it never starts.
    """
    slots = graph.slots.all()
    total = Counter({slot.resource: 0 for slot in slots})
    total.update(slot.resource for slot in slots if not slot.is_retiring)
    ready = graph.tasks.read(list(graph.tasks.marks_claimable(region, _READY_MAX)))
    stuck = [
        f"{task.spec.name} of run {task.run} needs {units} units of {name}, total {total[name]}"
        for task in ready
        if task is not None
        for name, units in units_needed(task.spec).items()
        if name in total and units > total[name]
    ]
    if stuck:
        way_out = "`resources set` gives it more, or cancel the task"
        raise Unwell(f"unschedulable: {'; '.join(stuck)}: {way_out}")
    return f"{len(total)} known, no ready task needs more than there is"


def _now() -> datetime:
    return SystemClock().now()


def _broker(settings: Settings) -> str:
    from region_scheduler.drivers.celery.queue import CeleryQueue

    broker = open_broker(settings)
    queue = CeleryQueue(broker, settings.region, settings.signing_key_bytes())
    try:
        waiting = queue.length(_POOL)
    finally:
        queue.close()
    address = broker.connection_for_write().as_uri(include_password=False)
    return f"answers at {address}, {waiting} messages wait in {queue_name(settings.region, _POOL)}"


def _queues(settings: Settings) -> str:
    """Say how long each queue is beside its bound, and for which pools there is no worker."""
    from region_scheduler.drivers.celery.queue import CeleryQueue

    with ExitStack() as closing:
        graph = open_graph(settings, closing)
        queue = CeleryQueue(open_broker(settings), settings.region, settings.signing_key_bytes())
        closing.callback(queue.close)
        workers = graph.instances.workers(settings.region)
        bounds = queue_bounds(workers, settings.scheduler.look_ahead)
        ready = list(graph.tasks.marks_claimable(settings.region, _READY_MAX))
        waiting = Counter(task.spec.pool for task in graph.tasks.read(ready) if task is not None)
        told = [f"{pool}: {queue.length(pool)} of at most {most}" for pool, most in bounds.items()]
    unserved = sorted(waiting.keys() - bounds.keys())
    if unserved:
        count, names = sum(waiting[pool] for pool in unserved), ",".join(unserved)
        way_out = f"start `worker --region {settings.region} --pool {names}`"
        raise Unwell(f"{count} tasks are ready in pools that no worker serves: {way_out}")
    return ", ".join(told) or "no worker, so nothing is put in them"


def _relational(settings: Settings) -> str:
    from region_scheduler.drivers.sql.backlog import SqlBacklog
    from region_scheduler.drivers.sql.engine import open_engine
    from region_scheduler.drivers.sql.schema import prepare

    engine = open_engine(settings.relational_url)
    try:
        prepare(engine)
        return f"{engine.dialect.name}, {SqlBacklog(engine).depth()} tasks in the backlog"
    finally:
        engine.dispose()


def _terraform() -> str:
    from region_scheduler.worker.runners.terraform_tool import find_terraform

    environ = inherited()
    tool = find_terraform(environ)
    if tool is None:
        way_out = "put terraform or tofu on PATH, or install region-scheduler[terraform]"
        raise Unwell(f"there is none, so terraform steps fail here: {way_out}")
    if tool.is_library:
        return tool.identity.replace(":", " ")
    told = subprocess.run(
        [tool.path, "version"],
        env={**environ, "CHECKPOINT_DISABLE": "1"},
        capture_output=True,
        text=True,
        timeout=_ANSWER_S,
        check=False,
    )
    if told.returncode != 0:
        raise Unwell(f"{tool.path} version ended with {told.returncode}")
    return f"{told.stdout.splitlines()[0]} at {tool.path}"


def _disk(settings: Settings) -> str:
    path = Path(settings.paths.state_dir).absolute()
    while not path.exists():
        path = path.parent
    free = shutil.disk_usage(path).free
    told = f"{free / (1 << 30):.1f} GiB free at {path}"
    if free < _DISK_FREE_BYTES_MIN:
        raise Unwell(f"{told}: make room, or logs and states cannot be kept")
    return told
