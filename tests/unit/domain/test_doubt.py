"""Which doubts a run leaves at its zone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from region_scheduler.domain.doubt import StateMark, doubts_after
from region_scheduler.domain.run import Zone, zone_freed, zone_taken
from region_scheduler.domain.states import TaskState
from tests.contract.graph.samples import a_zone

S = TaskState


def mark(key: str = "k", state: TaskState = S.DONE, **more: Any) -> StateMark:
    given: dict[str, Any] = {"reason": "", "is_inspect": False, "has_verdict": False}
    return StateMark(key, state, **{**given, **more})


@pytest.mark.parametrize(
    ("left", "before", "after"),
    [
        ([mark(state=S.CANCELLED, is_inspect=True)], (), ("k",)),
        ([mark(state=S.FAILED, is_inspect=True)], ("k",), ("k",)),
        ([mark()], ("k",), ()),
        ([mark(state=S.SKIPPED, reason="unchanged")], ("k",), ()),
        ([mark(state=S.SKIPPED, reason="condition")], ("k",), ("k",)),
        ([mark(state=S.CANCELLED)], ("k",), ("k",)),
        ([mark(state=S.PENDING)], ("k",), ("k",)),
        ([mark(state=S.FAILED, has_verdict=True)], ("k",), ()),
        ([mark(state=S.FAILED, has_verdict=True, is_inspect=True)], (), ("k",)),
        ([mark("other")], ("k",), ("k",)),
        ([mark("b", S.CANCELLED, is_inspect=True)], ("c", "a"), ("a", "b", "c")),
        ([], (), ()),
    ],
)
def test_a_doubt_stays_until_somebody_looked(
    left: list[StateMark], before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    assert doubts_after(before, left) == after


def test_the_write_that_frees_a_zone_keeps_what_is_in_doubt() -> None:
    zone: Zone = zone_taken(a_zone(doubts=("old",)), "run1", 1)
    freed = zone_freed(zone, "run1", 1, [mark("k", S.CANCELLED, is_inspect=True), mark("old")])

    assert (freed.active_run, freed.doubts) == ("", ("k",))
    assert zone_freed(zone, "run2", 1, [mark("x", is_inspect=True)]) is zone
    assert zone_freed(replace(zone, active_round=2), "run1", 1).doubts == ("old",)
