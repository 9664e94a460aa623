"""Dates as AQL has them: milliseconds since the epoch, in the proleptic Gregorian calendar.

Python's own dates begin with year 1 and AQL's with year 0, hence the calendar arithmetic here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from region_scheduler.embedded.arango.aql.convert import is_number

DATE_MIN: Final = -62167219200000
DATE_MAX: Final = 253402300799999
MS: Final = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "i": 60_000, "s": 1000, "f": 1}
DAY_MS: Final = MS["d"]

_ISO: Final = re.compile(
    r"(?P<year>[-+]?\d{1,4})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?)?"
    r"(?:[T ](?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?P<fraction>\.\d+)?)?)?"
    r"(?P<zone>[zZ]|[-+]\d{2}:?\d{2})?"
)
_DURATION: Final = re.compile(
    r"P(?=.)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?"
    r"(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,3}))?S)?)?"
)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01 (Hinnant's algorithm, with years that begin in March)."""
    year -= month <= 2
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a number of days since 1970-01-01."""
    days += 719468
    era = days // 146097
    of_era = days - era * 146097
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (month <= 2), month, day


def is_leap(year: int) -> bool:
    """Tell whether a year has 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in_month(year: int, month: int) -> int:
    """Return the number of days of a month."""
    if month == 2:
        return 29 if is_leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@dataclass(frozen=True, slots=True)
