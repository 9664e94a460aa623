"""`runs`: what was submitted, how far it is, and its cancel; `watch` and `resume`."""

from __future__ import annotations

from typing import Annotated

import typer

from region_scheduler.cli.hints import Hints
from region_scheduler.cli.options import Json, RunText, StateDir, Why
from region_scheduler.cli.output import Output

app = typer.Typer(help="Runs.", no_args_is_help=True)

_COLUMNS = [
    "run",
    "name",
    "type",
    "state",
    "tasks",
    "done",
    "failed",
    "awaiting",
    "created_at",
    "reason",
]


@app.command(name="list")
def list_runs(
    limit: Annotated[int, typer.Option("--limit", min=1, help="Newest first.")] = 20,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """List the newest runs."""
    from region_scheduler.cli.session import session
    from region_scheduler.cli.views import run_row
    from region_scheduler.operations.waits import zone_waits

    with session(state_dir) as opened:
        graph = opened.graph
        runs = graph.runs.recent(limit)
        waits = zone_waits(graph, runs)
        rows = [run_row(r, graph.tasks.state_counts(r.id), waits.get(r.id)) for r in runs]
    Output(as_json).items(rows, _COLUMNS, "there are no runs; `submit` makes one")


@app.command()
def show(run: RunText, state_dir: StateDir = None, as_json: Json = False) -> None:
    """Show a run: states by region, and what failed or waits."""
    from region_scheduler.cli.session import session
    from region_scheduler.cli.views import by_region, run_lines, run_row
    from region_scheduler.domain.durations import ends_in_s
    from region_scheduler.domain.states import RunState
    from region_scheduler.operations.runs import find_run
    from region_scheduler.operations.waits import zone_waits

    with session(state_dir) as opened:
        graph = opened.graph
        found = find_run(graph, run)
        wait = zone_waits(graph, [found]).get(found.id)
        row = run_row(found, graph.tasks.state_counts(found.id), wait)
        tasks = graph.tasks.of_run(found.id)
        soon = ends_in_s(tasks, opened.clock.now()) if found.state is RunState.RUNNING else None
    value = {**row, "regions": by_region(tasks), "trace": found.trace, "ends_in_s": soon}
    ending = [] if soon is None else [f"probably ends in {soon:.0f} s, if nothing keeps it"]
    Output(as_json).result(value, lambda: [*run_lines(row, tasks), *ending])


@app.command()
def order(run: RunText, state_dir: StateDir = None, as_json: Json = False) -> None:
    """Print the tasks of a run in topological order, by wave."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.runs import find_run

    with session(state_dir) as opened:
        found = find_run(opened.graph, run)
        rows = [
            {"wave": wave + 1, "name": task.name, "state": task.state, "region": task.region}
            for wave, task in opened.graph.tasks.order(found.id)
        ]
    Output(as_json).items(rows, ["wave", "name", "state", "region"], "no tasks")


@app.command()
def cancel(run: RunText, why: Why = "", state_dir: StateDir = None, as_json: Json = False) -> None:
    """Cancel a run: what is done stays, what runs is stopped, nothing else starts.

    Also one that was accepted and is not published yet, by its id or its key.
    """
    from region_scheduler.cli.session import session
    from region_scheduler.domain.run import Run
    from region_scheduler.domain.states import RunState, TaskState
    from region_scheduler.operations.cancel import cancel_admission, cancel_run, find_cancellable

    with session(state_dir) as opened:
        acts = (opened.graph, opened.settler, opened.auditor, opened.clock)
        found = find_cancellable(opened.graph, run)
        if isinstance(found, Run):
            after, moved = cancel_run(*acts, found, why)
        else:
            after, moved = cancel_admission(*acts, found, why)
    cancelled = [task.spec.name for task in moved if task.state is TaskState.CANCELLED]
    stopping = [task.spec.name for task in moved if task.state is TaskState.RUNNING]
    lines = [f"run {after.id} is {after.state.value}: {len(cancelled)} tasks cancelled"]
    lines += [f"  {name} is being stopped" for name in stopping]
    if after.is_tombstone:
        lines = [f"run {after.id} is cancelled: it was not published yet, nothing of it started"]
    elif after.state is RunState.CANCELLING:
        lines.append(
            f"it ends by itself; watch it with: {Hints(state_dir).command('watch', after.id)}"
        )
    value = {
        "run": after.id,
        "state": after.state,
        "reason": after.reason,
        "cancelled": cancelled,
        "stopping": stopping,
    }
    Output(as_json).result(value, lambda: lines)


def watch(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="All unended runs unless given.")
    ] = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Watch runs until they end: progress by region, what runs, what waits and why.

    Without a terminal it prints a line for each change, and ends with 3 as soon as nothing can go
    on before a person decides.
    """
    from region_scheduler.cli.session import session
    from region_scheduler.cli.watching import is_live, watch_runs
    from region_scheduler.operations.runs import find_run

    output = Output(as_json)
    with session(state_dir) as opened:
        graph = opened.graph
        found = [find_run(graph, run)] if run else graph.runs.unended()
        return watch_runs(
            opened,
            [one.id for one in found],
            output,
            Hints(state_dir),
            is_person_awaited=is_live(output),
        )


def resume(run: RunText, state_dir: StateDir = None, as_json: Json = False) -> None:
    """Open the next round of a run that has ended: failed tasks again, nothing that is done."""
    from region_scheduler.cli.session import session
    from region_scheduler.domain.states import RUN_COMPLETE, RunState
    from region_scheduler.operations.runs import find_run, resume_run

    with session(state_dir) as opened:
        graph = opened.graph
        found = find_run(graph, run)
        again, moved = resume_run(graph, opened.settler, opened.auditor, opened.clock, found.id)
    names = [task.spec.name for task in moved]
    told = f"run {again.id}, round {again.round}: {len(names)} tasks again"
    if again.state in RUN_COMPLETE:
        told = f"run {again.id} is {again.state}: nothing to do"
    elif again.state is RunState.ADMITTED:
        told = f"run {again.id}, round {again.round}: it is opened when the run has its zone"
    Output(as_json).result(
        {"run": again.id, "round": again.round, "state": again.state, "resumed": names},
        lambda: [told, *names],
    )
