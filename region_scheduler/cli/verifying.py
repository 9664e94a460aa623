"""`verify`: does what is recorded keep the promises?"""

from __future__ import annotations

from typing import Annotated

import typer

from region_scheduler.cli.options import Json, StateDir
from region_scheduler.cli.output import Output


def verify(
    run: Annotated[
        str,
        typer.Option("--run", metavar="RUN", help="Only this run, and what it holds."),
    ] = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Hold every promise against what is recorded, with the shortest evidence; 1 if one is broken.

    Nothing is changed. On a stack that is at work it may take a second look, some seconds later.
    """
    from region_scheduler.cli.session import session, used_stack
    from region_scheduler.local.evidence import source_of
    from region_scheduler.operations.runs import find_run
    from region_scheduler.verify.verifier import verify as held_against

    output = Output(as_json)
    with session(state_dir) as opened:
        only = find_run(opened.graph, run).id if run else None
        found = held_against(source_of(opened, used_stack(state_dir), output.note), only)
    output.result(found.document(), found.lines)
    return 1 if found.violations else 0
