"""How long things are kept, and what is refused as a bound."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from region_scheduler.domain.instance import Fence, FenceKind, Instance
from region_scheduler.domain.retention import (
    FOR_EVER,
    RecordKind,
    Retention,
    ended_long_ago,
)
from tests.contract.graph.samples import an_instance
from tests.unit.domain.samples import AT

DAY = timedelta(days=1)


def test_an_age_and_a_count_of_nothing_are_no_bounds() -> None:
    kept = Retention(runs_days=0, runs_max=0, conflicts_days=3, conflicts_max=7)

    assert kept.before(RecordKind.RUNS, AT) == FOR_EVER
    assert kept.most(RecordKind.RUNS) > 10**8
    assert kept.before(RecordKind.CONFLICTS, AT) == AT - 3 * DAY
    assert kept.most(RecordKind.CONFLICTS) == 7
    assert kept.told(RecordKind.CONFLICTS) == "older than 3 days or beyond the newest 7"
    assert kept.told(RecordKind.RUNS) == kept.told(RecordKind.AUDIT) == "kept for ever"
    assert kept.told(RecordKind.ADMISSIONS) == "older than 90 days"


@pytest.mark.parametrize(
    "value", [{"runs_days": -1}, {"runs_days": 1.5}, {"audit_max": -1}, {"every_s": 0}]
)
def test_what_is_no_bound_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(value))):
        Retention(**value)


def ended(id_: str, day: int) -> Instance:
    fence = Fence(kind=FenceKind.EXPIRED, by="x", at=AT + day * DAY)
    return an_instance(id_, fenced=fence)


def test_ended_instances_go_oldest_first_unless_they_are_named() -> None:
    all_ = [ended(f"i{day}", day) for day in (3, 1, 2)] + [an_instance("alive")]

    assert [i.id for i in ended_long_ago(all_, AT + 2.5 * DAY, 99, [])] == ["i1", "i2"]
    assert [i.id for i in ended_long_ago(all_, AT, 1, [])] == ["i1", "i2"]
    assert [i.id for i in ended_long_ago(all_, AT + 9 * DAY, 99, ["i1", "i3"])] == ["i2"]
