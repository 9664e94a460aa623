"""`admissions`: the map from what was submitted, and its tasks, to who admitted it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from region_scheduler.cli.options import Json, StateDir
from region_scheduler.cli.output import Output

if TYPE_CHECKING:
    from region_scheduler.domain.admission import AdmissionSummary

app = typer.Typer(help="Admissions: who took what in.", no_args_is_help=True)

_COLUMNS = "admission tenant key state epoch instance incarnation run name tasks created_at".split()
_KEY_SHOWN_MAX = 40


@app.command(name="list")
def list_admissions(
    instance: Annotated[
        str, typer.Option("--instance", help="Only those of this instance, or incarnation.")
    ] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="Newest first.")] = 20,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """List admissions, newest first: which instance admits, or admitted, which run and tasks."""
    from region_scheduler.cli.session import session

    with session(state_dir) as opened:
        found = opened.graph.admissions.recent(limit, instance)
    rows = [_row(admission) for admission in found]
    of = f" of {instance}" if instance else ""
    nothing = f"there are no admissions{of}; `submit` makes one"
    shown = rows if as_json else [{**row, "key": _short(row["key"])} for row in rows]
    Output(as_json).items(shown, _COLUMNS, nothing)


@app.command()
def show(
    admission: Annotated[
        str,
        typer.Argument(
            metavar="ADMISSION",
            help="Its id or that of its run, the beginning or end of either, or its key.",
        ),
    ],
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Show an admission: who is at it, whether that one lives, and what became of its run."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.admissions import find_admission, state_of_instance

    with session(state_dir) as opened:
        found = find_admission(opened.graph, admission)
        lease = state_of_instance(opened.graph, found.instance)
        (run,) = opened.graph.runs.read([found.run])
    value = {
        **_row(found),
        "dependencies": found.edge_count,
        "home_region": found.home_region,
        "lease": lease,
        "run_state": run.state.value if run is not None else "not published",
        "body_digest": found.body_digest,
        "trace": found.trace,
        "reason": found.reason,
    }
    Output(as_json).result(value, lambda: _lines(value))


def _row(found: AdmissionSummary) -> dict[str, Any]:
    instance, _, incarnation = found.instance.rpartition(":")
    return {
        "admission": found.id,
        "tenant": found.tenant,
        "key": found.key,
        "state": found.state.value,
        "epoch": found.epoch,
        "instance": instance,
        "incarnation": incarnation,
        "run": found.run,
        "name": found.name,
        "tasks": found.task_count,
        "created_at": found.created_at,
    }


def _short(key: str) -> str:
    """Return a key as one shows it: it may be of any length."""
    return key if len(key) <= _KEY_SHOWN_MAX else f"{key[: _KEY_SHOWN_MAX - 1]}…"


def _lines(value: dict[str, Any]) -> list[str]:
    reason = f": {value['reason']}" if value["reason"] else ""
    return [
        f"admission {value['admission']}, {value['state']}{reason}",
        f"tenant {value['tenant']}, key {_short(value['key'])}",
        f"run {value['run']}: {value['name']}, {value['run_state']},"
        f" {value['tasks']} tasks, {value['dependencies']} dependencies",
        f"admitted by {value['instance']}, incarnation {value['incarnation']}"
        f" ({value['lease']}), epoch {value['epoch']}",
        f"home region {value['home_region']}, created {value['created_at']:%Y-%m-%d %H:%M:%S} UTC",
        f"digest of the request {value['body_digest']}",
        f"trace {value['trace']}",
    ]
