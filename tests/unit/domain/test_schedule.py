"""What is decided of the occurrences that are due: they fire, wait or are missed, each once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count, takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.domain import schedule as module
from region_scheduler.domain.ids import RunId
from region_scheduler.domain.schedule import (
    CatchUp,
    Overlap,
    Schedule,
    adopted,
    decided,
    deleted,
    freed,
    is_behind_another,
    refused,
    revived,
    schedule_key,
    switched,
    waiting_for,
)
from region_scheduler.domain.timetable import Timetable

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def a_schedule(expression: str = "* * * * *", **more: Any) -> Schedule:
    table = Timetable(expression=expression)
    given_: dict[str, Any] = {
        "timetable": table,
        "home_region": "eu-west",
        "next_at": table.next_after(BEGIN),
        "created_at": BEGIN,
    }
    return Schedule(id=schedule_key("acme", "s"), tenant="acme", name="s", **{**given_, **more})


class Runs:
    """Makes ids of runs that can be told apart."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self) -> RunId:
        return RunId(f"run{next(self._numbers)}")


def minutes(schedule: Schedule) -> list[int]:
    """Return after how many minutes the firings were due."""
    return [int((f.nominal_at - BEGIN) / MINUTE) for f in schedule.firings]


def test_nothing_is_due_before_its_time() -> None:
    schedule = a_schedule()

    assert decided(schedule, BEGIN + MINUTE - timedelta(microseconds=1), Runs()) is schedule


def test_what_is_due_fires_and_the_next_instant_is_computed_from_it() -> None:
    after = decided(a_schedule(), BEGIN + 1.5 * MINUTE, Runs())

    assert minutes(after) == [1]
    assert after.next_at == BEGIN + 2 * MINUTE
    assert (after.fired_count, after.missed_count) == (1, 0)
    assert decided(after, BEGIN + 1.5 * MINUTE, Runs()) is after


@pytest.mark.parametrize(
    ("catch_up", "fired", "reason"),
    [
        (CatchUp.ALL, [8, 9, 10], "late: only the newest 2 run"),
        (CatchUp.LAST, [10], "late: only the last one runs"),
        (CatchUp.NONE, [10], "late: the schedule runs no late ones"),
    ],
)
def test_late_ones_run_by_policy_and_the_others_are_recorded(
    catch_up: CatchUp, fired: list[int], reason: str
) -> None:
    schedule = a_schedule(overlap=Overlap.ALLOW, catch_up=catch_up, catch_up_max=2)

    after = decided(schedule, BEGIN + 10 * MINUTE + timedelta(seconds=1), Runs())

    assert minutes(after) == fired
    (record,) = after.missed
    assert (record.count, record.reason) == (10 - len(fired), reason)
    assert record.first_at == BEGIN + MINUTE
    assert after.missed_count == record.count


@pytest.mark.parametrize(
    ("catch_up", "fired"), [(CatchUp.ALL, 1), (CatchUp.LAST, 1), (CatchUp.NONE, 0)]
)
def test_the_one_late_occurrence_of_a_rare_schedule(catch_up: CatchUp, fired: int) -> None:
    daily = a_schedule("0 12 * * *", catch_up=catch_up)

    after = decided(daily, BEGIN + timedelta(hours=14), Runs())

    assert (after.fired_count, after.missed_count) == (fired, 1 - fired)


def test_skip_records_what_meets_a_run_that_has_not_ended() -> None:
    first = decided(a_schedule(), BEGIN + MINUTE, Runs())

    second = decided(first, BEGIN + 2 * MINUTE, Runs())
    third = decided(second, BEGIN + 3 * MINUTE, Runs())

    assert third.firings == first.firings
    (record,) = third.missed
    assert (record.count, record.reason) == (2, "overlap: run run1 had not ended")
    assert minutes(decided(freed(third, RunId("run1")), BEGIN + 4 * MINUTE, Runs())) == [4]


def test_queue_lets_one_after_the_other_go_and_says_when_it_is_full() -> None:
    runs = Runs()
    schedule = a_schedule(overlap=Overlap.QUEUE, queue_max=2)
    for minute in range(1, 6):
        schedule = decided(schedule, BEGIN + minute * MINUTE, runs)
    assert (minutes(schedule), len(schedule.waiting)) == ([1], 2)
    assert [(r.count, r.reason) for r in schedule.missed] == [(2, "overlap: 2 waited already")]

    order = []
    while schedule.firings:
        order += minutes(schedule)
        schedule = decided(freed(schedule, schedule.firings[0].run), BEGIN + 5 * MINUTE, runs)

    assert order == [1, 2, 3]


def test_what_waits_in_a_queue_does_not_become_late_by_waiting() -> None:
    runs = Runs()
    schedule = a_schedule(overlap=Overlap.QUEUE, catch_up=CatchUp.NONE)
    for minute in (1, 2):
        schedule = decided(schedule, BEGIN + minute * MINUTE, runs)

    schedule = replace(freed(schedule, RunId("run1")), next_at=None)

    assert minutes(decided(schedule, BEGIN + timedelta(hours=5), runs)) == [2]


