"""Cancel runs and tasks, withdraw what is not yet published, and say what is to come sooner.

Each is one conditional write to one document; what follows from it may be done by anybody.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from region_scheduler.commit.create import create
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.admission import (
    AdmissionState,
    AdmissionSummary,
    tombstone_of,
    withdrawn,
)
from region_scheduler.domain.cancel import cancel
from region_scheduler.domain.run import Run, cancelling
from region_scheduler.domain.states import FINAL, RUN_ENDED, RunState, TaskState
from region_scheduler.domain.task import Task
from region_scheduler.domain.transitions import Stamp, reprioritise
from region_scheduler.errors import InvalidInput, LostRace, NotFound, OutcomeUnknown, Unavailable
from region_scheduler.lifecycle.cancel import cancel_tasks
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.operations.admissions import find_admission
from region_scheduler.operations.audit import Auditor
from region_scheduler.operations.runs import find_run
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock

_NO_ANSWER = (Unavailable, OutcomeUnknown)


def find_cancellable(graph: GraphStores, text: str) -> Run | AdmissionSummary:
    """Return the run that `text` names, or the admission of one that is not published yet.

    Raises:
        NotFound: There is neither.
        InvalidInput: More than one fits.
    """
    try:
        return find_run(graph, text)
    except NotFound as no_run:
        with suppress(NotFound):
            admission = find_admission(graph, text)
            if admission.state is AdmissionState.ACCEPTED:
                return admission
        raise no_run from None


def cancel_run(
    graph: GraphStores, settler: Settler, auditor: Auditor, clock: Clock, run: Run, why: str = ""
) -> tuple[Run, list[Task]]:
    """Cancel a run: what is done stays done, what runs is asked to stop, nothing else starts.

    Returns:
        The run, still `cancelling` while something runs, or if an answer was lost on the way: then
        the reconciler goes on. And the tasks that this call moved or asked to stop. One that was
        cancelled before comes back as it is.

    Raises:
        InvalidInput: It has ended otherwise. Nothing was written.
        LostRace: It ended before the cancel came; its end stands.
        Unavailable, OutcomeUnknown: Call again.
    """
    if run.state is RunState.CANCELLED:
        return run, []
    if run.state in RUN_ENDED:
        told = f"it is {run.state}: nothing of it is left to cancel"
        raise InvalidInput(field="RUN", value=run.id, expected=told)
    auditor.record("runs.cancel", run.id, why=why, tenant=run.tenant)
    begin = partial(cancelling, reason=_sentence(auditor.actor, why))
    begun = commit_one(graph.runs, Change(run.id, begin))
    with suppress(*_NO_ANSWER):
        return cancel_tasks(graph, settler, begun, Stamp(auditor.actor, clock.now()))
    return begun, []


def cancel_admission(
    graph: GraphStores,
    settler: Settler,
    auditor: Auditor,
    clock: Clock,
    admission: AdmissionSummary,
    why: str = "",
) -> tuple[Run, list[Task]]:
    """Cancel what was accepted and is not published yet; if it is by now, cancel the run.

    The run document is inserted as `cancelled`: whoever inserts it first has decided. What was
    written of the graph, or still is by a submitter that comes late, the cluster manager removes.

    Returns:
        As `cancel_run`.

    Raises:
        NotFound: There is no such admission.
        LostRace, InvalidInput: As `cancel_run`.
        Unavailable, OutcomeUnknown: Call again.
    """
    (found,) = graph.admissions.read([admission.id])
    if found is None:
        raise NotFound(thing="admission", id=admission.id)
    of_run = f"run {admission.run}"
    auditor.record("admissions.cancel", admission.id, of_run, why, tenant=found.tenant)
    reason = _sentence(auditor.actor, why)
    (standing,) = create(graph.runs, [tombstone_of(found, reason, clock.now())])
    if not standing.value.is_tombstone:
        return cancel_run(graph, settler, auditor, clock, standing.value, why)
    with suppress(*_NO_ANSWER):  # whoever carries it out closes it as well
        close = partial(withdrawn, reason=standing.value.reason)
        commit_one(graph.admissions, Change(found.id, close, known=found))
    return standing.value, []


def cancel_task(
    graph: GraphStores, settler: Settler, auditor: Auditor, clock: Clock, task: Task, why: str = ""
) -> Task:
    """Cancel one task of a run that goes on; what waits for it is blocked, as by a failed one.

    Returns:
        The task, cancelled; or running still, asked to stop, until its holder has stopped it.

    Raises:
        InvalidInput: It, or its run, has ended. Nothing was written.
        LostRace: Its end came first, or its run is about to do tasks again.
        Unavailable, OutcomeUnknown: Call again.
    """
    if task.state is TaskState.CANCELLED:
        return task
    _require_open(task)
    (run,) = graph.runs.read([task.run])
    if run is None or run.state in RUN_ENDED:
        told = f"its run is {run.state if run else 'gone'}: nothing of it goes on"
        raise InvalidInput(field="TASK", value=task.spec.name, expected=told)
    if run.state is RunState.ADMITTED or run.rework is not None:
        # Whoever moves the tasks that are to be done again would take it for one of them.
        winner = "a round that is being opened; cancel the run, or this task when it goes on"
        raise LostRace(thing=f"cancel of {task.spec.name}", winner=winner)
    auditor.record("tasks.cancel", task.id, why=why, tenant=task.tenant)
    stamp = Stamp(auditor.actor, clock.now())
    stop = partial(cancel, reason=_sentence(auditor.actor, why), stamp=stamp)
    after: Task = commit_one(graph.tasks, Change(task.id, stop))
    if after.state in FINAL and after.state is not TaskState.CANCELLED:
        raise LostRace(thing=f"cancel of {task.spec.name}", winner=f"its end: it is {after.state}")
    with suppress(*_NO_ANSWER):  # the reconciler does what follows
        settler.settle([after])
    return after


def reprioritise_task(
    graph: GraphStores,
    settler: Settler,
    auditor: Auditor,
    task: Task,
    priority: int,
    why: str = "",
) -> Task:
    """Give a task another priority; it counts when its region next promotes.

    Args:
        graph: The graph store.
        settler: Wakes the task's region.
        auditor: In whose name.
        task: As last read.
        priority: Higher comes sooner, within a tenant; from 0, as in a submission.
        why: In the actor's words.

    Raises:
        InvalidInput: It has ended. Nothing was written.
        LostRace: Its end came first.
        Unavailable, OutcomeUnknown: Call again.
    """
    _require_open(task)
    if task.priority_now == priority:
        return task
    moved = f"{task.priority_now} -> {priority}"
    auditor.record("tasks.reprioritise", task.id, moved, why, tenant=task.tenant)
    change = partial(reprioritise, priority=priority)
    after: Task = commit_one(graph.tasks, Change(task.id, change))
    if after.priority_now != priority:
        winner = f"its end: it is {after.state}"
        raise LostRace(thing=f"priority of {task.spec.name}", winner=winner)
    settler.wake([after.region])
    return after


def _require_open(task: Task) -> None:
    if task.state in FINAL:
        told = f"it is {task.state}: nothing of it is left to change"
        raise InvalidInput(field="TASK", value=task.spec.name, expected=told)


def _sentence(actor: str, why: str) -> str:
    return f"cancelled by {actor}" + (f": {why}" if why else "")
