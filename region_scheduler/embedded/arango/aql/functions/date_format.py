"""DATE_FORMAT."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from region_scheduler.embedded.arango.aql.dates import Parts, days_in_month, is_leap, iso_text
from region_scheduler.embedded.arango.aql.functions.dates import (
    day_of_year,
    iso_week,
    local_date_of,
    weekday,
)
from region_scheduler.embedded.arango.aql.functions.registry import function
from region_scheduler.embedded.arango.aql.run import Run

_MONTHS: Final = (
    "January February March April May June July August September October November December"
).split()
_DAYS: Final = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split()

_PLACEHOLDERS: Final[dict[str, Callable[[Parts, int], str]]] = {
    "%t": lambda _, instant: str(instant),
    "%z": lambda _, instant: iso_text(instant),
    "%w": lambda _, instant: str(weekday(instant)),
    "%y": lambda p, _: str(p.year),
    "%yy": lambda p, _: f"{p.year % 100:02}",
    "%yyyy": lambda p, _: f"{p.year:04}",
    "%yyyyyy": lambda p, _: f"{p.year:+07}",
    "%m": lambda p, _: str(p.month),
    "%mm": lambda p, _: f"{p.month:02}",
    "%mmm": lambda p, _: _MONTHS[p.month - 1][:3],
    "%mmmm": lambda p, _: _MONTHS[p.month - 1],
    "%d": lambda p, _: str(p.day),
    "%dd": lambda p, _: f"{p.day:02}",
    "%h": lambda p, _: str(p.hour),
    "%hh": lambda p, _: f"{p.hour:02}",
    "%i": lambda p, _: str(p.minute),
    "%ii": lambda p, _: f"{p.minute:02}",
    "%s": lambda p, _: str(p.second),
    "%ss": lambda p, _: f"{p.second:02}",
    "%f": lambda p, _: str(p.millisecond),
    "%fff": lambda p, _: f"{p.millisecond:03}",
    "%x": lambda p, _: str(day_of_year(p)),
    "%xxx": lambda p, _: f"{day_of_year(p):03}",
    "%k": lambda _, instant: str(iso_week(instant)[1]),
    "%kk": lambda _, instant: f"{iso_week(instant)[1]:02}",
    "%l": lambda p, _: str(int(is_leap(p.year))),
    "%q": lambda p, _: str((p.month + 2) // 3),
    "%a": lambda p, _: str(days_in_month(p.year, p.month)),
    "%www": lambda _, instant: _DAYS[weekday(instant)][:3],
    "%wwww": lambda _, instant: _DAYS[weekday(instant)],
    "%&": lambda _p, _instant: "",
    "%%": lambda _p, _instant: "%",
    "%": lambda _p, _instant: "",
}
# The longest placeholder wins.
_PATTERN: Final = re.compile(
    "|".join(sorted(map(re.escape, _PLACEHOLDERS), key=len, reverse=True)), re.IGNORECASE
)


@function("DATE_FORMAT", 2, 3)
def _date_format(run: Run, value: Any, form: Any, tz: Any = None) -> str | None:
    instant = local_date_of(run, value, "DATE_FORMAT", tz)
    if instant is None:
        return None
    if type(form) is not str:
        run.warn(1542, "DATE_FORMAT")
        return None
    parts = Parts.of(instant)
    return _PATTERN.sub(lambda match: _PLACEHOLDERS[match[0].lower()](parts, instant), form)
