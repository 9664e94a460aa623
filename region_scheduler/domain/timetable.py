"""When a schedule is due: cron expressions over the clocks of a time zone.

An expression is matched against local wall time. Where a zone's offset changes, two kinds of
expression part. One whose minute or hour begins with `*` follows elapsed time, as in Debian's cron:
it is due whenever the wall clock shows a matching time, in both passes of a repeated hour, and
never at a time that does not exist. All others name times of day, and the timetable says what
becomes of one that a day does not have (`Gap`) or has twice (`Repeat`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from region_scheduler.errors import InvalidInput

_SECOND: Final = timedelta(seconds=1)
_NONE: Final = timedelta(0)
_DAY: Final = timedelta(days=1)
"""No change of a zone's offset makes more of a difference."""
_STEP: Final = timedelta(hours=6)
"""No zone has changed its offset twice within so short a time since the epoch."""
_YEAR_MAX: Final = 9_990
_FIELDS_MAX: Final = 6
_CHARACTERS_MAX: Final = 200


class Gap(StrEnum):
    """What becomes of a time of day that does not exist on a day."""

    SHIFT = "shift"
    SKIP = "skip"


class Repeat(StrEnum):
    """What becomes of a time of day that a day has twice."""

    ONCE = "once"
    TWICE = "twice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """An expression with what it needs to mean instants; `checked` makes it of what people type.

    Attributes:
        expression: Five cron fields, or six with seconds first.
        time_zone: IANA name.
        gap: `shift` takes the first instant after the gap; several such times are one.
        repeat: `once` takes the first of the two.
    """

    expression: str
    time_zone: str = "UTC"
    gap: Gap = Gap.SHIFT
    repeat: Repeat = Repeat.ONCE

    @property
    def is_elapsed(self) -> bool:
        """Whether it follows elapsed time, so that `gap` and `repeat` have nothing to say."""
        minute, hour = self.expression.split()[-5:-3]
        return minute.startswith("*") or hour.startswith("*")

    def after(self, instant: datetime) -> Iterator[datetime]:
        """Yield the instants (UTC) after `instant`, rising strictly; ends if there are no more.

        Args:
            instant: Aware.
        """
        last = instant.astimezone(UTC)
        for at in self._in_order(last):
            if at > last:
                last = at
                yield at

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first instant after `instant`; None if there is none any more."""
        return next(self.after(instant), None)

    def lasting(self, begin: datetime, seconds: float) -> datetime:
        """Return when that is over (UTC) which begins at an occurrence and lasts for so long.

        Times of day last by the zone's clocks: eight hours from 22:00 end at 06:00 on any day. An
        end that does not exist is the first instant after the gap; of two it is the first that
        comes after the beginning. What follows elapsed time lasts for elapsed time.
        """
        length = timedelta(seconds=seconds)
        if self.is_elapsed:
            return begin + length
        here = begin.astimezone(ZoneInfo(self.time_zone))
        # Python adds to what the clock shows, and drops which of two passes it was in.
        wall = (here + length).replace(fold=here.fold)
        end = wall.astimezone(UTC)
        if end.astimezone(here.tzinfo).replace(tzinfo=UTC) == wall.replace(tzinfo=UTC):
            return end
        early, late = (wall.replace(fold=fold).astimezone(UTC) for fold in (1, 0))
        return _change_between(ZoneInfo(self.time_zone), early, late)

    def earliest_not_over(self, now: datetime, seconds: float) -> datetime:
        """Return an instant such that what began at it or before, lasting so long, is over."""
        return now - timedelta(seconds=seconds) - (_NONE if self.is_elapsed else _DAY)

    def note_of(self, instant: datetime) -> str:
        """Return what is odd about an occurrence: shifted out of a gap, or within a repeat."""
        here = instant.astimezone(ZoneInfo(self.time_zone))
        before = (instant - _SECOND).astimezone(here.tzinfo)
        shown = here.replace(tzinfo=UTC)
        is_late = (here.utcoffset() or _NONE) > (before.utcoffset() or _NONE)
        if is_late and self._is_shifted and next(self._walls(shown - _SECOND), None) != shown:
            return "shifted: its time does not exist on this day"
        twin = here.replace(fold=not here.fold)
        if twin.utcoffset() == here.utcoffset() or twin.astimezone(UTC) == instant:
            return ""
        return "second of two" if here.fold else "first of two"

    def _in_order(self, begin: datetime) -> Iterator[datetime]:
        """Yield candidates in order; the first may be too early, and equal ones may follow."""
        zone = ZoneInfo(self.time_zone)
        offset = _offset(zone, begin)
        is_second_pass = bool(begin.astimezone(zone).fold)
        walls = self._walls(begin + offset)
        wall = next(walls, None)
        while wall is not None:
            end = _next_change(self.time_zone, begin)
            if end.year >= _YEAR_MAX:
                return
            following = _offset(zone, end)
            while wall is not None and wall - offset < end:
                at = wall - offset
                is_repeated = is_second_pass and at.astimezone(zone).fold and self._is_once
                if not is_repeated:
                    yield at
                wall = next(walls, None)
            if wall is not None and wall < end + following and self._is_shifted:
                yield end
            if following < offset and not self._is_once:
                walls = self._walls(end + following - _SECOND)
                wall = next(walls, None)
            while wall is not None and wall < end + following:
                wall = next(walls, None)
            begin, offset, is_second_pass = end, following, False

    @property
    def _is_once(self) -> bool:
        return self.repeat is Repeat.ONCE and not self.is_elapsed

    @property
    def _is_shifted(self) -> bool:
        return self.gap is Gap.SHIFT and not self.is_elapsed

    def _walls(self, after: datetime) -> Iterator[datetime]:
        """Yield the matching wall times after one, each written as if it were UTC."""
        return iter(CronSim(self.expression, after.replace(tzinfo=UTC)))


