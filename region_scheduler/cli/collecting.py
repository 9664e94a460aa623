"""`gc`: remove what is old and what nothing needs any more."""

from __future__ import annotations

from typing import Annotated

import typer

from region_scheduler.cli.options import Json, StateDir
from region_scheduler.cli.output import Output

_IDS_SHOWN = 100


def gc(
    is_dry: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what would be removed.")
    ] = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Remove records beyond retention that nothing needs; a serving process does so by itself."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.retention import collect_all, preview

    output = Output(as_json)
    with session(state_dir) as opened:
        retention, clock = opened.settings.retention, opened.clock
        if is_dry:
            rows = [
                {
                    "kind": one.kind,
                    "rule": one.rule,
                    "count": len(one.ids),
                    "tasks": one.tasks,
                    "ids": list(one.ids[: _IDS_SHOWN if as_json else 1]),
                }
                for one in preview(opened.graph, retention, clock)
            ]
            output.items(rows, ["kind", "rule", "count", "tasks", "ids"], "nothing")
            return
        skew_max_s = opened.settings.lease.skew_max_s
        gone = collect_all(opened.graph, opened.auditor, retention, clock, skew_max_s)
    value = {"removed": {kind.value: count for kind, count in gone.items()}}
    output.result(value, lambda: [f"removed {count} {kind}" for kind, count in gone.items()])
