"""`tasks`: look at them, answer those that wait, cancel, bring forward, run again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from region_scheduler.cli.hints import Hints
from region_scheduler.cli.options import Json, Pairs, RunText, StateDir, TaskText, Why
from region_scheduler.cli.output import Output
from region_scheduler.errors import InvalidInput

if TYPE_CHECKING:
    from region_scheduler.domain.run import Run
    from region_scheduler.domain.task import Task

app = typer.Typer(help="Tasks of a run.", no_args_is_help=True)

_PRIORITY_MAX = 2**53
Comment = Annotated[str, typer.Option("--comment", help="Kept with the answer.")]


@app.command(name="list")
def list_tasks(
    run: RunText,
    state: Annotated[str | None, typer.Option("--state", help="Only these, with commas.")] = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """List the tasks of a run."""
    from region_scheduler.cli.session import session
    from region_scheduler.cli.views import states_of, task_row
    from region_scheduler.operations.runs import find_run
    from region_scheduler.operations.waits import with_reasons

    states = states_of(state)
    with session(state_dir) as opened:
        graph = opened.graph
        whole = find_run(graph, run)
        found = with_reasons(graph, whole, graph.tasks.of_run(whole.id, states))
    rows = sorted((task_row(task) for task in found), key=lambda row: row["name"])
    columns = ["name", "state", "region", "runner", "attempt", "reason"]
    Output(as_json).items(rows, columns, "no task is in that state" if state else "no tasks")


@app.command()
def show(task: TaskText, state_dir: StateDir = None, as_json: Json = False) -> None:
    """Show a task: spec, state, history, outputs."""
    from region_scheduler.cli.session import session
    from region_scheduler.cli.views import task_lines
    from region_scheduler.operations.runs import find_task
    from region_scheduler.operations.waits import with_reasons

    with session(state_dir) as opened:
        graph = opened.graph
        found = find_task(graph, task)
        runs = [run for run in graph.runs.read([found.run]) if run is not None]
        for run in runs:
            (found,) = with_reasons(graph, run, [found])
    Output(as_json).result({"task": found}, lambda: task_lines(found))


@app.command()
def blocks(task: TaskText, state_dir: StateDir = None, as_json: Json = False) -> None:
    """List everything that waits, directly or not, for a task."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.runs import find_task

    with session(state_dir) as opened:
        found = find_task(opened.graph, task)
        rows = [
            {"name": r.name, "distance": r.distance, "state": r.state, "region": r.region}
            for r in opened.graph.tasks.blocks(found.id)
        ]
    nothing = f"nothing waits for {found.spec.name}"
    Output(as_json).items(rows, ["distance", "name", "state", "region"], nothing)


@app.command()
def logs(task: TaskText, state_dir: StateDir = None, as_json: Json = False) -> None:
    """Print the last lines of a task's log, and where the whole of it is."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.runs import find_task

    with session(state_dir) as opened:
        found = find_task(opened.graph, task)
    value = {"task": found.id, "log_tail": found.log_tail, "log_ref": found.log_ref}
    whole = f"whole log: {found.log_ref}" if found.log_ref else "it has no log"
    Output(as_json).result(value, lambda: [*found.log_tail.splitlines(), whole])


@app.command()
def approve(
    task: TaskText,
    is_no: Annotated[bool, typer.Option("--no", help="Refuse instead: the task fails.")] = False,
    comment: Comment = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Say yes (or no) to a task that waits for approval."""
    _answer(task, "approve", not is_no, {}, comment, state_dir, as_json)


