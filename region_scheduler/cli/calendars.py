"""`calendars`: change freezes and maintenance windows."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from region_scheduler.cli.options import TENANT_DEFAULT, Json, StateDir, Tenant
from region_scheduler.cli.output import Output
from region_scheduler.cli.schedules import Expression, GapText, RepeatText, TimeZone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from region_scheduler.domain.calendar import Calendar

app = typer.Typer(help="Change freezes and maintenance windows.", no_args_is_help=True)

KINDS = ("zone", "tenant", "region", "everything")
Name = Annotated[str, typer.Argument(metavar="NAME", help="Unique within its scope.")]
Kind = Annotated[
    str, typer.Argument(metavar="KIND", help="What it is of: zone, tenant, region or everything.")
]
Which = Annotated[str, typer.Argument(metavar="[WHICH]", help="Which one; not for everything.")]
Begin = Annotated[str, typer.Option("--from", help="When it begins, with offset.  [default: now]")]
End = Annotated[str, typer.Option("--until", help="When it ends, e.g. 2031-05-01T06:00+02:00.")]
At = Annotated[str, typer.Option("--at", help="Cron: when it begins each time, if it recurs.")]
Lasts = Annotated[str, typer.Option("--for", help="With --at: how long, e.g. 8h or 2d12h.")]
Reason = Annotated[str, typer.Option("--reason", help="Why, for those who wait.")]
Count = Annotated[int, typer.Option("--next", min=1, max=1_000, help="How many times.")]
_COLUMNS = ["name", "kind", "scope", "which", "when", "state", "changes_at", "reason", "by"]


@app.command(name="set")
def set_(
    effect: Annotated[
        str,
        typer.Argument(
            metavar="EFFECT",
            help="freeze: nothing new is promoted in these times; window: only in these times.",
        ),
    ],
    name: Name,
    kind: Kind,
    which: Which = "",
    begin: Begin = "",
    end: End = "",
    expression: At = "",
    lasts: Lasts = "",
    time_zone: TimeZone = "UTC",
    gap: GapText = "shift",
    repeat: RepeatText = "once",
    reason: Reason = "",
    tenant: Tenant = TENANT_DEFAULT,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Set a freeze or window of a zone, tenant or region, or of everything."""
    from region_scheduler.cli.pausing import scope_of
    from region_scheduler.cli.session import session
    from region_scheduler.operations.calendars import CalendarWish, set_calendar

    wish = CalendarWish(
        effect=effect,
        name=name,
        begin=begin,
        end=end,
        expression=expression,
        lasts=lasts,
        time_zone=time_zone,
        gap=gap,
        repeat=repeat,
        reason=reason,
    )
    with session(state_dir) as opened:
        scope = scope_of(opened.graph, kind, which, tenant, KINDS)
        now = opened.clock.now()
        wanted = wish.calendar(scope, which, opened.actor.id, now)
        made = set_calendar(opened.graph, opened.settler, opened.auditor, wanted)
    _tell(made, now, 1, Output(as_json))


@app.command(name="list")
def list_calendars(state_dir: StateDir = None, as_json: Json = False) -> None:
    """List freezes and windows, and how they stand now."""
    from region_scheduler.cli.session import session

    with session(state_dir) as opened:
        now = opened.clock.now()
        rows = [_row(calendar, now) for calendar in opened.graph.calendars.on()]
    rows.sort(key=lambda row: (row["scope"], row["which"], row["kind"], row["name"]))
    Output(as_json).items(rows, _COLUMNS, "there are none; something may always be promoted")


