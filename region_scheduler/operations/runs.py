"""Resume runs, answer awaiting tasks, find both by what people type."""

from __future__ import annotations

from collections.abc import Mapping

from region_scheduler.commit.create import create
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.ids import RunId, TaskId
from region_scheduler.domain.run import Run, reopened
from region_scheduler.domain.states import FINAL, RUN_COMPLETE, RunState, TaskState
from region_scheduler.domain.task import Json, Task
from region_scheduler.domain.transitions import Stamp
from region_scheduler.errors import InvalidInput, NotFound
from region_scheduler.lifecycle.answers import answer_id, apply_answers
from region_scheduler.lifecycle.rounds import open_round
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.operations.audit import Auditor
from region_scheduler.ports.records import Answer, GraphStores
from region_scheduler.ports.time import Clock

_RECENT = 10_000


def find_run(graph: GraphStores, text: str) -> Run:
    """Return the run whose id is `text` or begins or ends with it, or whose latest has that name.

    Raises:
        NotFound: There is none.
        InvalidInput: More than one id fits.
    """
    (exact,) = graph.runs.read([text])
    if exact is not None:
        return exact
    recent = graph.runs.recent(_RECENT)
    fitting = [run for run in recent if run.id.startswith(text) or run.id.endswith(text)]
    if len(fitting) > 1:
        raise InvalidInput(field="RUN", value=text, expected=f"{len(fitting)} runs fit: type more")
    named = [run for run in recent if run.name == text]
    if not fitting and not named:
        raise NotFound(thing="run", id=text)
    return (fitting or named)[0]


def find_task(graph: GraphStores, text: str) -> Task:
    """Return the task that `text` names: its id, or `RUN/NAME`.

    Raises:
        NotFound: There is none.
    """
    run_text, slash, name = text.partition("/")
    if text.startswith("tasks/"):
        (found,) = graph.tasks.read([TaskId(text)])
    elif slash:
        found = graph.tasks.named(find_run(graph, run_text).id, name)
    else:
        found = None
    if found is None:
        raise NotFound(thing="task", id=text)
    return found


def resume_run(
    graph: GraphStores, settler: Settler, auditor: Auditor, clock: Clock, run_id: RunId
) -> tuple[Run, list[Task]]:
    """Open the next round: failed tasks become ready with a fresh budget; done ones stay done.

    The run is written first; nothing becomes ready before it, nor before the run holds its zone.

    Returns:
        The run, and the tasks that were moved. If another run has the zone, or an answer was lost
        on the way, the run is `admitted` and the reconciler opens the round. A run that ended with
        nothing left to do comes back as it is.

    Raises:
        IllegalMove: The run has not ended.
        Unavailable, OutcomeUnknown: Call again.
    """
    (found,) = graph.runs.read([run_id])
    if found is not None:
        if found.state in RUN_COMPLETE:
            return found, []
        _reopened_once(found)
    auditor.record("runs.resume", run_id, tenant=found.tenant if found else "")
    run = commit_one(graph.runs, Change(run_id, _reopened_once))
    return open_round(graph, settler, run, Stamp(auditor.actor, clock.now()))


def _reopened_once(run: Run) -> Run:
    """Begin a round, unless one is begun (this call helps to open it) or there is nothing left."""
    return run if run.state in {RunState.ADMITTED, *RUN_COMPLETE} else reopened(run)


def give_answer(
    graph: GraphStores,
    settler: Settler,
    auditor: Auditor,
    clock: Clock,
    task: Task,
    *,
    is_yes: bool,
    outputs: Mapping[str, Json],
    comment: str = "",
) -> Task:
    """Record a decision or an event for a task, then move the task if it waits for it.

    The answer is written first: whoever comes second, we or the task, moves it.

    Raises:
        InvalidInput: The task waits for no answer and never will, or was answered otherwise.
        Unavailable, OutcomeUnknown: Call again; the same answer twice is one.
    """
    name = {"approval": "approval", "external-wait": "event"}.get(task.spec.runner, "verdict")
    id_ = answer_id(task, name, auditor.actor)
    if task.state in FINAL or (name == "verdict" and task.state is not TaskState.AWAITING):
        (before,) = graph.answers.read([id_])
        if before is not None and before.is_yes == is_yes:
            return task
        told = f"it is {task.state}{f' ({task.reason})' if task.reason else ''} and awaits nothing"
        raise InvalidInput(field="TASK", value=task.spec.name, expected=told)
    auditor.record("tasks.answer", task.id, "yes" if is_yes else "no", tenant=task.tenant)
    given = Answer(
        id=id_,
        task=task.id,
        name=name,
        submission=task.submission,
        actor=auditor.actor,
        is_yes=is_yes,
        outputs=dict(outputs),
        comment=comment,
        at=clock.now(),
    )
    create(graph.answers, [given])
    (current,) = graph.tasks.read([task.id])
    waiting = [current] if current is not None and current.state is TaskState.AWAITING else []
    moved = apply_answers(graph, waiting, clock)
    if moved:
        settler.settle(moved)
    return moved[0] if moved else current or task
