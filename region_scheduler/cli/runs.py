"""`runs`: what was submitted, and how far it is; `watch` and `resume`."""

from __future__ import annotations

from typing import Annotated

import typer

from region_scheduler.cli.options import Json, RunText, StateDir
from region_scheduler.cli.output import Output

app = typer.Typer(help="Runs.", no_args_is_help=True)

_COLUMNS = ["run", "name", "type", "state", "tasks", "done", "failed", "awaiting", "created_at"]


@app.command(name="list")
def list_runs(
    limit: Annotated[int, typer.Option("--limit", min=1, help="Newest first.")] = 20,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """List the newest runs."""
    from region_scheduler.cli.session import session
    from region_scheduler.cli.views import run_row

    with session(state_dir) as opened:
        graph = opened.graph
        rows = [run_row(run, graph.tasks.state_counts(run.id)) for run in graph.runs.recent(limit)]
    Output(as_json).items(rows, _COLUMNS, "there are no runs; `submit` makes one")


@app.command()
def show(run: RunText, state_dir: StateDir = None, as_json: Json = False) -> None:
    """Show a run: states by region, and what failed or waits."""
    from region_scheduler.cli.session import session
    from region_scheduler.cli.views import by_region, run_lines, run_row
    from region_scheduler.operations.runs import find_run

    with session(state_dir) as opened:
        graph = opened.graph
        found = find_run(graph, run)
        row = run_row(found, graph.tasks.state_counts(found.id))
        tasks = graph.tasks.of_run(found.id)
    value = {**row, "regions": by_region(tasks), "reason": found.reason, "trace": found.trace}
    Output(as_json).result(value, lambda: run_lines(row, tasks))


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


def watch(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="All unended runs unless given.")
    ] = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Watch runs until they end: progress by region, what runs, what waits and why."""
    from region_scheduler.cli.session import session
    from region_scheduler.cli.watching import watch_runs
    from region_scheduler.operations.runs import find_run

    with session(state_dir) as opened:
        graph = opened.graph
        found = [find_run(graph, run)] if run else graph.runs.unended()
        return watch_runs(opened, [one.id for one in found], Output(as_json))


def resume(run: RunText, state_dir: StateDir = None, as_json: Json = False) -> None:
    """Open the next round of a run that has ended: failed tasks again, nothing that is done."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.runs import find_run, resume_run

    with session(state_dir) as opened:
        graph = opened.graph
        found = find_run(graph, run)
        again, moved = resume_run(graph, opened.settler, opened.auditor, opened.clock, found.id)
    names = [task.spec.name for task in moved]
    Output(as_json).result(
        {"run": again.id, "round": again.round, "resumed": names},
        lambda: [f"run {again.id}, round {again.round}: {len(names)} tasks again", *names],
    )
