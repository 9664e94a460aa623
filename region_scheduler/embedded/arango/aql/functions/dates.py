"""Date functions."""

from __future__ import annotations

import math
import zoneinfo
from collections.abc import Callable
from typing import Any, Final

from region_scheduler.embedded.arango.aql.convert import is_number, to_integer, truthy
from region_scheduler.embedded.arango.aql.dates import (
    DATE_MAX,
    DATE_MIN,
    DAY_MS,
    MS,
    Duration,
    Parts,
    add_months,
    days_from_civil,
    days_in_month,
    is_date_string,
    is_leap,
    iso_text,
    parse_date,
    to_local,
    to_utc,
    utc_offset,
    zone,
    zone_span,
)
from region_scheduler.embedded.arango.aql.functions.registry import function
from region_scheduler.embedded.arango.aql.run import Run
from region_scheduler.embedded.arango.errors import ArangoError

_UNITS: Final = {
    name: letter
    for letter, names in {
        "y": "y year years",
        "m": "m month months",
        "w": "w week weeks",
        "d": "d day days",
        "h": "h hour hours",
        "i": "i minute minutes",
        "s": "s second seconds",
        "f": "f millisecond milliseconds",
    }.items()
    for name in names.split()
}
_YEAR_MS: Final = 365.2425 * DAY_MS
# The order in which DATE_COMPARE goes through the parts of a date.
_COMPARED: Final = "ymdhisf"


def unit_of(value: Any) -> str | None:
    """Return a unit's letter, or None if the value names no unit."""
    return _UNITS.get(value.lower()) if type(value) is str else None


def date_of(run: Run, value: Any, name: str) -> int | None:
    """Return the instant of a date argument; None and a warning if it is none."""
    instant = parse_date(value)
    if instant is None:
        run.warn(1572 if is_number(value) or type(value) is str else 1542, name)
    return instant


def local_date_of(run: Run, value: Any, name: str, tz: Any) -> int | None:
    """Return a date argument in local time, if a time zone is given."""
    instant = date_of(run, value, name)
    if instant is None or tz is None:
        return instant
    zone_info = _zone_of(run, tz, name)
    return None if zone_info is None else to_local(instant, zone_info)


def _zone_of(run: Run, name: Any, function_name: str) -> zoneinfo.ZoneInfo | None:
    if type(name) is not str:
        run.warn(1542, function_name)
        return None
    found = zone(name)
    if found is None:
        raise ArangoError(4, f"AQL: {name} not found in timezone database (while executing)")
    return found


def as_text(run: Run, instant: int | None, tz: Any = None, suffix: str = "Z") -> str | None:
    """Return an instant (in local time, if a zone is given) as an ISO string; None if too far."""
    if instant is None:
        return None
    if tz is not None:
        zone_info = zone(tz)
        instant = to_utc(instant, zone_info) if zone_info is not None else instant
    if not DATE_MIN <= instant <= DATE_MAX:
        run.warn(1572)
        return None
    return iso_text(instant, suffix)


# --- now, and from one form to the other


@function("DATE_NOW", 0)
def _date_now(run: Run) -> int:
    return int(run.now() * 1000)


@function("DATE_TIMESTAMP", 1, 7)
def _date_timestamp(run: Run, *values: Any) -> int | None:
    return _from_parts(run, values, "DATE_TIMESTAMP")


@function("DATE_ISO8601", 1, 7)
def _date_iso8601(run: Run, *values: Any) -> str | None:
    return as_text(run, _from_parts(run, values, "DATE_ISO8601"))


def _from_parts(run: Run, values: tuple[Any, ...], name: str) -> int | None:
    if len(values) == 1:
        return date_of(run, values[0], name)
    if len(values) < 3 or not all(is_number(v) or type(v) is str for v in values):
        run.warn(1542, name)
        return None
    numbers = [to_integer(value) for value in values]
    if min(numbers) < 0 or numbers[0] > 9999:
        run.warn(1572)
        return None
    if len(numbers) == 7:
        numbers[6] = min(numbers[6], 999)
    return Parts(*numbers).instant()


@function("IS_DATESTRING", 1)
def _is_datestring(value: Any) -> bool:
    return is_date_string(value)


# --- one part of a date

