"""`pause`, `unpause` and `step`: hold promotion back, and let it go on."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from region_scheduler.cli.options import TENANT_DEFAULT, Json, RunText, StateDir, Tenant
from region_scheduler.cli.output import Output
from region_scheduler.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Collection

    from region_scheduler.domain.pause import Scope
    from region_scheduler.ports.records import GraphStores

_KINDS = ("run", "zone", "tenant", "region", "everything")
_CHOICE = f"{', '.join(_KINDS[:-1])} or {_KINDS[-1]}"
_COLUMNS = ["kind", "name", "reason", "by", "until"]

Kind = Annotated[str, typer.Argument(metavar="KIND", help=f"What: {_CHOICE}.")]
Name = Annotated[str, typer.Argument(metavar="[NAME]", help="Which; not for everything.")]


def pause(
    kind: Annotated[
        str, typer.Argument(metavar="[KIND]", help=f"What: {_CHOICE}. Without it: list pauses.")
    ] = "",
    name: Name = "",
    reason: Annotated[str, typer.Option("--reason", help="Why, for those who wait.")] = "",
    until: Annotated[
        str, typer.Option("--until", help="When it ends by itself, e.g. 2031-05-01T06:00+02:00.")
    ] = "",
    tenant: Tenant = TENANT_DEFAULT,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Promote nothing new of a run, zone, tenant or region, or at all; what runs goes on."""
    from region_scheduler.cli.session import session
    from region_scheduler.domain.instant import instant_of
    from region_scheduler.operations.pauses import pause as pause_scope

    with session(state_dir) as opened:
        if not kind:
            _list(opened.graph, opened.clock.now(), Output(as_json))
            return
        end = instant_of(until, "--until") if until else None
        scope = scope_of(opened.graph, kind, name, tenant)
        made = pause_scope(opened.graph, opened.auditor, opened.clock, scope, reason, end)
    value = {"kind": scope.kind, "name": scope.name, "reason": made.reason, "until": made.until}
    end_text = f" until {made.until.isoformat()}" if made.until else ""
    Output(as_json).result(value, lambda: [f"{_title(kind, name)} is paused{end_text}"])


def unpause(
    kind: Kind,
    name: Name = "",
    tenant: Tenant = TENANT_DEFAULT,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Lift a pause."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.pauses import unpause as lift

    with session(state_dir) as opened:
        scope = scope_of(opened.graph, kind, name, tenant)
        lift(opened.graph, opened.settler, opened.auditor, scope)
    value = {"kind": scope.kind, "name": scope.name}
    Output(as_json).result(value, lambda: [f"{_title(kind, name)} goes on"])


def step(run: RunText, state_dir: StateDir = None, as_json: Json = False) -> None:
    """Release one wave of a paused run: what waits for promotion now, nothing later."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.pauses import step as release_wave
    from region_scheduler.operations.runs import find_run

    with session(state_dir) as opened:
        found = find_run(opened.graph, run)
        tasks = release_wave(opened.graph, opened.settler, opened.auditor, opened.clock, found)
    names = sorted(task.spec.name for task in tasks)
    Output(as_json).result(
        {"run": found.id, "released": names},
        lambda: [f"run {found.id}: {len(names)} tasks released", *names],
    )


def _list(graph: GraphStores, now: datetime, output: Output) -> None:
    rows = [
        {
            "kind": pause.scope.kind,
            "name": pause.scope.name,
            "reason": pause.reason,
            "by": pause.by,
            "until": pause.until,
        }
        for pause in graph.pauses.on()
        if pause.holds_at(now)
    ]
    output.items(rows, _COLUMNS, "nothing is paused")


def scope_of(
    graph: GraphStores, kind: str, name: str, tenant: str, kinds: Collection[str] = _KINDS
) -> Scope:
    """Return what `kind`, one of `kinds`, and `name` say; it exists.

    Raises:
        InvalidInput: There is no such kind, or a name is missing or too many.
        NotFound: There is nothing of that name.
    """
    from region_scheduler.domain.pause import EVERYTHING, Scope, ScopeKind
    from region_scheduler.operations.runs import find_run
    from region_scheduler.operations.zones import find_zone

    if kind not in kinds:
        raise InvalidInput(field="KIND", value=kind, expected=f"one of {', '.join(kinds)}")
    if (kind == ScopeKind.EVERYTHING) == bool(name):
        expected = "no name" if name else f"which {kind}"
        raise InvalidInput(field="NAME", value=name, expected=f"{kind} needs {expected}")
    match ScopeKind(kind):
        case ScopeKind.EVERYTHING:
            return EVERYTHING
        case ScopeKind.RUN:
            return Scope(ScopeKind.RUN, find_run(graph, name).id)
        case ScopeKind.ZONE:
            return Scope(ScopeKind.ZONE, find_zone(graph, tenant, name).id)
        case ScopeKind.REGION:
            if name not in {region.id for region in graph.regions.all()}:
                raise NotFound(thing="region", id=name)
            return Scope(ScopeKind.REGION, name)
        case ScopeKind.TENANT:
            return Scope(ScopeKind.TENANT, name)


def _title(kind: str, name: str) -> str:
    return f"{kind} {name}".strip()