def test_what_is_due_while_a_schedule_is_paused_is_recorded() -> None:
    paused = switched(a_schedule(), is_enabled=False, reason="tired")

    after = decided(paused, BEGIN + 3 * MINUTE, Runs())
    on = switched(after, is_enabled=True, reason="")

    assert (after.firings, after.missed_count) == ((), 3)
    assert after.missed[0].reason == "the schedule was paused"
    assert on.revision == paused.revision + 1 == 3
    assert minutes(decided(on, BEGIN + 4 * MINUTE, Runs())) == [4]
    assert switched(on, is_enabled=True, reason="") is on


def test_a_firing_that_is_refused_is_missed_instead() -> None:
    fired = decided(a_schedule(), BEGIN + MINUTE, Runs())
    (firing,) = fired.firings

    after = refused(fired, firing, "the zone does not exist", BEGIN + MINUTE)

    assert (after.fired_count, after.missed_count, after.firings) == (0, 1, ())
    assert after.missed[0].reason == "refused: the zone does not exist"
    assert refused(after, firing, "again", BEGIN) is after


def test_a_deleted_schedule_decides_nothing_and_its_successor_knows_the_active_run() -> None:
    fired = decided(a_schedule(), BEGIN + MINUTE, Runs())

    gone = deleted(fired)
    again = revived(gone, a_schedule("*/2 * * * *"))

    assert decided(gone, BEGIN + 9 * MINUTE, Runs()) is gone
    assert deleted(gone) is gone
    assert again.firings == fired.firings
    assert again.revision == gone.revision + 1
    assert revived(again, a_schedule()) is again


def test_a_run_that_an_occurrence_has_already_is_taken_over() -> None:
    fired = decided(a_schedule(), BEGIN + MINUTE, Runs())

    taken = adopted(fired, fired.firings[0], RunId("older"))

    assert [firing.run for firing in taken.firings] == ["older"]
    assert adopted(taken, fired.firings[0], RunId("x")) is taken


def test_more_than_one_look_takes_in_is_given_up_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOKED_AT_MAX", 50)
    monkeypatch.setattr(module, "KEPT_MAX", 10)
    schedule = a_schedule(overlap=Overlap.ALLOW, catch_up=CatchUp.ALL, catch_up_max=10)
    now = BEGIN + 500 * MINUTE
    rounds = 0
    while (after := decided(schedule, now, Runs())) is not schedule:
        schedule, rounds = after, rounds + 1

    assert minutes(schedule) == [*range(489, 501)]  # ten late ones, and two in time
    assert schedule.missed_count == 488
    assert rounds > 2


def test_what_waits_for_a_quota_is_told_and_keeps_those_after_it_back() -> None:
    fired = decided(a_schedule(overlap=Overlap.ALLOW), BEGIN + 2 * MINUTE, Runs())
    first, second = fired.firings

    held = waiting_for(fired, first.run, "quota")

    assert [f.waits_for for f in held.firings] == ["quota", ""]
    assert waiting_for(held, first.run, "quota") is held
    assert [is_behind_another(held, f) for f in held.firings] == [False, True]
    assert not is_behind_another(fired, second)
    assert waiting_for(held, first.run, "").firings == fired.firings


def test_no_more_than_so_many_wait_for_a_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OPEN_MAX", 3)
    schedule = a_schedule(overlap=Overlap.ALLOW)
    for minute in range(1, 6):
        schedule = decided(schedule, BEGIN + minute * MINUTE, Runs())

    assert minutes(schedule) == [1, 2, 3]
    assert [(one.reason, one.count) for one in schedule.missed] == [
        ("overlap: 3 waited already", 2)
    ]


@given(
    overlap=st.sampled_from(Overlap),
    catch_up=st.sampled_from(CatchUp),
    most=st.integers(1, 5),
    steps=st.lists(
        st.tuples(st.integers(0, 900), st.booleans(), st.booleans()), min_size=1, max_size=25
    ),
)
def test_every_occurrence_fires_waits_or_is_missed_and_only_once(
    overlap: Overlap, catch_up: CatchUp, most: int, steps: list[tuple[int, bool, bool]]
) -> None:
    """Whatever the pace of the deciders, the ends of runs, and pauses: nothing is silent."""
    schedule = a_schedule(overlap=overlap, catch_up=catch_up, catch_up_max=most, queue_max=most)
    runs, now, fired = Runs(), BEGIN, []
    for seconds, is_ending, is_enabled in steps:
        now += timedelta(seconds=seconds)
        schedule = switched(schedule, is_enabled=is_enabled, reason="")
        if is_ending and schedule.firings:
            schedule = freed(schedule, schedule.firings[0].run)
        before = set(schedule.firings)
        schedule = decided(schedule, now, runs)
        fired += [firing.nominal_at for firing in schedule.firings if firing not in before]
        if overlap is not Overlap.ALLOW:
            assert len(schedule.firings) <= 1
    due = list(takewhile(lambda instant: instant <= now, schedule.timetable.after(BEGIN)))

    missed = sum(record.count for record in schedule.missed)
    assert schedule.fired_count == len(fired) == len(set(fired))
    assert schedule.missed_count == missed
    assert len(fired) + missed + len(schedule.waiting) == len(due)
    assert set(fired) | set(schedule.waiting) <= set(due)