_PARTS: Final[dict[str, Callable[[Parts, int], Any]]] = {
    "DATE_YEAR": lambda p, _: p.year,
    "DATE_MONTH": lambda p, _: p.month,
    "DATE_DAY": lambda p, _: p.day,
    "DATE_HOUR": lambda p, _: p.hour,
    "DATE_MINUTE": lambda p, _: p.minute,
    "DATE_SECOND": lambda p, _: p.second,
    "DATE_MILLISECOND": lambda p, _: p.millisecond,
    "DATE_DAYOFWEEK": lambda _, instant: weekday(instant),
    "DATE_DAYOFYEAR": lambda p, _: day_of_year(p),
    "DATE_ISOWEEK": lambda _, instant: iso_week(instant)[1],
    "DATE_ISOWEEKYEAR": lambda _, instant: {
        "week": iso_week(instant)[1],
        "year": iso_week(instant)[0],
    },
    "DATE_LEAPYEAR": lambda p, _: is_leap(p.year),
    "DATE_QUARTER": lambda p, _: (p.month + 2) // 3,
    "DATE_DAYS_IN_MONTH": lambda p, _: days_in_month(p.year, p.month),
}


def weekday(instant: int) -> int:
    """Return the day of the week, 0 for Sunday."""
    return (instant // DAY_MS + 4) % 7


def day_of_year(parts: Parts) -> int:
    """Return the day of the year, from 1."""
    days = days_from_civil(parts.year, parts.month, parts.day)
    return days - days_from_civil(parts.year, 1, 1) + 1


def iso_week(instant: int) -> tuple[int, int]:
    """Return the year and number of the ISO week: the one that its Thursday is in."""
    days = instant // DAY_MS
    thursday = days - (days + 3) % 7 + 3
    year = Parts.of(thursday * DAY_MS).year
    return year, (thursday - days_from_civil(year, 1, 1)) // 7 + 1


def _part(name: str, read: Callable[[Parts, int], Any]) -> None:
    @function(name, 1, 1 if name in ("DATE_SECOND", "DATE_MILLISECOND") else 2)
    def call(run: Run, value: Any, tz: Any = None) -> Any:
        instant = local_date_of(run, value, name, tz)
        return None if instant is None else read(Parts.of(instant), instant)

    del call


for _name, _read in _PARTS.items():
    _part(_name, _read)

# --- sums and differences


@function("DATE_ADD", 2, 4)
def _date_add(run: Run, value: Any, amount: Any, *rest: Any) -> str | None:
    return _shifted(run, "DATE_ADD", value, amount, rest, 1)


@function("DATE_SUBTRACT", 2, 4)
def _date_subtract(run: Run, value: Any, amount: Any, *rest: Any) -> str | None:
    return _shifted(run, "DATE_SUBTRACT", value, amount, rest, -1)


def _shifted(
    run: Run, name: str, value: Any, amount: Any, rest: tuple[Any, ...], sign: int
) -> str | None:
    is_duration = type(amount) is str and len(rest) < 2
    tz = rest[-1] if len(rest) == (1 if is_duration else 2) else None
    instant = local_date_of(run, value, name, tz)
    if instant is None:
        return None
    if is_duration:
        duration = Duration.parse(amount)
        if duration is None:
            run.warn(1572)
            return None
        return as_text(run, duration.added_to(instant, sign), tz)
    if not rest or not is_number(amount) or type(rest[0]) is not str:
        run.warn(1542, name)
        return None
    unit = unit_of(rest[0])
    if unit is None:
        run.warn(1572)
        return None
    return as_text(run, _moved(instant, amount * sign, unit), tz)


def _moved(instant: int, amount: float, unit: str) -> int:
    """Return an instant moved by some units; a part of a year is months, of a month 30 days."""
    if unit in MS:
        return instant + math.trunc(amount * MS[unit])
    months, rest = 0, amount
    if unit == "y":
        months, rest = math.trunc(amount) * 12, math.fmod(amount, 1) * 12
    months, rest = months + math.trunc(rest), math.fmod(rest, 1)
    return add_months(instant, months) + math.trunc(rest * 30 * DAY_MS)


@function("DATE_DIFF", 3, 6)
def _date_diff(run: Run, first: Any, second: Any, unit: Any, *rest: Any) -> Any:
    zones = list(rest)
    as_float = truthy(zones.pop(0)) if zones and type(zones[0]) is bool else False
    one = local_date_of(run, first, "DATE_DIFF", zones[0] if zones else None)
    two = local_date_of(run, second, "DATE_DIFF", zones[-1] if zones else None)
    if one is None or two is None:
        return None
    letter = unit_of(unit)
    if letter is None:
        run.warn(1572 if type(unit) is str else 1542, "DATE_DIFF")
        return None
    size = {"y": _YEAR_MS, "m": _YEAR_MS / 12}.get(letter) or MS[letter]
    difference = (two - one) / size
    if as_float:
        return difference
    return int(math.copysign(math.floor(abs(difference) + 0.5), difference))


@function("DATE_COMPARE", 3, 6)
def _date_compare(run: Run, first: Any, second: Any, start: Any, *rest: Any) -> bool | None:
    zones = list(rest)
    from_unit = unit_of(start)
    to_unit = unit_of(zones[0]) if zones else from_unit
    if zones and to_unit is not None:
        zones.pop(0)
    elif to_unit is None:
        to_unit = from_unit
    one = local_date_of(run, first, "DATE_COMPARE", zones[0] if zones else None)
    two = local_date_of(run, second, "DATE_COMPARE", zones[-1] if zones else None)
    if one is None or two is None:
        return None
    if from_unit is None or to_unit is None or "w" in (from_unit, to_unit):
        run.warn(1542, "DATE_COMPARE")
        return None
    low, high = _COMPARED.index(from_unit), _COMPARED.index(to_unit)
    if high < low:
        run.warn(1542, "DATE_COMPARE")
        return None
    return _fields(one)[low : high + 1] == _fields(two)[low : high + 1]


def _fields(instant: int) -> tuple[int, ...]:
    p = Parts.of(instant)
    return (p.year, p.month, p.day, p.hour, p.minute, p.second, p.millisecond)


@function("DATE_TRUNC", 2, 3)
def _date_trunc(run: Run, value: Any, unit: Any, tz: Any = None) -> str | None:
    instant = local_date_of(run, value, "DATE_TRUNC", tz)
    if instant is None:
        return None
    letter = unit_of(unit)
    if letter is None or letter == "w":
        run.warn(1572 if type(unit) is str else 1542, "DATE_TRUNC")
        return None
    parts = Parts.of(instant)
    if letter == "y":
        cut = Parts(parts.year, 1, 1).instant()
    elif letter == "m":
        cut = Parts(parts.year, parts.month, 1).instant()
    else:
        cut = instant - instant % MS[letter]
    return as_text(run, cut, tz)


@function("DATE_ROUND", 3, 4)
def _date_round(run: Run, value: Any, amount: Any, unit: Any, tz: Any = None) -> str | None:
    instant = local_date_of(run, value, "DATE_ROUND", tz)
    if instant is None:
        return None
    letter = unit_of(unit)
    count = to_integer(amount)
    if not is_number(amount) or count <= 0 or letter is None or letter not in "dhisf":
        run.warn(1542, "DATE_ROUND")
        return None
    size = MS[letter] * count
    return as_text(run, math.trunc(instant / size) * size, tz)


# --- time zones


@function("DATE_UTCTOLOCAL", 2, 3)
def _date_utctolocal(run: Run, value: Any, tz: Any, detail: Any = False) -> Any:
    instant = date_of(run, value, "DATE_UTCTOLOCAL")
    zone_info = _zone_of(run, tz, "DATE_UTCTOLOCAL") if instant is not None else None
    if instant is None or zone_info is None:
        return None
    suffix = "Z" if utc_offset(instant, zone_info) == 0 and not _has_summer(instant, tz) else ""
    text = as_text(run, to_local(instant, zone_info), None, suffix)
    return _detailed(run, "DATE_UTCTOLOCAL", detail, "local", text, instant, tz)


@function("DATE_LOCALTOUTC", 2, 3)
def _date_localtoutc(run: Run, value: Any, tz: Any, detail: Any = False) -> Any:
    local = date_of(run, value, "DATE_LOCALTOUTC")
    zone_info = _zone_of(run, tz, "DATE_LOCALTOUTC") if local is not None else None
    if local is None or zone_info is None:
        return None
    instant = to_utc(local, zone_info)
    return _detailed(run, "DATE_LOCALTOUTC", detail, "utc", as_text(run, instant), instant, tz)


def _has_summer(instant: int, tz: str) -> bool:
    found = zone(tz)
    return found is not None and bool(zone_span(instant, found)["dst"])


def _detailed(
    run: Run, name: str, detail: Any, key: str, text: str | None, instant: int, tz: str
) -> Any:
    if type(detail) is not bool:
        run.warn(1542, name)
        return None
    found = zone(tz)
    if not detail or found is None:
        return text
    return {key: text, "tzdb": "system", "zoneInfo": zone_span(instant, found)}


@function("DATE_TIMEZONE", 0)
def _date_timezone() -> str:
    return "Etc/UTC"


@function("DATE_TIMEZONES", 0)
def _date_timezones() -> list[str]:
    return sorted(zoneinfo.available_timezones())