class Parts:
    """A date taken apart."""

    year: int
    month: int
    day: int
    hour: int = 0
    minute: int = 0
    second: int = 0
    millisecond: int = 0

    def instant(self) -> int:
        """Return the milliseconds since the epoch; parts that are too large carry over."""
        months = self.year * 12 + self.month - 1
        days = days_from_civil(months // 12, months % 12 + 1, 1) + self.day - 1
        time = self.hour * MS["h"] + self.minute * MS["i"] + self.second * MS["s"]
        return days * DAY_MS + time + self.millisecond

    @classmethod
    def of(cls, instant: int) -> Parts:
        """Return the parts of an instant in UTC."""
        days, rest = divmod(instant, DAY_MS)
        hour, rest = divmod(rest, MS["h"])
        minute, rest = divmod(rest, MS["i"])
        second, millisecond = divmod(rest, MS["s"])
        return cls(*civil_from_days(days), hour, minute, second, millisecond)


def parse_date(value: Any) -> int | None:
    """Return the instant that a timestamp or an ISO 8601 string means; None if it means none."""
    if is_number(value):
        instant = int(value)
        return instant if DATE_MIN <= instant <= DATE_MAX else None
    return _parse_text(value) if type(value) is str else None


def is_date_string(value: Any) -> bool:
    """Tell whether a value is a string in a date's form, whatever its numbers."""
    return type(value) is str and _ISO.fullmatch(value.strip()) is not None


@lru_cache(maxsize=4096)
def _parse_text(text: str) -> int | None:
    match = _ISO.fullmatch(text.strip())
    if match is None or match["year"][0] in "-+":
        return None
    names = ("hour", "minute", "second")
    hour, minute, second = (int(match[name] or 0) for name in names)
    parts = Parts(
        int(match["year"]),
        int(match["month"] or 1),
        int(match["day"] or 1),
        hour,
        minute,
        second,
        int(((match["fraction"] or ".")[1:] + "000")[:3]),
    )
    if not (1 <= parts.month <= 12 and 1 <= parts.day <= 31):
        return None
    if hour > 23 or minute > 59 or second > 59:
        return None
    instant = parts.instant() - _offset(match["zone"])
    return instant if DATE_MIN <= instant <= DATE_MAX else None


def _offset(zone: str | None) -> int:
    if zone is None or zone in "zZ":
        return 0
    digits = zone[1:].replace(":", "")
    offset = int(digits[:2]) * MS["h"] + int(digits[2:]) * MS["i"]
    return -offset if zone[0] == "-" else offset


def iso_text(instant: int, suffix: str = "Z") -> str:
    """Return the date as `YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    p = Parts.of(instant)
    return (
        f"{p.year:04}-{p.month:02}-{p.day:02}T{p.hour:02}:{p.minute:02}:{p.second:02}"
        f".{p.millisecond:03}{suffix}"
    )


# --- time zones


@lru_cache(maxsize=128)
def zone(name: str) -> ZoneInfo | None:
    """Return a time zone by its IANA name, or None."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = -62135596800000


def _moment(instant: int, tz: timezone | ZoneInfo) -> datetime:
    # The two ends are left a day of room for the offset.
    clamped = min(max(instant, _FIRST + DAY_MS), DATE_MAX - DAY_MS)
    return (_EPOCH + timedelta(milliseconds=clamped)).astimezone(tz)


def utc_offset(instant: int, tz: ZoneInfo) -> int:
    """Return what to add to a UTC instant to get local time, in milliseconds."""
    offset = _moment(instant, tz).utcoffset() or timedelta()
    return offset // timedelta(milliseconds=1)


def to_local(instant: int, tz: ZoneInfo) -> int:
    """Return a UTC instant as if local time were UTC."""
    return instant + utc_offset(instant, tz)


def to_utc(local: int, tz: ZoneInfo) -> int:
    """Return the UTC instant of a local time; the earlier one if there are two."""
    naive = _moment(local, UTC).replace(tzinfo=tz, fold=0)
    offset = naive.utcoffset() or timedelta()
    return local - offset // timedelta(milliseconds=1)


def zone_span(instant: int, tz: ZoneInfo) -> dict[str, Any]:
    """Return what is known of a zone at an instant: name, offset, and how long it holds."""
    moment = _moment(instant, tz)
    offset = moment.utcoffset() or timedelta()
    state = (moment.tzname(), offset)
    begin = _change(instant, tz, state, -1)
    end = _change(instant, tz, state, 1)
    return {
        "name": moment.tzname(),
        "begin": None if begin is None else iso_text(begin),
        "end": None if end is None else iso_text(end),
        "dst": bool(moment.dst()),
        "offset": int(offset.total_seconds()),
    }


def _change(instant: int, tz: ZoneInfo, state: Any, sign: int) -> int | None:
    """Find where a zone's rules change before or after an instant, to the second."""

    def is_same(at: int) -> bool:
        moment = _moment(at, tz)
        return bool((moment.tzname(), moment.utcoffset()) == state)

    inside, step = instant, 30 * DAY_MS
    outside = instant
    for _ in range(12 * 150):
        outside += sign * step
        if not is_same(outside):
            break
        inside = outside
    else:
        return None
    while abs(outside - inside) > 1000:
        middle = (inside + outside) // 2
        inside, outside = (middle, outside) if is_same(middle) else (inside, middle)
    later = max(inside, outside)
    return later - later % 1000


# --- durations


@dataclass(frozen=True, slots=True)
class Duration:
    """An ISO 8601 duration: months, and milliseconds for the rest."""

    months: int
    milliseconds: int

    @classmethod
    def parse(cls, text: str) -> Duration | None:
        """Return the duration that a text means, or None."""
        match = _DURATION.fullmatch(text)
        if match is None:
            return None
        years, months, weeks, days, hours, minutes, seconds = (
            int(match[group] or 0) for group in range(1, 8)
        )
        fraction = int(((match[8] or "") + "000")[:3])
        return cls(
            years * 12 + months,
            weeks * MS["w"]
            + days * MS["d"]
            + hours * MS["h"]
            + minutes * MS["i"]
            + seconds * MS["s"]
            + fraction,
        )

    def added_to(self, instant: float, sign: int = 1) -> int:
        """Return an instant that much later (or earlier, with sign -1)."""
        return add_months(int(instant), sign * self.months) + sign * self.milliseconds


def add_months(instant: int, months: int) -> int:
    """Return the instant some months later; a day that the month lacks runs over into the next."""
    parts = Parts.of(instant)
    total = parts.year * 12 + parts.month - 1 + months
    days = days_from_civil(total // 12, total % 12 + 1, 1) + parts.day - 1
    return days * DAY_MS + instant % DAY_MS
