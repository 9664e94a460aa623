"""A demo that does not show what it is to show says so, figure by figure."""

from __future__ import annotations

from typing import Any

import pytest

from region_scheduler.local.demo.drill import Seen
from region_scheduler.local.demo.report import report_lines, unmet

FOUND: dict[str, Any] = {
    "regions": ["a", "b", "c"],
    "runs": 2,
    "tasks": 9,
    "done": 9,
    "terraform": "terraform",
    "terraform_applies": 3,
    "attempts": 11,
    "conflicts": {"claims": 0, "assignments": 4, "requeued": 5},
    "fenced_writes": 1,
    "failover": {"region": "a", "detected_s": 6.1, "recovered_s": 8.2, "moved": 3, "waited": 2},
    "cut_off": {"region": "b", "stopped_s": 3.5, "taken_over_s": 7.25, "returned_s": 20.0},
    "invariants": {"checked": 6, "violations": 0},
    "workers": {"a": 1, "b": 1, "c": 1},
    "misrouted": 0,
    "order_violations": 0,
    "overlaps": 0,
    "done_twice": 0,
    "strays": 0,
    "capacity_overruns": 0,
    "first_step_s": 1.0,
    "seconds_to_up": 5.0,
    "seconds": 60.0,
}


def test_nothing_is_missing_where_all_was_seen() -> None:
    assert unmet(FOUND, Seen(), is_done=True) == []


@pytest.mark.parametrize(
    ("different", "told"),
    [
        ({"done": 8}, "every task is done: 8 of 9 are"),
        ({"invariants": {"checked": 6, "violations": 2}}, "no invariant is violated: 2 violations"),
        (
            {"conflicts": FOUND["conflicts"] | {"assignments": 0}},
            "contention is seen: 0 assignments",
        ),
        ({"conflicts": FOUND["conflicts"] | {"requeued": 0}}, "contention is seen: 0 requeued"),
        ({"overlaps": 2}, "by the steps' own log nothing is wrong: 2 overlaps"),
        ({"done_twice": 1}, "by the steps' own log nothing is wrong: 1 done twice"),
        ({"fenced_writes": 0}, "a late write is refused: none was"),
        ({"failover": FOUND["failover"] | {"moved": 0}}, "tasks of a have moved: 0 have"),
        ({"failover": FOUND["failover"] | {"waited": 0}}, "tasks of a have waited: 0 have"),
        (
            {"cut_off": FOUND["cut_off"] | {"taken_over_s": 3.5}},
            "the steps in b stop before others begin them",
        ),
    ],
)
def test_each_figure_that_is_not_met_is_named(different: dict[str, Any], told: str) -> None:
    found = FOUND | different

    assert unmet(found, Seen(), is_done=True) == [told]
    assert f"NOT met: {told}" in list(report_lines(found | {"unmet": [told], "ok": False}))


def test_what_was_not_seen_in_time_is_named() -> None:
    found = FOUND | {"failover": None, "cut_off": None}

    assert unmet(found, Seen(problem="a is given up"), is_done=True) == ["a is given up"]


def test_without_faults_only_what_is_always_shown_is_asked_for() -> None:
    found = FOUND | {"failover": None, "cut_off": None, "fenced_writes": 0}

    assert unmet(found, None, is_done=True) == []
    assert unmet(found, None, is_done=False) == ["every task is done: 9 of 9 are"]


def test_the_lines_tell_what_was_lost_and_what_was_cut_off() -> None:
    lines = list(report_lines(FOUND | {"unmet": [], "ok": True}))

    assert any("given up after 6.1 s" in line and "2 waited" in line for line in lines)
    assert any("stopped after 3.5 s" in line and "after 7.25 s" in line for line in lines)
    assert lines[-1].endswith("60 s in all: ok")
    assert not any("was killed" in line for line in report_lines(FOUND | QUIET))


QUIET: dict[str, Any] = {"failover": None, "cut_off": None, "unmet": [], "ok": True}
