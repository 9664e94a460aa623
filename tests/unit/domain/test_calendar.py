"""Calendars: when a freeze is in force, when a window is open, and what is shut by them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.domain.calendar import (
    Calendar,
    CalendarKind,
    Span,
    calendar_key,
    opens_at,
    outlook,
    removed,
    set_anew,
    shut_too,
)
from region_scheduler.domain.instant import duration_of
from region_scheduler.domain.pause import EVERYTHING, Pause, Scope, ScopeKind, closed_at
from region_scheduler.domain.timetable import Timetable
from region_scheduler.errors import InvalidInput, LostRace
from tests.unit.domain.samples import AT

HOUR = timedelta(hours=1)
EU = Scope(ScopeKind.REGION, "eu")
BERLIN = ZoneInfo("Europe/Berlin")


def a_calendar(name: str = "c", scope: Scope = EU, **more: Any) -> Calendar:
    given: dict[str, Any] = {
        "kind": CalendarKind.FREEZE,
        "title": scope.name,
        "reason": "year end",
        "by": "anna",
        "at": AT,
    }
    if "timetable" not in more:
        given |= {"begin": AT, "end": AT + HOUR}
    return Calendar(id=calendar_key(scope, name), name=name, scope=scope, **{**given, **more})


def recurring(expression: str, hours: float, zone: str = "Europe/Berlin", **more: Any) -> Calendar:
    table = Timetable(expression=expression, time_zone=zone)
    return a_calendar(timetable=table, lasts_s=hours * 3600, **more)


def a_window(name: str = "w", scope: Scope = EU, **more: Any) -> Calendar:
    return a_calendar(name, scope, kind=CalendarKind.WINDOW, **more)


def shown(spans: list[Span]) -> list[tuple[str, str]]:
    """Return what the clocks of Berlin show at the ends of each span."""
    return [
        (f"{s.begin.astimezone(BERLIN):%d %H:%M%z}", f"{s.end.astimezone(BERLIN):%d %H:%M%z}")
        for s in spans
        if s.end is not None
    ]


def spans(calendar: Calendar, after: str, count: int) -> list[tuple[str, str]]:
    return shown(list(islice(calendar.spans(datetime.fromisoformat(after)), count)))


def test_one_that_does_not_recur_has_one_span() -> None:
    once = a_calendar()
    assert list(once.spans(AT - HOUR)) == [Span(AT, AT + HOUR)]
    assert list(once.spans(AT)) == [Span(AT, AT + HOUR)]
    assert list(once.spans(AT + HOUR)) == []


def test_a_night_ends_at_the_same_time_of_day_though_the_clocks_change() -> None:
    night = recurring("0 22 * * *", 8)
    assert spans(night, "2026-03-28T12:00Z", 2) == [
        ("28 22:00+0100", "29 06:00+0200"),  # seven hours
        ("29 22:00+0200", "30 06:00+0200"),
    ]
    assert spans(night, "2026-10-24T12:00Z", 1) == [("24 22:00+0200", "25 06:00+0100")]


def test_an_end_that_does_not_exist_comes_after_the_gap_and_of_two_it_is_the_first() -> None:
    short = recurring("30 1 * * *", 1)
    assert spans(short, "2026-03-28T12:00Z", 1) == [("29 01:30+0100", "29 03:00+0200")]
    assert spans(short, "2026-10-24T12:00Z", 1) == [("25 01:30+0200", "25 02:30+0200")]


def test_a_beginning_that_does_not_exist_is_shifted_as_for_schedules() -> None:
    assert spans(recurring("30 2 * * *", 2), "2026-03-28T12:00Z", 1) == [
        ("29 03:00+0200", "29 05:00+0200")
    ]


def test_what_follows_elapsed_time_lasts_for_elapsed_time_in_both_passes() -> None:
    """The whole hour comes three times between one and four o'clock of this night."""
    hourly = recurring("0 * * * *", 0.5)
    assert spans(hourly, "2026-10-24T23:59Z", 3) == [
        ("25 02:00+0200", "25 02:30+0200"),
        ("25 02:00+0100", "25 02:30+0100"),
        ("25 03:00+0100", "25 03:30+0100"),
    ]


def test_one_that_has_begun_is_found_however_long_ago() -> None:
    weekend = recurring("0 18 * * FRI", 62)
    assert spans(weekend, "2026-03-29T12:00Z", 1) == [("27 18:00+0100", "30 08:00+0200")]


def test_occurrences_that_touch_are_one_and_without_a_gap_it_never_ends() -> None:
    days = recurring("0 0 * * MON,TUE", 24)
    assert spans(days, "2026-01-04T12:00Z", 1) == [("05 00:00+0100", "07 00:00+0100")]
    (always,) = recurring("0 0 * * *", 24).spans(AT)
    assert always.end is None


