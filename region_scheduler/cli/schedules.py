"""`schedules`: what runs at given times."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from region_scheduler.cli.options import (
    TENANT_DEFAULT,
    Json,
    Regions,
    StateDir,
    Tenant,
    words,
)
from region_scheduler.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from region_scheduler.assembly.operator import Operator
    from region_scheduler.domain.limits import Limits
    from region_scheduler.domain.schedule import Schedule
    from region_scheduler.domain.timetable import Timetable
    from region_scheduler.operations.schedules import ScheduleWish

app = typer.Typer(help="Runs that start at given times.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A schedule's name.")]
Expression = Annotated[
    str, typer.Argument(metavar="EXPR", help="Cron: minute hour day month weekday.")
]
TimeZone = Annotated[str, typer.Option("--tz", help="IANA time zone, e.g. Europe/Berlin.")]
GapText = Annotated[
    str, typer.Option("--gap", help="Times that a day does not have: shift or skip.")
]
RepeatText = Annotated[
    str, typer.Option("--repeat", help="Times that a day has twice: once or twice.")
]
ZoneName = Annotated[str, typer.Option("--zone", help="The zone that it runs.")]
GraphFile = Annotated[Path | None, typer.Option("--graph", help="A graph file instead of a zone.")]
OverlapText = Annotated[
    str, typer.Option("--overlap", help="While its last run goes on: skip, queue or allow.")
]
CatchUpText = Annotated[
    str, typer.Option("--catch-up", help="Late occurrences: all, all:N, last or none.")
]
QueueMax = Annotated[
    int, typer.Option("--queue-max", help="With --overlap queue: so many may wait.")
]
ModeText = Annotated[str, typer.Option("--mode", help="What its runs do: apply.")]
Simulated = Annotated[bool, typer.Option("--simulate", help="Steps only take their expected time.")]
TimeScale = Annotated[
    float | None, typer.Option("--time-scale", min=0, help="With --simulate: 0 is at once.")
]
_COLUMNS = "name tenant expression tz runs overlap catch_up next_at fired missed state".split()
_NEXT_SHOWN = 3


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Unique within the tenant.")],
    expression: Expression,
    zone: ZoneName = "",
    graph_file: GraphFile = None,
    time_zone: TimeZone = "UTC",
    gap: GapText = "shift",
    repeat: RepeatText = "once",
    overlap: OverlapText = "skip",
    catch_up: CatchUpText = "last",
    queue_max: QueueMax = 10,
    mode: ModeText = "apply",
    regions: Regions = None,
    is_simulated: Simulated = False,
    time_scale: TimeScale = None,
    tenant: Tenant = TENANT_DEFAULT,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Create a schedule of a zone or of a graph; its first run is the next time that is due."""
    from region_scheduler.cli.submit import limits_set, simulation_scale
    from region_scheduler.errors import InvalidInput
    from region_scheduler.operations.schedules import ScheduleWish

    if bool(zone) == (graph_file is not None):
        told = "name either a --zone or a --graph FILE"
        raise InvalidInput(field="schedules create", value=zone, expected=told)
    limits = limits_set()
    wish = ScheduleWish(
        name=name,
        tenant=tenant,
        zone=zone,
        document=_document(graph_file, limits) if graph_file else None,
        limits=limits,
        regions=tuple(words(regions, "--regions")),
        expression=expression,
        time_zone=time_zone,
        gap=gap,
        repeat=repeat,
        overlap=overlap,
        catch_up=catch_up,
        queue_max=queue_max,
        mode=mode,
        time_scale=simulation_scale(is_simulated, time_scale),
    )
    _create(wish, state_dir, Output(as_json))


