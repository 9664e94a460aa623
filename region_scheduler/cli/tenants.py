"""`tenants`: subscription levels and quotas; `audit`: what people did."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from region_scheduler.cli.options import Json, StateDir
from region_scheduler.cli.output import Output

if TYPE_CHECKING:
    from region_scheduler.domain.tenant import Tenant

app = typer.Typer(help="Tenants: subscription levels and quotas.", no_args_is_help=True)
audit_app = typer.Typer(help="What people did.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="TENANT", help="A tenant's name.")]
_BOUND = "A number, or unbounded."
_COLUMNS = "tenant level weight floor tasks_in_flight zones runs_a_day runs_in_flight".split()
_ENTRY = "at actor action thing tenant detail why source".split()


@app.command(name="list")
def list_tenants(state_dir: StateDir = None, as_json: Json = False) -> None:
    """List the tenants that were given a level or quotas of their own."""
    from region_scheduler.cli.session import session

    with session(state_dir) as opened:
        rows = [_row(tenant) for tenant in opened.graph.tenants.all()]
        default = opened.settings.tenants.level_default
    nothing = f"no tenant was given anything of its own: all have the level {default}"
    Output(as_json).items(rows, _COLUMNS, nothing)


@app.command()
def show(tenant: Name, state_dir: StateDir = None, as_json: Json = False) -> None:
    """Show a tenant's level and quotas, and how much of them is in use."""
    from region_scheduler.catalog.parameters import checked_name
    from region_scheduler.cli.session import session
    from region_scheduler.operations.tenants import find_tenant, in_use

    checked_name("TENANT", tenant)
    with session(state_dir) as opened:
        default, now = opened.settings.tenants.level_default, opened.clock.now()
        found, is_own = find_tenant(opened.graph, tenant, default, now)
        used = dataclasses.asdict(in_use(opened.graph, tenant, now))
    value = {**_row(found), "is_default": not is_own, "in_use": used}
    Output(as_json).result(value, lambda: _lines(value))


@app.command(name="set")
def set_(
    tenant: Name,
    level: Annotated[
        str, typer.Option("--level", help="trial, standard or premium, with its quotas.")
    ] = "",
    zones: Annotated[str, typer.Option("--zones", help=_BOUND)] = "",
    runs_a_day: Annotated[str, typer.Option("--runs-a-day", help=_BOUND)] = "",
    runs_in_flight: Annotated[str, typer.Option("--runs-in-flight", help=_BOUND)] = "",
    tasks_in_flight: Annotated[
        str, typer.Option("--tasks-in-flight", help=f"{_BOUND} In each region.")
    ] = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Change a tenant's level or quotas; what it has already stays with it."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.tenants import TenantWish, set_tenant

    bounds = {
        "--zones": zones,
        "--runs-a-day": runs_a_day,
        "--runs-in-flight": runs_in_flight,
        "--tasks-in-flight": tasks_in_flight,
    }
    wish = TenantWish(name=tenant, level=level, bounds=bounds)
    wish.checked()
    with session(state_dir) as opened:
        default = opened.settings.tenants.level_default
        made = set_tenant(opened.graph, opened.auditor, wish, default, opened.clock.now())
    value = _row(made)
    Output(as_json).result(value, lambda: _lines(value))


@audit_app.command(name="list")
def list_audit(
    tenant: Annotated[str, typer.Option("--tenant", help="Only what was done to its things.")] = "",
    since: Annotated[
        str, typer.Option("--since", help="An instant with offset, or a duration back like 2h.")
    ] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="Newest first.")] = 20,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """List what people did, newest first: who, what, to which thing, why, from where."""
    from region_scheduler.cli.session import session
    from region_scheduler.runtime.system import SystemClock

    begin = _since(since, SystemClock().now())
    with session(state_dir) as opened:
        entries = opened.graph.audit.recent(limit, tenant, begin)
    rows = [{name: getattr(entry, name) for name in _ENTRY} for entry in entries]
    Output(as_json).items(rows, _ENTRY, "nobody did anything that fits")


def _since(text: str, now: datetime) -> datetime | None:
    from region_scheduler.domain.instant import duration_of, instant_of

    if not text:
        return None
    if text[0].isdigit() and text[-1] in "dhms":
        return now - timedelta(seconds=duration_of(text, "--since"))
    return instant_of(text, "--since")


def _row(tenant: Tenant) -> dict[str, Any]:
    return {
        "tenant": tenant.name,
        "level": tenant.level.name,
        "weight": tenant.level.weight,
        "floor": tenant.level.floor,
        "tasks_in_flight": tenant.level.in_flight_max,
        "zones": tenant.quota.zones_max,
        "runs_a_day": tenant.quota.runs_a_day_max,
        "runs_in_flight": tenant.quota.runs_in_flight_max,
    }


def _lines(value: dict[str, Any]) -> Iterable[str]:
    own = ", as all that were given none of their own" if value.get("is_default") else ""
    yield f"tenant {value['tenant']}: level {value['level']}{own}"
    yield f"weight {value['weight']:g}, floor {value['floor']}"
    used = value.get("in_use", {})
    for name in ("zones", "runs_a_day", "runs_in_flight", "tasks_in_flight"):
        bound = "no bound" if value[name] is None else f"at most {value[name]}"
        now = f"{used[name]} in use, " if name in used else ""
        where = " in each region" if name == "tasks_in_flight" else ""
        yield f"{name.replace('_', ' ')}{where}: {now}{bound}"
