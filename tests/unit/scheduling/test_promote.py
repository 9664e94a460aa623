"""What is promoted next: arithmetic on views that may be old."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.domain.ids import ClaimId, Incarnation, RunId, TaskId, slot_key
from region_scheduler.domain.instance import Instance, Role
from region_scheduler.domain.slot import Reservation, Slot, SlotHolder
from region_scheduler.domain.task import Token
from region_scheduler.ports.backlog import BacklogRow
from region_scheduler.scheduling.promote import pick, promotable, waits_for
from tests.unit.domain.samples import AT


def row(name: str, *locks: str) -> BacklogRow:
    return BacklogRow(
        task=TaskId(f"tasks/{name}"),
        run=RunId("run1"),
        tenant="acme",
        pool="default",
        seq=1,
        priority=0,
        delay_tolerance_s=0.0,
        remaining_s=0.0,
        locks=locks,
    )


def units(resource: str, *marks: str) -> list[Slot]:
    """Return a unit for each mark: `.` free, `-` retiring, `=x` held and `~x` reserved by x."""
    return [_unit(resource, n, mark) for n, mark in enumerate(marks)]


def _unit(resource: str, number: int, mark: str) -> Slot:
    slot = Slot(id=slot_key(resource, number), resource=resource, unit=number)
    kind, owner = mark[:1], TaskId(f"tasks/{mark[1:]}")
    match kind:
        case "=":
            return replace(slot, holder=SlotHolder(owner, Token(1, ClaimId("c"))))
        case "~":
            return replace(slot, reservation=Reservation(owner, 1, ""))
        case "-":
            return replace(slot, is_retiring=True)
        case _:
            return slot


def names(rows: list[BacklogRow]) -> str:
    return " ".join(r.task.removeprefix("tasks/") for r in rows)


@pytest.mark.parametrize(
    ("marks", "count", "picked"),
    [
        (["."], 9, "a free"),
        (["=other"], 9, "free"),
        (["=a"], 9, "a free"),  # its own older claim gives way
        (["=b"], 9, "b free"),
        (["~other"], 9, "free"),
        (["~b"], 9, "b free"),
        (["-"], 9, "free"),
        ([".", "."], 9, "a b free"),
        ([".", "~c"], 9, "a c free"),
        ([".", "."], 1, "a"),
        ([".", "."], 0, ""),
        (["=other", "."], 2, "a free"),
    ],
)
def test_each_unit_goes_to_one_taker_and_small_tasks_pass(
    marks: list[str], count: int, picked: str
) -> None:
    rows = [row("a", "lock"), row("b", "lock"), row("c", "lock"), row("free")]

    assert names(pick(rows, {"lock": units("lock", *marks)}, count)) == picked


def test_a_lock_that_was_never_seen_keeps_nobody_back() -> None:
    assert names(pick([row("a", "new"), row("b", "new")], {}, 9)) == "a b"


@pytest.mark.parametrize(
    ("marks", "picked"), [([".", "."], "two"), ([".", "=x"], "one"), ([".", ".", "."], "two one")]
)
def test_a_row_needs_all_its_units(marks: list[str], picked: str) -> None:
    rows = [row("two", "pool", "pool"), row("one", "pool")]

    assert names(pick(rows, {"pool": units("pool", *marks)}, 9)) == picked


@given(
    st.lists(st.lists(st.sampled_from(["x", "y", "z"]), max_size=3), max_size=12),
    st.dictionaries(
        st.sampled_from(["x", "y", "z"]),
        st.lists(st.sampled_from([".", "=other", "~other", "-"]), min_size=1, max_size=4),
    ),
    st.integers(0, 6),
)
def test_no_more_is_picked_than_the_view_has_free(
    locks: list[list[str]], marks: dict[str, list[str]], count: int
) -> None:
    rows = [row(str(n), *wanted) for n, wanted in enumerate(locks)]
    slots = {name: units(name, *m) for name, m in marks.items()}
    picked = pick(rows, slots, count)

    assert len(picked) <= count
    assert [r for r in rows if r in picked] == picked, "the order stays"
    taken = Counter(name for r in picked for name in r.locks)
    assert all(n <= marks[name].count(".") for name, n in taken.items() if name in marks)
    if len(picked) < count:  # nobody whose locks are free was left out for no reason
        left = [r for r in rows if r not in picked]
        assert all(
            any(
                name in marks and taken[name] + n > marks[name].count(".")
                for name, n in Counter(r.locks).items()
            )
            for r in left
        )


@pytest.mark.parametrize(
    ("marks", "waits"), [(["."], ""), (["=other"], "lock"), (["=a"], ""), (["~other"], "lock")]
)
def test_why_a_row_waits(marks: list[str], waits: str) -> None:
    assert waits_for(row("a", "lock"), {"lock": units("lock", *marks)}) == waits
    assert waits_for(row("a", "unseen"), {}) == ""


@pytest.mark.parametrize(
    ("capacities", "look_ahead", "in_flight", "k"),
    [
        ([], 1, 0, 0),
        ([4], 1, 0, 8),
        ([4], 0, 0, 4),
        ([4, 2], 1, 5, 7),
        ([4], 1, 8, 0),
        ([4], 1, 99, 0),
    ],
)
def test_how_many_may_be_promoted(
    capacities: list[int], look_ahead: int, in_flight: int, k: int
) -> None:
    workers = [
        Instance(
            id=Incarnation(f"w:{n}"),
            roles=(Role.WORKER,),
            region="eu",
            ttl_s=4.0,
            capacity={"default": capacity},
            stamped_at=AT,
        )
        for n, capacity in enumerate(capacities)
    ]

    assert promotable(workers, look_ahead, in_flight) == k