@app.command()
def answer(
    task: TaskText,
    pairs: Pairs = None,
    is_failed: Annotated[bool, typer.Option("--failed", help="It will not come.")] = False,
    comment: Comment = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Tell a task that what it waits for has come; `--set` hands values on to its dependents."""
    from region_scheduler.operations.zones import parameters_of

    outputs = parameters_of(pairs or [])
    _answer(task, "answer", not is_failed, outputs, comment, state_dir, as_json)


@app.command()
def dead(
    limit: Annotated[int, typer.Option("--limit", min=1, help="Of each region.")] = 100,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """List the tasks of all runs that failed for good, newest run first, and why."""
    from region_scheduler.cli.session import session
    from region_scheduler.domain.ends import why_failed

    with session(state_dir) as opened:
        graph = opened.graph
        found = [t for r in graph.regions.all() for t in graph.tasks.failed(r.id, limit)]
    rows = [
        {
            "run": task.run,
            "name": task.spec.name,
            "region": task.region,
            "attempt": task.attempt,
            "why": why_failed(task),
        }
        for task in sorted(found, key=lambda task: task.id, reverse=True)
    ]
    columns = ["run", "name", "region", "attempt", "why"]
    Output(as_json).items(rows, columns, "nothing has failed for good")


@app.command()
def retry(task: TaskText, state_dir: StateDir = None, as_json: Json = False) -> None:
    """Give a failed or cancelled task a fresh budget; a run that has ended goes on with it."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.rework import retry_task
    from region_scheduler.operations.runs import find_task

    with session(state_dir) as opened:
        found = find_task(opened.graph, task)
        run, moved = retry_task(opened.graph, opened.settler, opened.auditor, opened.clock, found)
    _told_again(run, moved, as_json)


@app.command()
def clear(
    task: TaskText,
    is_only: Annotated[
        bool, typer.Option("--only", help="Dependents that have ended stay as they are.")
    ] = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Run a task again, whatever it came to, and everything that waits for it after it."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.rework import clear_task
    from region_scheduler.operations.runs import find_task

    with session(state_dir) as opened:
        found = find_task(opened.graph, task)
        run, moved = clear_task(
            opened.graph,
            opened.settler,
            opened.auditor,
            opened.clock,
            found,
            is_deep=not is_only,
        )
    _told_again(run, moved, as_json)


@app.command()
def cancel(
    task: TaskText, why: Why = "", state_dir: StateDir = None, as_json: Json = False
) -> None:
    """Cancel one task: stopped if it runs; what waits for it is blocked, other branches go on."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.cancel import cancel_task
    from region_scheduler.operations.runs import find_task

    with session(state_dir) as opened:
        found = find_task(opened.graph, task)
        after = cancel_task(opened.graph, opened.settler, opened.auditor, opened.clock, found, why)
    is_stopping = after.stop_requested is not None
    value = {**_named(after), "is_stopping": is_stopping, "reason": after.reason}
    told = "is being stopped, and ends cancelled" if is_stopping else f"is {after.state.value}"
    Output(as_json).result(value, lambda: [f"{after.spec.name} {told}"])


@app.command()
def reprioritise(
    task: TaskText,
    priority: Annotated[
        int, typer.Option("--priority", min=0, max=_PRIORITY_MAX, help="Higher comes sooner.")
    ],
    why: Why = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Let a task come sooner or later than others of its tenant; what is in a queue stays."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.cancel import reprioritise_task
    from region_scheduler.operations.runs import find_task

    with session(state_dir) as opened:
        found = find_task(opened.graph, task)
        after = reprioritise_task(
            opened.graph, opened.settler, opened.auditor, found, priority, why
        )
    value = {**_named(after), "priority": after.priority_now}
    told = f"{after.spec.name} is {after.state.value}, priority {after.priority_now}"
    Output(as_json).result(value, lambda: [told])


def _named(task: Task) -> dict[str, Any]:
    return {"task": task.id, "name": task.spec.name, "state": task.state}


def _told_again(run: Run, moved: Sequence[Task], as_json: bool) -> None:
    """Tell what was moved; a running task is only asked to stop, and moves when it has."""
    items = [
        {
            "task": task.id,
            "name": task.spec.name,
            "state": task.state,
            "is_stopping": task.stop_requested is not None,
        }
        for task in moved
    ]
    lines = [f"run {run.id} is {run.state.value}, round {run.round}: {len(items)} tasks again"]
    if run.rework is not None:
        lines.append("it waits for its zone, and goes on by itself then")
    for task in moved:
        stopping = ", is being stopped" if task.stop_requested is not None else ""
        lines.append(f"  {task.spec.name} is {task.state.value}{stopping}")
    value = {"run": run.id, "state": run.state, "round": run.round, "items": items}
    Output(as_json).result(value, lambda: lines)


def _answer(
    text: str,
    verb: str,
    is_yes: bool,
    outputs: dict[str, Any],
    comment: str,
    state_dir: StateDir,
    as_json: bool,
) -> None:
    from region_scheduler.cli.session import session
    from region_scheduler.operations.runs import find_task, give_answer

    with session(state_dir) as opened:
        found = find_task(opened.graph, text)
        fitting = _VERB_OF.get(found.spec.runner, verb)
        if verb != fitting:
            command = Hints(state_dir).command("tasks", fitting, text)
            told = f"what it waits for is given by `{command}`"
            raise InvalidInput(field="TASK", value=found.spec.name, expected=told)
        task = give_answer(
            opened.graph,
            opened.settler,
            opened.auditor,
            opened.clock,
            found,
            is_yes=is_yes,
            outputs=outputs,
            comment=comment,
        )
    Output(as_json).result(_named(task), lambda: [f"{task.spec.name} is {task.state.value}"])


_VERB_OF = {"approval": "approve", "external-wait": "answer"}