def checked(
    expression: str, time_zone: str, gap: Gap, repeat: Repeat, after: datetime
) -> Timetable:
    """Return a timetable that is due at least once.

    Args:
        expression: As typed.
        time_zone: As typed.
        gap: Of times that do not exist.
        repeat: Of times that exist twice.
        after: It must be due once after this instant.

    Raises:
        InvalidInput: The expression or the time zone is none, or it is never due.
    """
    fields = expression.split()
    if len(expression) > _CHARACTERS_MAX or len(fields) not in {_FIELDS_MAX - 1, _FIELDS_MAX}:
        told = (
            "write five fields (minute hour day month weekday), or six with seconds first,"
            " e.g. '30 2 * * *'"
        )
        raise InvalidInput(field="EXPR", value=expression[:_CHARACTERS_MAX], expected=told)
    _known_zone(time_zone)
    table = Timetable(expression=" ".join(fields), time_zone=time_zone, gap=gap, repeat=repeat)
    try:
        first = table.next_after(after)
    except CronSimError as error:
        told = f"{str(error).lower()}; fields are minute hour day month weekday, e.g. '30 2 * * *'"
        raise InvalidInput(field="EXPR", value=expression, expected=told) from error
    if first is None:
        raise InvalidInput(field="EXPR", value=expression, expected="it is never due: change it")
    return table


def _known_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        told = "give a name of the IANA database, e.g. Europe/Berlin or UTC"
        raise InvalidInput(field="--tz", value=name, expected=told) from error


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    return instant.astimezone(zone).utcoffset() or _NONE


def _next_change(time_zone: str, instant: datetime) -> datetime:
    """Return the next instant at which the offset may change: a real change, or a year's end."""
    changes = _changes(time_zone, instant.year)
    return next(at for at in changes if at > instant)


@lru_cache(maxsize=2_048)
def _changes(time_zone: str, year: int) -> tuple[datetime, ...]:
    """Return the instants of a year at which the offset changes, and the year's end."""
    zone = ZoneInfo(time_zone)
    at, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    found: list[datetime] = []
    while at < end:
        later = min(at + _STEP, end)
        if _offset(zone, at) != _offset(zone, later):
            found.append(_change_between(zone, at, later))
        at = later
    return tuple(dict.fromkeys([*found, end]))


def _change_between(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """Return the first second that has the offset of `after`, by halving."""
    offset = _offset(zone, before)
    while after - before > _SECOND:
        middle = before + ((after - before) // 2 // _SECOND) * _SECOND
        if _offset(zone, middle) == offset:
            before = middle
        else:
            after = middle
    return after
