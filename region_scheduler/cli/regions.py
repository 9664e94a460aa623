"""`regions`: how they stand, and what operators do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from region_scheduler.cli.options import Json, StateDir
from region_scheduler.cli.output import Output

if TYPE_CHECKING:
    from region_scheduler.domain.region import Region
    from region_scheduler.operations.forecast import Forecast
    from region_scheduler.operations.regions import Outlook, Situation, Wish

app = typer.Typer(
    help="Data centres: how they stand; cordon, drain, evacuate, give up, let return.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="REGION", help="e.g. eu-west.")]
Reason = Annotated[str, typer.Option("--reason", help="Why, for those who wait.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what it would do; change nothing.")]
_COLUMNS = ["region", "status", "epoch", "schedulers", "workers", "slots", "load", "reason"]


@app.command(name="list")
def list_regions(state_dir: StateDir = None, as_json: Json = False) -> None:
    """List the regions: status, live processes, and what is ready or in flight there."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.regions import situations

    with session(state_dir) as opened:
        rows = [_row(one) for one in situations(opened.graph)]
    Output(as_json).items(rows, _COLUMNS, "no region has started yet; `up` starts a stack")


@app.command()
def show(region: Name, state_dir: StateDir = None, as_json: Json = False) -> None:
    """Show one region, and what waits in it."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.regions import Verb, Wish, find_region, outlook, situations

    with session(state_dir) as opened:
        found = find_region(opened.graph, region)
        (row,) = [_row(one) for one in situations(opened.graph) if one.region.id == region]
        stays = outlook(opened.graph, found, Wish(verb=Verb.RETURN), "")
    value = row | {
        "status_by": found.status_by,
        "is_evacuating": found.is_evacuating,
        "serves": list(found.serves),
        "url": found.url,
        "in_flight": stays.in_flight,
        "unheld": stays.waiting,
    }
    if found.is_leaving:
        left = stays.waiting + stays.in_flight
        rate = found.moves_per_s
        value |= {"left": left, "empty_in_s": round(left / rate, 1) if rate else None}
    Output(as_json).result(value, lambda: [f"{name}: {text}" for name, text in value.items()])


def _verb(name: str, told: str) -> None:
    """Add a command that does with a region what `operations.regions.Verb` of that name says."""

    def command(
        region: Name,
        reason: Reason = "",
        dry_run: DryRun = False,
        state_dir: StateDir = None,
        as_json: Json = False,
    ) -> None:
        from region_scheduler.operations.regions import Verb, Wish

        _act(region, Wish(verb=Verb(name), why=reason), dry_run, state_dir, as_json)

    app.command(name=name, help=told)(command)


_verb("cordon", "Let a region take nothing new; what is in flight there goes on.")
_verb("drain", "Let a region finish what is in flight, and then nothing more.")
_verb("fail", "Give a region up: it is fenced, and its work moves where residency allows.")


@app.command()
def evacuate(
    region: Name,
    reason: Reason = "",
    rate: Annotated[
        float, typer.Option("--rate", help="Tasks that move a second at most; 0 for no bound.")
    ] = 0.0,
    stop_running: Annotated[
        bool, typer.Option("--stop-running", help="Stop what runs there, so that it moves too.")
    ] = False,
    dry_run: DryRun = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Drain a region, and let what nobody holds there go where residency allows."""
    from region_scheduler.operations.regions import Verb, Wish

    wish = Wish(verb=Verb.EVACUATE, why=reason, moves_per_s=rate, is_stopping=stop_running)
    _act(region, wish, dry_run, state_dir, as_json)


@app.command(name="return")
def return_(
    region: Name, dry_run: DryRun = False, state_dir: StateDir = None, as_json: Json = False
) -> None:
    """Let a region take work again; what was moved stays moved."""
    from region_scheduler.operations.regions import Verb, Wish

    _act(region, Wish(verb=Verb.RETURN), dry_run, state_dir, as_json)


def _act(region: str, wish: Wish, is_dry: bool, state_dir: StateDir, as_json: bool) -> None:
    from region_scheduler.cli.session import session
    from region_scheduler.domain.tenant import LEVELS
    from region_scheduler.operations.regions import Foretelling, carry_out, find_region, outlook

    with session(state_dir) as opened:
        level = LEVELS[opened.settings.tenants.level_default]
        foretelling = Foretelling(opened.graph, level, opened.clock) if is_dry else None
        found = find_region(opened.graph, region)
        seen = outlook(opened.graph, found, wish, opened.actor.id, foretelling)
        after = seen.region
        if not is_dry:
            settler, auditor, clock = opened.settler, opened.auditor, opened.clock
            after = carry_out(opened.graph, settler, auditor, clock, region, wish)
    value = {
        "region": after.id,
        "status": after.status,
        "epoch": after.epoch,
        "moves": dict(seen.moves),
        "waiting": seen.waiting,
        "in_flight": seen.in_flight,
        "locks": list(seen.locks),
        "makespan_s": _makespan(seen.now),
        "makespan_then_s": _makespan(seen.then),
        "stuck_then": seen.then.stuck if seen.then else None,
        "dry_run": is_dry,
    }
    Output(as_json).result(value, lambda: _lines(after, seen, is_dry))


def _lines(after: Region, seen: Outlook, is_dry: bool) -> list[str]:
    verb = "would be" if is_dry else "is"
    lines = [f"{after.id} {verb} {after.status}, epoch {after.epoch}"]
    lines += [f"{count} tasks go to {to}" for to, count in seen.moves.items()]
    if seen.waiting:
        lines.append(f"{seen.waiting} tasks wait here")
    if seen.in_flight:
        locks = f", with {', '.join(seen.locks)}" if seen.locks else ""
        lines.append(f"{seen.in_flight} tasks are claimed or running here{locks}")
    if seen.now and seen.then:
        stuck = f"; {seen.then.stuck} would not run at all" if seen.then.stuck else ""
        lines.append(
            f"all that goes on would be done in {seen.then.makespan_s:.0f} s,"
            f" now in {seen.now.makespan_s:.0f} s{stuck}"
        )
    return lines


def _makespan(told: Forecast | None) -> float | None:
    return round(told.makespan_s, 1) if told else None


def _row(one: Situation) -> dict[str, Any]:
    return {
        "region": one.region.id,
        "status": one.region.status,
        "epoch": one.region.epoch,
        "schedulers": one.schedulers,
        "workers": one.workers,
        "slots": one.slots,
        "load": one.load,
        "reason": one.region.reason,
    }
