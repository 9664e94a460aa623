"""`zones`: the catalogue's types, and the landing zones that were created from them."""

from __future__ import annotations

from typing import Annotated

import typer

from region_scheduler.cli.hints import Hints
from region_scheduler.cli.options import (
    TENANT_DEFAULT,
    Json,
    Pairs,
    Regions,
    StateDir,
    Tenant,
    words,
)
from region_scheduler.cli.output import Output

app = typer.Typer(help="Zone types, and landing zones.", no_args_is_help=True)

TypeName = Annotated[str, typer.Argument(metavar="TYPE", help="A zone type, e.g. aws-pci_dss.")]
PREVIEW_REGIONS = "eu-west,us-east,ap-south"


@app.command()
def types(as_json: Json = False) -> None:
    """List the zone types."""
    from region_scheduler.catalog.compose import zone_types
    from region_scheduler.catalog.describe import type_row

    rows = [type_row(one) for one in zone_types()]
    columns = ["type", "version", "steps", "per_region", "terraform", "approvals", "waves"]
    Output(as_json).items(rows, [*columns, "critical_path_min"], "there are none")


@app.command()
def show(name: TypeName, as_json: Json = False) -> None:
    """Show a zone type: its steps by subgraph, parameters and locks."""
    from region_scheduler.catalog.describe import type_lines, type_view

    view = type_view(name)
    Output(as_json).result(view, lambda: type_lines(view))


@app.command()
def graph(
    name: TypeName,
    regions: Regions = PREVIEW_REGIONS,
    form: Annotated[str, typer.Option("--format", help="dot, mermaid or json.")] = "dot",
    as_json: Json = False,
) -> None:
    """Print the graph that a zone of this type would have."""
    from region_scheduler.catalog.describe import GRAPH_FORMS, graph_text, preview
    from region_scheduler.errors import InvalidInput

    form = "json" if as_json else form
    if form not in GRAPH_FORMS:
        expected = f"give one of {', '.join(GRAPH_FORMS)}"
        raise InvalidInput(field="--format", value=form, expected=expected)
    typer.echo(graph_text(preview(name, words(regions, "--regions")), form))


@app.command()
def order(name: TypeName, regions: Regions = PREVIEW_REGIONS, as_json: Json = False) -> None:
    """Print the steps of a type in topological order, by wave."""
    from region_scheduler.catalog.describe import preview, wave_lines, waves

    plan = preview(name, words(regions, "--regions"))
    Output(as_json).result({"items": waves(plan)}, lambda: wave_lines(plan))


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Unique within the tenant.")],
    type_name: Annotated[str, typer.Option("--type", help="Zone type.")],
    regions: Regions = None,
    pairs: Pairs = None,
    tenant: Tenant = TENANT_DEFAULT,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Create a landing zone; nothing is provisioned before `submit`."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.plans import checked_zone
    from region_scheduler.operations.zones import create_zone

    with session(state_dir) as opened:
        known = opened.known_regions()
        checked = checked_zone(
            known,
            name,
            type_name,
            words(regions, "--regions"),
            pairs or [],
            tenant,
            opened.clock.now(),
        )
        zone = create_zone(opened.graph, opened.auditor, opened.quotas, checked)
    Output(as_json).result(
        {"zone": zone},
        lambda: [
            f"zone {zone.name} ({zone.zone_type}) of {zone.tenant} over {', '.join(zone.regions)}",
            f"provision it with: {Hints(state_dir, tenant).of_tenant('submit', zone.name)}",
        ],
    )


@app.command(name="list")
def list_zones(
    tenant: Annotated[str, typer.Option("--tenant", help="Only this one's.")] = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """List the landing zones."""
    from region_scheduler.cli.session import session

    with session(state_dir) as opened:
        rows = [
            {
                "zone": zone.name,
                "tenant": zone.tenant,
                "type": zone.zone_type,
                "regions": list(zone.regions),
                "active_run": zone.active_run,
                "doubts": list(zone.doubts),
                "created_at": zone.created_at,
            }
            for zone in opened.graph.zones.all(tenant)
        ]
    columns = ["zone", "tenant", "type", "regions", "active_run", "doubts", "created_at"]
    Output(as_json).items(rows, columns, "there are no zones; `zones create` makes one")