@app.command(name="list")
def list_schedules(
    tenant: Annotated[str, typer.Option("--tenant", help="Only this one's.")] = "",
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """List the schedules."""
    from region_scheduler.cli.session import session

    with session(state_dir) as opened:
        rows = [_row(schedule) for schedule in opened.graph.schedules.all(tenant)]
    Output(as_json).items(rows, _COLUMNS, "there are no schedules; `schedules create` makes one")


@app.command()
def show(
    name: Name,
    tenant: Tenant = TENANT_DEFAULT,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Show a schedule: its next times, its active run, what waits and what was missed."""
    from region_scheduler.cli.session import session

    with session(state_dir) as opened:
        found = _found(opened, tenant, name)
        now = opened.clock.now()
    _tell(found, now, Output(as_json))


@app.command()
def pause(
    name: Name,
    why: Annotated[str, typer.Option("--reason", help="Shown with the schedule.")] = "",
    tenant: Tenant = TENANT_DEFAULT,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Let a schedule start nothing; what is due meanwhile is recorded as missed."""
    _switch(name, tenant, state_dir, Output(as_json), is_enabled=False, why=why)


@app.command()
def unpause(
    name: Name,
    tenant: Tenant = TENANT_DEFAULT,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Let a paused schedule go on with the next time that is due."""
    _switch(name, tenant, state_dir, Output(as_json), is_enabled=True, why="")


@app.command()
def delete(
    name: Name,
    tenant: Tenant = TENANT_DEFAULT,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Delete a schedule; its runs go on."""
    from region_scheduler.cli.session import session
    from region_scheduler.operations.schedules import delete_schedule

    with session(state_dir) as opened:
        found = _found(opened, tenant, name)
        delete_schedule(opened.graph, opened.auditor, found)
    Output(as_json).result(
        {"schedule": name, "tenant": tenant, "deleted": True}, lambda: [f"schedule {name} deleted"]
    )


@app.command()
def preview(
    expression: Expression,
    time_zone: TimeZone = "UTC",
    count: Annotated[int, typer.Option("--next", min=1, max=10_000, help="How many.")] = 10,
    gap: GapText = "shift",
    repeat: RepeatText = "once",
    after: Annotated[
        str, typer.Option("--after", help="From this instant on, with offset.  [default: now]")
    ] = "",
    as_json: Json = False,
) -> None:
    """Print the next times of an expression; no stack is needed."""
    from region_scheduler.domain.instant import instant_of
    from region_scheduler.operations.schedules import timetable_of
    from region_scheduler.runtime.system import SystemClock

    begin = instant_of(after, "--after") if after else SystemClock().now()
    table = timetable_of(expression, time_zone, gap, repeat, begin)
    rows = _times(table, begin, count)
    value = {**_rules(table), "items": rows}
    output = Output(as_json)
    if as_json:
        output.result(value, list)
    else:
        output.items(rows, ["at", "local", "note"], "it is never due again")


def _document(path: Path, limits: Limits) -> Any:
    from region_scheduler.cli.submit import graph_in, read_body

    return graph_in(read_body(path, limits), path, limits)


def _create(wish: ScheduleWish, state_dir: Path | None, output: Output) -> None:
    from region_scheduler.cli.session import session
    from region_scheduler.operations.schedules import create_schedule

    wish.check()
    with session(state_dir) as opened:
        now = opened.clock.now()
        wanted = wish.schedule(opened.graph, opened.known_regions(), now, opened.actor.id)
        made = create_schedule(opened.graph, opened.auditor, wanted)
    _tell(made, now, output)


def _times(table: Timetable, after: datetime, count: int) -> list[dict[str, Any]]:
    from itertools import islice
    from zoneinfo import ZoneInfo

    zone = ZoneInfo(table.time_zone)
    return [
        {
            "at": at.isoformat(),
            "local": at.astimezone(zone).isoformat(),
            "note": table.note_of(at),
        }
        for at in islice(table.after(after), count)
    ]


def _rules(table: Timetable) -> dict[str, Any]:
    """Return what was asked, and what it means where a zone's clocks change."""
    follows = "elapsed time" if table.is_elapsed else "times of day"
    return {
        "expression": table.expression,
        "tz": table.time_zone,
        "follows": follows,
        "gap": table.gap,
        "repeat": table.repeat,
    }


def _row(schedule: Schedule) -> dict[str, Any]:
    table = schedule.timetable
    most = f":{schedule.catch_up_max}" if schedule.catch_up == "all" else ""
    return {
        "name": schedule.name,
        "tenant": schedule.tenant,
        "expression": table.expression,
        "tz": table.time_zone,
        "runs": schedule.zone_name or (schedule.plan.name if schedule.plan else ""),
        "mode": schedule.mode,
        "overlap": schedule.overlap,
        "catch_up": f"{schedule.catch_up}{most}",
        "next_at": schedule.next_at,
        "fired": schedule.fired_count,
        "missed": schedule.missed_count,
        "state": "active" if schedule.is_enabled else "paused",
    }


def _tell(schedule: Schedule, now: datetime, output: Output) -> None:
    after = schedule.timetable
    row = _row(schedule) | _rules(after)
    value = {
        **row,
        "reason": schedule.reason,
        "home_region": schedule.home_region,
        "revision": schedule.revision,
        "next": _times(after, now, _NEXT_SHOWN),
        "active": [
            {"run": f.run, "nominal_at": f.nominal_at} for f in schedule.firings if not f.waits_for
        ],
        "held": [
            {"nominal_at": f.nominal_at, "waits_for": f.waits_for}
            for f in schedule.firings
            if f.waits_for
        ],
        "waiting": list(schedule.waiting),
        "missed_records": list(schedule.missed),
        "created_by": schedule.created_by,
    }
    output.result(value, lambda: _lines(value))


def _lines(value: dict[str, Any]) -> Iterable[str]:
    paused = f", paused{': ' * bool(value['reason'])}{value['reason']}"
    state = "" if value["state"] == "active" else paused
    yield f"schedule {value['name']} of {value['tenant']}: {value['runs']}{state}"
    rules = f"gap {value['gap']}, repeat {value['repeat']}"
    rules = rules if value["follows"] == "times of day" else "follows elapsed time"
    yield f"{value['expression']} in {value['tz']} ({rules})"
    yield f"overlap {value['overlap']}, late ones {value['catch_up']}"
    yield from (f"next {one['local']}  {one['note']}".rstrip() for one in value["next"])
    yield from (f"active {one['run']}, due {one['nominal_at']}" for one in value["active"])
    yield from (f"waits {one['nominal_at']}: {one['waits_for']}" for one in value["held"])
    yield from (f"waits {at}" for at in value["waiting"])
    yield f"fired {value['fired']}, missed {value['missed']}"
    yield from (
        f"missed {one.count} from {one.first_at} to {one.last_at}: {one.reason}"
        for one in value["missed_records"]
    )


def _found(opened: Operator, tenant: str, name: str) -> Schedule:
    from region_scheduler.operations.schedules import find_schedule

    return find_schedule(opened.graph, tenant, name)


def _switch(
    name: str, tenant: str, state_dir: Path | None, output: Output, *, is_enabled: bool, why: str
) -> None:
    from region_scheduler.cli.session import session
    from region_scheduler.operations.schedules import switch_schedule

    with session(state_dir) as opened:
        found = _found(opened, tenant, name)
        now = opened.clock.now()
        changed = switch_schedule(
            opened.graph, opened.auditor, found, is_enabled=is_enabled, reason=why
        )
    _tell(changed, now, output)