@app.command()
def show(
    name: Name,
    kind: Kind,
    which: Which = "",
    count: Count = 5,
    tenant: Tenant = TENANT_DEFAULT,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Show a freeze or window, and its next times."""
    from region_scheduler.cli.pausing import scope_of
    from region_scheduler.cli.session import session
    from region_scheduler.operations.calendars import find_calendar

    with session(state_dir) as opened:
        scope = scope_of(opened.graph, kind, which, tenant, KINDS)
        found = find_calendar(opened.graph, scope, name)
        now = opened.clock.now()
    _tell(found, now, count, Output(as_json))


@app.command()
def remove(
    name: Name,
    kind: Kind,
    which: Which = "",
    reason: Reason = "",
    tenant: Tenant = TENANT_DEFAULT,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Remove a freeze or window; what waited for it goes on."""
    from region_scheduler.cli.pausing import scope_of
    from region_scheduler.cli.session import session
    from region_scheduler.operations.calendars import find_calendar, remove_calendar

    with session(state_dir) as opened:
        scope = scope_of(opened.graph, kind, which, tenant, KINDS)
        found = find_calendar(opened.graph, scope, name)
        remove_calendar(opened.graph, opened.settler, opened.auditor, found, reason)
    value = {"name": name, "scope": kind, "which": found.title, "removed": True}
    Output(as_json).result(value, lambda: [f"{found.kind} {name} is removed"])


@app.command()
def preview(
    expression: Expression,
    lasts: Annotated[str, typer.Option("--for", help="How long, e.g. 8h or 2d12h.")],
    time_zone: TimeZone = "UTC",
    count: Count = 10,
    gap: GapText = "shift",
    repeat: RepeatText = "once",
    after: Annotated[
        str, typer.Option("--after", help="From this instant on, with offset.  [default: now]")
    ] = "",
    as_json: Json = False,
) -> None:
    """Print the next times of a freeze or window that recurs; no stack is needed."""
    from region_scheduler.domain.instant import instant_of
    from region_scheduler.domain.pause import EVERYTHING
    from region_scheduler.operations.calendars import CalendarWish
    from region_scheduler.runtime.system import SystemClock

    now = instant_of(after, "--after") if after else SystemClock().now()
    wish = CalendarWish(
        name="preview",
        reason="preview",
        expression=expression,
        lasts=lasts,
        time_zone=time_zone,
        gap=gap,
        repeat=repeat,
    )
    made = wish.calendar(EVERYTHING, "", "", now)
    rows = list(islice(_times(made, now), count))
    Output(as_json).items(rows, ["begin", "end", "hours"], "it never begins again")


def _row(calendar: Calendar, now: datetime) -> dict[str, Any]:
    from region_scheduler.operations.calendars import status_of, when

    status = status_of(calendar, now)
    return {
        "name": calendar.name,
        "kind": calendar.kind,
        "scope": calendar.scope.kind,
        "which": calendar.title,
        "when": when(calendar),
        "state": status.state,
        "changes_at": status.changes_at,
        "reason": calendar.reason,
        "by": calendar.by,
    }


def _times(calendar: Calendar, now: datetime) -> Iterator[dict[str, Any]]:
    """Yield the next times; a change of the clocks makes one of them longer or shorter."""
    for span in calendar.spans(now):
        length = None if span.end is None else (span.end - span.begin).total_seconds() / 3600
        end = None if span.end is None else calendar.told(span.end)
        yield {"begin": calendar.told(span.begin), "end": end, "hours": length}


def _tell(calendar: Calendar, now: datetime, count: int, output: Output) -> None:
    row = _row(calendar, now)
    times = list(islice(_times(calendar, now), count))
    value = {**row, "revision": calendar.revision, "set_at": calendar.at, "next": times}
    output.result(value, lambda: _lines(value))


def _lines(value: dict[str, Any]) -> Iterator[str]:
    of = f"{value['scope']} {value['which']}".rstrip()
    yield f"{value['kind']} {value['name']} of {of}: {value['when']}"
    yield f"set by {value['by']}: {value['reason']}"
    yield f"it is {value['state']}"
    for one in value["next"]:
        yield f"from {one['begin']} to {one['end'] or 'no end'}"
