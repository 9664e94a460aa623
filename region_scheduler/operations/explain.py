"""Why is a task not running, and when will it probably?

Everything here is read, nothing is decided: the answer may be old by the time it is printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from region_scheduler.domain.calendar import opens_at, outlook
from region_scheduler.domain.durations import figure_of, path_left_s
from region_scheduler.domain.pause import EVERYTHING, Scope, ScopeKind, closed_at
from region_scheduler.domain.region import RegionStatus
from region_scheduler.domain.relocation import destinations, sites
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import CLAIMABLE, SATISFYING, TaskState
from region_scheduler.domain.task import EventKind, Task, units_needed
from region_scheduler.errors import NotFound
from region_scheduler.operations.waits import zone_waits
from region_scheduler.ports.backlog import Backlog, Place
from region_scheduler.ports.queue import TaskQueue
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.standing import Standing
from region_scheduler.resources.assign import is_free_for

_STOPPED = frozenset({TaskState.FAILED, TaskState.CANCELLED})


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that keeps a task.

    Attributes:
        kind: `predecessor`, `blocked`, `zone`, `run`, `region`, `moving`, `waiting-for-region`,
            `not-before`, `paused`, `freeze`, `window`, `pool`, `level`, `lock`, `resting`, `order`,
            `queued`, `running`, `person` or `ended`.
        text: For people.
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a task is where it is.

    Attributes:
        reasons: What keeps it, all of it; none means that nothing is known to.
        starts_in_s: Seconds until it probably starts; None if that depends on somebody, or cannot
            be told.
        late_in_s: In nine of ten cases it starts within so many seconds; None if nothing was
            learned of such steps yet.
    """

    task: Task
    reasons: tuple[Reason, ...]
    starts_in_s: float | None
    late_in_s: float | None = None


def explain(
    graph: GraphStores,
    task: Task,
    now: datetime,
    backlog: Backlog | None = None,
    queue: TaskQueue | None = None,
) -> Explanation:
    """Return why `task` is not running.

    Args:
        graph: The graph store.
        task: As just read.
        now: This machine's wall time.
        backlog: That of the task's region, if this process reaches it.
        queue: That of the task's region, if this process reaches it.

    Raises:
        NotFound: Its run is gone.
        Unavailable: No answer.
    """
    (run,) = graph.runs.read([task.run])
    if run is None:
        raise NotFound(thing="run", id=task.run)
    if task.state is TaskState.PENDING:
        return _of_pending(graph, task, run, now)
    if task.state in CLAIMABLE:
        return _of_ready(graph, task, now, backlog)
    return Explanation(task, tuple(_of_rest(task, queue)), None)


def _of_pending(graph: GraphStores, task: Task, run: Run, now: datetime) -> Explanation:
    ancestors = graph.tasks.ancestors(task.id)
    direct = [a for a in ancestors if a.distance == 1 and a.state not in SATISFYING]
    reasons = [
        Reason("predecessor", f"{one.name} is {one.state} in {one.region}") for one in direct
    ]
    stopped = [a for a in ancestors if a.state in _STOPPED]
    reasons += [Reason("blocked", f"blocked by {one.name}, which {one.state}") for one in stopped]
    if stopped:
        return Explanation(task, tuple(reasons), None)
    if not direct:
        reasons += _of_run(graph, run)
        return Explanation(task, tuple(reasons), None)
    found = graph.tasks.read([a.id for a in ancestors if a.state not in SATISFYING])
    # The longest path of an ancestor to the run's end, less ours, is at least the one to us.
    mine_s = task.spec.remaining_s
    paths = [path_left_s(one, now) - mine_s for one in found if one is not None]
    waits_for_person = any(a.state is TaskState.AWAITING for a in ancestors)
    return Explanation(task, tuple(reasons), None if waits_for_person else max(0.0, *paths, 0.0))


def _of_run(graph: GraphStores, run: Run) -> Iterator[Reason]:
    wait = zone_waits(graph, [run]).get(run.id)
    if wait is not None:
        yield Reason("zone", str(wait))
    else:
        yield Reason("run", f"the run is {run.state}; all it needs is done, it is about to unlock")


def _of_ready(
    graph: GraphStores, task: Task, now: datetime, backlog: Backlog | None
) -> Explanation:
    standing = graph.regions.standing(task.region, [task.tenant])
    slots = sum(worker.capacity.get(task.spec.pool, 0) for worker in standing.workers)
    depends = [*_of_region(graph, standing, task), *_of_pauses(standing, task, now)]
    if not slots:
        told = f"no live worker of {task.region} serves pool {task.spec.pool}"
        depends.append(Reason("pool", told))
    level = standing.levels[task.tenant]
    most = level.in_flight_max if level is not None else None
    mine = standing.in_flight.by_tenant.get(task.tenant, 0)
    if most is not None and mine >= most:
        told = f"tenant {task.tenant} has {mine} tasks in flight here; its level allows {most}"
        depends.append(Reason("level", told))
    depends += _of_locks(graph, task)
    waits = [*_of_calendars(standing, task, now), *_of_not_before(task, now)]
    opens = opens_at(standing.calendars, _scopes(task), max(now, task.spec.not_before or now))
    place = backlog.place(task.id) if backlog is not None else None
    order = [] if place is None else _of_place(place, standing.in_flight.total, slots, now)
    reasons = (*waits, *depends, *order)
    if depends or opens is None or place is None:
        return Explanation(task, reasons, None)
    known = {one.id: one for one in graph.durations.all()}
    figure = figure_of(known, task.spec, task.region)
    rounds, wait_s = place.ahead // slots, (opens - now).total_seconds()
    half_s = figure.p50_s if figure else task.spec.expected_s
    late_s = None if figure is None else max(rounds * figure.p90_s, wait_s)
    return Explanation(task, reasons, max(rounds * half_s, wait_s), late_s)


