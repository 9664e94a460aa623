"""An oracle for timetables: asks of every minute what the wall clock shows then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim

from region_scheduler.domain.timetable import Gap, Repeat, Timetable

MINUTE = timedelta(minutes=1)
ZONES = sorted(
    name
    for name in available_timezones()
    if "/" in name and not name.startswith(("Etc/", "posix/", "right/", "SystemV/"))
)


@cache
def changes(zone: ZoneInfo, year: int) -> list[datetime]:
    """Return the hours of a year within which the offset changes."""
    begin = datetime(year, 1, 1, tzinfo=UTC)
    days = [begin + timedelta(days=n) for n in range(367)]
    return [
        hour
        for day in _odd(zone, days)
        for hour in _odd(zone, [day + timedelta(hours=n) for n in range(25)])
    ]


def _odd(zone: ZoneInfo, instants: list[datetime]) -> list[datetime]:
    return [
        one
        for one, other in pairwise(instants)
        if one.astimezone(zone).utcoffset() != other.astimezone(zone).utcoffset()
    ]


def searched(table: Timetable, begin: datetime, end: datetime) -> list[datetime]:
    """Return the instants in (begin, end], found by asking of each minute whether it is due."""
    zone = ZoneInfo(table.time_zone)
    is_free = not table.is_elapsed
    due: list[datetime] = []
    instant = begin
    while (instant := instant + MINUTE) <= end:
        here, before = instant.astimezone(zone), (instant - MINUTE).astimezone(zone)
        is_second = here.fold and is_free and table.repeat is Repeat.ONCE
        shown = here.replace(tzinfo=None)
        jump = shown - before.replace(tzinfo=None) - MINUTE
        lost = [shown - n * MINUTE for n in range(1, int(jump / MINUTE) + 1)]
        is_shifted = is_free and table.gap is Gap.SHIFT and any(_matches(table, w) for w in lost)
        if is_shifted or (_matches(table, shown) and not is_second):
            due.append(instant)
    return due


def _matches(table: Timetable, wall: datetime) -> bool:
    ticks = CronSim(table.expression, (wall - MINUTE).replace(tzinfo=UTC))
    return next(ticks).replace(tzinfo=None) == wall
