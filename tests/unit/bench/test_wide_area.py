"""What distance costs: the leader is asked so often, one after the other, and no more."""

from __future__ import annotations

import pytest

from region_scheduler.bench.wide_area import leader_calls, measure, travel

WAY = [
    "tasks.unlocked_by",
    "tasks.write",
    "regions.standing",
    "tasks.known",
    "tasks.write",
    "tasks.write",
]
"""Settle: who is unlocked, unlock. Promote: how the region stands, the task, claim. Start."""


@pytest.mark.parametrize("locks", [0, 1, 2])
def test_from_a_completion_to_the_start_behind_it(locks: int) -> None:
    """The design wants 4; these are 6, and one more for each lock. It may fall, and not rise."""
    expected = [*WAY[:5], *["slots.write"] * locks, *WAY[5:]]

    assert travel(0.0, locks).trips == expected


def test_what_a_follower_answers_is_not_counted() -> None:
    calls = leader_calls()

    assert {"tasks.write", "tasks.known", "regions.standing"} <= calls
    assert calls.isdisjoint({"tasks.marks_claimable", "slots.of_resources", "wake_ups.wake"})


def test_the_figures_say_that_the_target_is_missed() -> None:
    figures = measure([0])

    assert [(f.value, f.target, f.is_met) for f in figures if f.unit == "calls"] == [
        (6, 4, False),
        (7, 5, False),
    ]