def _of_not_before(task: Task, now: datetime) -> Iterator[Reason]:
    if task.spec.not_before is not None and now < task.spec.not_before:
        yield Reason("not-before", f"it may not start before {task.spec.not_before}")


def _scopes(task: Task) -> tuple[Scope, ...]:
    return (
        EVERYTHING,
        Scope(ScopeKind.REGION, task.region),
        Scope(ScopeKind.TENANT, task.tenant),
        Scope(ScopeKind.ZONE, task.zone),
        Scope(ScopeKind.RUN, task.run),
    )


def _of_calendars(standing: Standing, task: Task, now: datetime) -> Iterator[Reason]:
    scopes = _scopes(task)
    mine = [calendar for calendar in standing.calendars if calendar.scope in scopes]
    yield from (Reason(one.kind, one.text) for one in outlook(mine, now).shut)


def _of_region(graph: GraphStores, standing: Standing, task: Task) -> Iterator[Reason]:
    region = standing.region
    if region is None:
        yield Reason("region", f"region {task.region} does not exist")
    elif region.status is not RegionStatus.ACTIVE:
        why = f": {region.reason}" if region.reason else ""
        yield Reason("region", f"region {task.region} is {region.status}{why}")
        if region.is_leaving:
            open_sites = sites(graph.regions.all(), graph.instances.unfenced(), graph.tasks.load())
            to = destinations([task], open_sites).to.get(task.id)
            allowed = ", ".join(task.spec.allowed_regions)
            stuck = f"no other of {allowed} takes work of pool {task.spec.pool} now"
            yield (
                Reason("moving", f"it is about to go to {to}")
                if to
                else Reason("waiting-for-region", stuck)
            )


def _of_pauses(standing: Standing, task: Task, now: datetime) -> Iterator[Reason]:
    closed = closed_at(standing.pauses, now)
    for scope in _scopes(task):
        is_passed = scope.kind is ScopeKind.RUN and task.passport == closed.passports.get(task.run)
        if (why := closed.why([scope])) and not is_passed:
            yield Reason("paused", why)


def _of_locks(graph: GraphStores, task: Task) -> Iterator[Reason]:
    units = units_needed(task.spec)
    slots = graph.slots.of_resources(sorted(units)) if units else []
    takers = {slot.id: owner.task for slot in slots if (owner := slot.holder or slot.reservation)}
    found = graph.tasks.read(sorted(set(takers.values()))) if takers else []
    names = {one.id: f"{one.spec.name} of run {one.run}" for one in found if one is not None}
    for resource, wanted in units.items():
        seen = [slot for slot in slots if slot.resource == resource]
        free = sum(is_free_for(slot, task.id) and not slot.is_retiring for slot in seen)
        total = sum(not slot.is_retiring for slot in seen)
        if seen and total < wanted:
            yield Reason(
                "lock", f"unschedulable: needs {wanted} units of {resource}, total {total}"
            )
        elif seen and free < wanted:
            by = sorted({names.get(takers[s.id], takers[s.id]) for s in seen if s.id in takers})
            told = f"lock {resource}: {free} of {len(seen)} units free, {wanted} needed"
            yield Reason("lock", f"{told}; taken by {', '.join(by) or 'nobody'}")


def _of_place(place: Place, in_flight: int, slots: int, now: datetime) -> Iterator[Reason]:
    rests_s = place.rests_until_s - now.timestamp()
    if rests_s > 0:
        yield Reason("resting", f"it rests for {rests_s:.0f} s more before it is tried again")
    overdue_s = now.timestamp() - place.due_s
    due = f"overdue for {overdue_s:.0f} s" if overdue_s > 0 else f"due in {-overdue_s:.0f} s"
    told = f"{place.ahead} of its tenant come before it; {in_flight} in flight for {slots} slots"
    yield Reason("order", f"{told}; {due}")


def _of_rest(task: Task, queue: TaskQueue | None) -> Iterator[Reason]:
    if task.state is TaskState.CLAIMED:
        waiting = queue.length(task.spec.pool) if queue is not None else None
        length = f", {waiting} messages wait there" if waiting is not None else ""
        told = f"dispatched to pool {task.spec.pool} of {task.region}{length}"
        yield Reason("queued", told)
    elif task.state is TaskState.RUNNING:
        start = next((e for e in reversed(task.history) if e.kind is EventKind.STARTED), None)
        since = f" since {start.at.isoformat(timespec='seconds')}" if start else ""
        holder = task.holder.incarnation if task.holder else "nobody"
        yield Reason("running", f"attempt {task.attempt} runs{since}, held by {holder}")
    elif task.state is TaskState.AWAITING:
        yield Reason("person", task.reason or "it waits for a person")
    else:
        why = f": {task.reason}" if task.reason else ""
        yield Reason("ended", f"it is {task.state}{why}")