@given(st.integers(0, 8_000), st.sampled_from(["0 22 * * *", "0 18 * * FRI", "*/40 * * * *"]))
def test_spans_rise_do_not_touch_and_are_not_over(hours: int, expression: str) -> None:
    now = AT + hours * HOUR
    found = list(islice(recurring(expression, 0.6).spans(now), 5))
    assert all(span.end is not None and span.end > max(now, span.begin) for span in found)
    assert all(one.end is not None and one.end < other.begin for one, other in pairwise(found))


def test_a_freeze_shuts_its_scope_until_it_ends() -> None:
    seen = outlook([a_calendar()], AT)
    (shut,) = seen.shut
    assert (shut.scope, shut.until, seen.until) == (EU, AT + HOUR, AT + HOUR)
    assert shut.text.startswith(f"region eu is frozen until {AT.isoformat()[:10]}")
    assert shut.text.endswith("by anna (c): year end")
    assert outlook([a_calendar()], AT - HOUR).shut == ()
    assert outlook([a_calendar()], AT + HOUR).shut == ()


def test_a_scope_with_windows_is_shut_while_none_of_them_is_open() -> None:
    first = a_window("first")
    second = a_window("second", begin=AT + 3 * HOUR, end=AT + 4 * HOUR)
    assert outlook([first, second], AT).shut == ()
    (shut,) = outlook([first, second], AT + 2 * HOUR).shut
    assert shut.until == AT + 3 * HOUR
    assert "is outside its windows (first, second); second opens at" in shut.text
    (over,) = outlook([first, second], AT + 4 * HOUR).shut
    assert over.until is None
    assert "none is to come" in over.text


def test_a_freeze_shuts_an_open_window_too() -> None:
    shut = outlook([a_window(), a_calendar()], AT).shut
    assert [one.kind for one in shut] == [CalendarKind.FREEZE]


def test_an_outlook_holds_until_the_next_change_and_not_before_it_was_made() -> None:
    seen = outlook([a_window(begin=AT + HOUR, end=AT + 2 * HOUR)], AT)
    assert [seen.holds_at(AT + n * HOUR / 2) for n in range(-1, 3)] == [False, True, True, False]
    assert outlook([], AT).holds_at(AT + 10_000 * HOUR)


def test_all_that_applies_must_be_open_at_once() -> None:
    zone = Scope(ScopeKind.ZONE, "z")
    calendars = [
        a_window("w", begin=AT + HOUR, end=AT + 2 * HOUR),
        a_window("w", begin=AT + 5 * HOUR, end=AT + 8 * HOUR),
        a_calendar("f", zone, begin=AT, end=AT + 6 * HOUR),
    ]
    assert opens_at(calendars, [EU, zone], AT) == AT + 6 * HOUR
    assert opens_at(calendars, [EU], AT) == AT + HOUR
    assert opens_at(calendars, [EVERYTHING], AT) == AT
    assert opens_at(calendars, [EU], AT + 8 * HOUR) is None


def test_a_pause_of_the_same_scope_is_told_first() -> None:
    pause = Pause(id=EU.key, scope=EU, reason="why", by="bob", at=AT)
    shut = outlook([a_calendar()], AT).shut
    assert "paused by bob" in shut_too(closed_at([pause], AT), shut).why([EU])
    assert "is frozen" in shut_too(closed_at([], AT), shut).why([EU])
    assert shut_too(closed_at([], AT), shut).names(ScopeKind.REGION) == ["eu"]


def test_to_set_it_twice_is_one_change_and_the_kind_stays() -> None:
    standing = a_calendar(rev="r1")
    wanted = a_calendar(end=AT + 2 * HOUR)
    changed = set_anew(standing, wanted)
    assert (changed.revision, changed.rev, changed.end) == (2, "r1", AT + 2 * HOUR)
    assert set_anew(changed, wanted) is changed
    with pytest.raises(LostRace, match="a freeze by that name"):
        set_anew(standing, replace(wanted, kind=CalendarKind.WINDOW))


def test_one_that_was_removed_makes_room_for_either_kind() -> None:
    gone = removed(a_calendar(rev="r1"))
    assert (gone.is_on, gone.revision, removed(gone)) == (False, 2, gone)
    again = set_anew(gone, a_calendar(kind=CalendarKind.WINDOW))
    assert (again.is_on, again.revision, again.kind) == (True, 3, CalendarKind.WINDOW)


@pytest.mark.parametrize(
    ("text", "seconds"), [("8h", 28_800), ("90m", 5_400), ("2d12h", 216_000), ("1h1s", 3_601)]
)
def test_a_duration_is_days_hours_minutes_seconds(text: str, seconds: int) -> None:
    assert duration_of(text, "--for") == seconds


@pytest.mark.parametrize("text", ["", "8", "h", "1h2d", "-1h", "1.5h", "0m", "8 h", "٣h"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(InvalidInput, match="8h, 90m or 2d12h"):
        duration_of(text, "--for")
