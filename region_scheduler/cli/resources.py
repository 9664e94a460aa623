"""`resources`: scarce things, who holds them, and how much there is."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from region_scheduler.cli.options import Json, StateDir
from region_scheduler.cli.output import Output

app = typer.Typer(help="Scarce things that tasks hold while they run.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="RESOURCE", help="e.g. acme/aws:organizations.")]
_COLUMNS = ["resource", "capacity", "held", "reserved", "retiring"]


@app.command(name="list")
def list_resources(state_dir: StateDir = None, as_json: Json = False) -> None:
    """List the resources that were ever needed or made, and how much of each is in use."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.resources import usage

    with session(state_dir) as opened:
        slots = opened.graph.slots.all()
    names = sorted({slot.resource for slot in slots})
    rows = [
        dataclasses.asdict(usage(name, [slot for slot in slots if slot.resource == name]))
        for name in names
    ]
    Output(as_json).items(rows, _COLUMNS, "no task has needed a resource yet")


@app.command()
def show(resource: Name, state_dir: StateDir = None, as_json: Json = False) -> None:
    """Show each unit of a resource: who holds it, for whom it is kept."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.resources import find_units

    with session(state_dir) as opened:
        units = find_units(opened.graph, resource)
    rows = [
        {
            "unit": slot.unit,
            "held_by": slot.holder.task if slot.holder else "",
            "kept_for": slot.reservation.task if slot.reservation else "",
            "retiring": slot.is_retiring,
        }
        for slot in units
    ]
    Output(as_json).items(rows, ["unit", "held_by", "kept_for", "retiring"], "it has no units")


@app.command(name="set")
def set_(
    resource: Name,
    capacity: Annotated[int, typer.Option("--capacity", help="Units that there are; at least 1.")],
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Change how many units there are; those in use beyond that go when they are released."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.resources import change_capacity, usage

    with session(state_dir) as opened:
        units = change_capacity(opened.graph, opened.settler, opened.auditor, resource, capacity)
    seen = usage(resource, units)
    told = (
        f"{resource} has {seen.capacity} units, {seen.held} held, {seen.retiring} of them retiring"
    )
    Output(as_json).result(dataclasses.asdict(seen), lambda: [told])
