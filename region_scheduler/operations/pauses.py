"""Pause a run, zone, tenant or region, or everything; let a paused run go on wave by wave."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from region_scheduler.commit.gate import Change, commit, commit_one
from region_scheduler.domain.pause import Pause, Scope, ScopeKind, let_pass, lifted
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import CLAIMABLE
from region_scheduler.domain.task import Task
from region_scheduler.errors import InvalidInput, NotFound, OutcomeUnknown
from region_scheduler.lifecycle.pauses import put_pause
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.operations.audit import Auditor, owner_of
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock


def pause(
    graph: GraphStores,
    auditor: Auditor,
    clock: Clock,
    scope: Scope,
    reason: str,
    until: datetime | None = None,
) -> Pause:
    """Keep everything in `scope` from promotion; what runs goes on.

    Schedulers read it once before each batch: at most one batch may follow.

    Args:
        graph: The graph store.
        auditor: Writes down who did it.
        clock: This machine's clock.
        scope: To what it applies; it exists.
        reason: For people.
        until: When it ends by itself, aware; None for never.

    Raises:
        InvalidInput: `reason` is empty, or `until` is over already.
        Unavailable, OutcomeUnknown: Call again; the same pause twice is one.
    """
    now = clock.now()
    if not reason.strip():
        raise InvalidInput(field="--reason", value=reason, expected="say why, for those who wait")
    if until is not None and until <= now:
        expected = f"it must be after now, {now.isoformat(timespec='seconds')}"
        raise InvalidInput(field="--until", value=until.isoformat(), expected=expected)
    auditor.record(f"{scope.kind}.pause", scope.name, reason, tenant=owner_of(graph, scope))
    wanted = Pause(id=scope.key, scope=scope, reason=reason, by=auditor.actor, at=now, until=until)
    return put_pause(graph.pauses, wanted)


def unpause(graph: GraphStores, settler: Settler, auditor: Auditor, scope: Scope) -> Pause:
    """Lift the pause of exactly `scope`, and wake the schedulers.

    Raises:
        NotFound: It is not paused.
        Unavailable, OutcomeUnknown: Call again.
    """
    (found,) = graph.pauses.read([scope.key])
    if found is None or not found.is_on:
        raise NotFound(thing=f"pause of {scope.kind}", id=scope.name)
    auditor.record(f"{scope.kind}.unpause", scope.name, tenant=owner_of(graph, scope))
    over = commit_one(graph.pauses, Change(found.id, lifted, known=found))
    settler.wake(region.id for region in graph.regions.all())
    return over


def step(
    graph: GraphStores, settler: Settler, auditor: Auditor, clock: Clock, run: Run
) -> list[Task]:
    """Release one wave of a paused run: the tasks that wait for promotion now, no later ones.

    Returns:
        The released tasks; none if nothing of the run waits for promotion.

    Raises:
        InvalidInput: The run itself is not paused.
        OutcomeUnknown: Some may not have been released; call again.
        Unavailable: Call again.
    """
    (found,) = graph.pauses.read([Scope(ScopeKind.RUN, run.id).key])
    if found is None or not found.holds_at(clock.now()):
        expected = f"it is not paused; `pause run {run.id}` pauses it"
        raise InvalidInput(field="RUN", value=run.id, expected=expected)
    auditor.record("run.step", run.id, tenant=run.tenant)
    waiting = graph.tasks.of_run(run.id, sorted(CLAIMABLE))
    release = partial(let_pass, passport=found.passport)
    outcomes = commit(graph.tasks, [Change(task.id, release, known=task) for task in waiting])
    if any(not outcome.is_ours for outcome in outcomes):
        raise OutcomeUnknown(dependency="graph store", detail="release of a wave")
    released = [o.value for o in outcomes if o.value and o.value.passport == found.passport]
    settler.wake({task.region for task in released})
    return released
