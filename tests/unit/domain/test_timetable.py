"""Occurrences, against a search that asks every minute what the wall clock shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.domain.instant import instant_of
from region_scheduler.domain.timetable import Gap, Repeat, Timetable, checked
from region_scheduler.errors import InvalidInput
from tests.unit.domain.wall_clock import MINUTE, ZONES, changes, searched

BERLIN = "Europe/Berlin"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def between(table: Timetable, begin: str, end: str) -> list[str]:
    """Return the instants after `begin` and up to `end`, as UTC without a date."""
    last = at(end)
    due = takewhile(lambda instant: instant <= last, table.after(at(begin)))
    return [instant.strftime("%dT%H:%M") for instant in due]


def fields(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    steps = st.integers(1, max(2, (high - low) // 2))
    spans = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    return st.one_of(
        st.just("*"),
        number.map(str),
        steps.map("*/{}".format),
        st.lists(number, min_size=2, max_size=3).map(lambda some: ",".join(map(str, some))),
        st.tuples(spans, steps).map(lambda pair: f"{pair[0]}/{pair[1]}"),
    )


EXPRESSIONS = st.tuples(
    fields(0, 59),
    fields(0, 23),
    st.one_of(st.just("*"), fields(1, 28)),
    st.just("*"),
    st.one_of(st.just("*"), fields(0, 6)),
).map(" ".join)


@given(
    expression=EXPRESSIONS,
    zone_name=st.sampled_from(ZONES),
    year=st.integers(2020, 2035),
    gap=st.sampled_from(Gap),
    repeat=st.sampled_from(Repeat),
    data=st.data(),
)
def test_occurrences_are_those_of_a_search_minute_by_minute(
    expression: str, zone_name: str, year: int, gap: Gap, repeat: Repeat, data: st.DataObject
) -> None:
    zone = ZoneInfo(zone_name)
    near = changes(zone, year) or [datetime(year, 6, 1, tzinfo=UTC)]
    begin = data.draw(st.sampled_from(near)) - timedelta(hours=data.draw(st.integers(0, 4)))
    begin += data.draw(st.integers(0, 59)) * MINUTE
    end = begin + timedelta(hours=6)
    table = Timetable(expression=expression, time_zone=zone_name, gap=gap, repeat=repeat)

    found = list(takewhile(lambda instant: instant <= end, table.after(begin)))

    assert found == searched(table, begin, end)
    assert all(one < other for one, other in pairwise(found))


@given(
    expression=EXPRESSIONS,
    zone_name=st.sampled_from(ZONES),
    begin=st.integers(0, 15 * 366 * 24 * 60).map(lambda n: at("2020-01-01T00:00Z") + n * MINUTE),
    gap=st.sampled_from(Gap),
    repeat=st.sampled_from(Repeat),
)
def test_going_on_from_an_occurrence_leads_to_the_same_ones(
    expression: str, zone_name: str, begin: datetime, gap: Gap, repeat: Repeat
) -> None:
    """Whoever computes the next occurrence of a schedule begins at the one before."""
    table = Timetable(expression=expression, time_zone=zone_name, gap=gap, repeat=repeat)

    straight = list(islice(table.after(begin), 8))
    stepwise: list[datetime] = []
    last = begin
    while len(stepwise) < len(straight):
        following = table.next_after(last)
        assert following is not None
        stepwise.append(last := following)

    assert stepwise == straight
    assert all(one < other for one, other in pairwise([begin, *straight]))


def test_a_leap_day_comes_every_fourth_year_and_not_in_2100() -> None:
    table = Timetable(expression="0 12 29 2 *", time_zone=BERLIN)

    years = [instant.year for instant in islice(table.after(at("2090-01-01T00:00Z")), 3)]

    assert years == [2092, 2096, 2104]


@pytest.mark.parametrize(
    ("expression", "due"),
    [
        ("0 9 L * *", ["31T08:00", "28T08:00"]),
        ("0 9 * * MON#2", ["11T08:00", "08T08:00"]),
        ("0 9 LW * *", ["29T08:00", "26T08:00"]),
    ],
)
def test_last_days_and_nth_weekdays(expression: str, due: list[str]) -> None:
    table = Timetable(expression=expression, time_zone=BERLIN)

    assert between(table, "2027-01-01T00:00Z", "2027-03-01T00:00Z") == due


def test_two_times_in_one_gap_are_one_occurrence_and_join_the_one_after() -> None:
    table = Timetable(expression="0,30 2-3 * * *", time_zone=BERLIN)

    assert between(table, "2027-03-28T00:00Z", "2027-03-28T03:00Z") == ["28T01:00", "28T01:30"]


def test_lord_howe_moves_its_clocks_by_half_an_hour() -> None:
    gap = Timetable(expression="10 2 * * *", time_zone="Australia/Lord_Howe")
    repeat = Timetable(
        expression="40 1 * * *", time_zone="Australia/Lord_Howe", repeat=Repeat.TWICE
    )

    assert between(gap, "2026-10-03T12:00Z", "2026-10-03T18:00Z") == ["03T15:30"]
    assert between(repeat, "2027-04-03T12:00Z", "2027-04-03T18:00Z") == ["03T14:40", "03T15:10"]


def test_a_day_that_a_zone_left_out_is_made_good_at_its_end() -> None:
    """Samoa went from the 29th to the 31st of December 2011."""
    shifted = Timetable(expression="0 12 30 12 *", time_zone="Pacific/Apia")
    skipped = Timetable(expression="0 12 30 12 *", time_zone="Pacific/Apia", gap=Gap.SKIP)

    assert shifted.next_after(at("2011-12-01T00:00Z")) == at("2011-12-30T10:00Z")
    assert skipped.next_after(at("2011-12-01T00:00Z")) == at("2012-12-29T22:00Z")


def test_seconds_come_first_in_six_fields() -> None:
    table = Timetable(expression="*/20 30 1 * * *", time_zone="UTC")

    due = list(islice(table.after(at("2026-01-01T00:00Z")), 4))

    assert [instant.strftime("%d %X") for instant in due] == [
        "01 01:30:00", "01 01:30:20", "01 01:30:40", "02 01:30:00",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("", "five fields"),
        ("@daily", "five fields"),
        ("* * * *", "five fields"),
        ("* * * * * * *", "five fields"),
        ("61 * * * *", "bad minute"),
        ("* 24 * * *", "bad hour"),
        ("0 0 31 2 *", "bad day-of-month"),
        ("0 0 * FOO *", "bad month"),
        ("0 0 * * MON#6", "bad day-of-week"),
        ("5-1 * * * *", "bad minute"),
        ("*/0 * * * *", "bad minute"),
        ("1" * 300 + " * * * *", "five fields"),
    ],
)
def test_what_is_no_expression_is_refused(expression: str, told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked(expression, "UTC", Gap.SHIFT, Repeat.ONCE, at("2026-01-01T00:00Z"))

    assert told in str(refused.value)
    assert refused.value.field == "EXPR"


@given(st.text(alphabet="0123456789*/,-#LW MONJAN", max_size=20))
def test_no_text_does_worse_than_a_refusal(text: str) -> None:
    try:
        table = checked(text, "UTC", Gap.SHIFT, Repeat.ONCE, at("2026-01-01T00:00Z"))
    except InvalidInput:
        return
    assert table.next_after(at("2026-01-01T00:00Z")) is not None


@pytest.mark.parametrize(
    "name", ["", "Mars/Olympus", "../etc/passwd", "/etc/localtime", "Europe", "a\0b", "CEST?"]
)
def test_what_is_no_time_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="IANA"):
        checked("* * * * *", name, Gap.SHIFT, Repeat.ONCE, at("2026-01-01T00:00Z"))


def test_the_search_itself_finds_a_wrong_answer() -> None:
    """The oracle is not blind: it tells the two treatments of a gap and a repeat apart."""
    begin, end = at("2027-03-28T00:00Z"), at("2027-03-28T02:00Z")
    shift = Timetable(expression="30 2 * * *", time_zone=BERLIN)
    skip = Timetable(expression="30 2 * * *", time_zone=BERLIN, gap=Gap.SKIP)

    assert searched(shift, begin, end) == [at("2027-03-28T01:00Z")]
    assert searched(skip, begin, end) == []
    with pytest.raises(CronSimError):
        CronSim("* * * *", begin)


@pytest.mark.parametrize("text", ["2027-03-14", "2027-03-14T02:30", "2027-03-14T02:30:00.5"])
def test_an_instant_without_an_offset_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="offset from UTC"):
        instant_of(text, "not_before")


@pytest.mark.parametrize("text", ["", "soon", "2027-13-01T00:00Z", "0001-01-01T00:00+23:59"])
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="2027-03-14T02:30:00Z"):
        instant_of(text, "not_before")


def test_an_instant_is_kept_in_utc() -> None:
    assert instant_of("2027-03-14T02:30:00+01:00", "x").isoformat() == "2027-03-14T01:30:00+00:00"
