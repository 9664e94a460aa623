"""What is promoted next: arithmetic on views that may be old."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.domain.ids import ClaimId, Incarnation, RunId, TaskId, slot_key
from region_scheduler.domain.instance import Instance, Role
from region_scheduler.domain.slot import Reservation, Slot, SlotHolder
from region_scheduler.domain.task import Token
from region_scheduler.domain.tenant import LEVEL_DEFAULT, Level
from region_scheduler.ports.backlog import BacklogRow
from region_scheduler.scheduling.promote import Claimant, Room, pick, promotable, shares
from tests.unit.domain.samples import AT

ALONE = {"acme": Claimant(LEVEL_DEFAULT)}


def room(count: int, **more: int) -> Room:
    return Room(count, {"default": count, **more})


def row(name: str, *locks: str, tenant: str = "acme", pool: str = "default") -> BacklogRow:
    return BacklogRow(
        task=TaskId(f"tasks/{name}"),
        run=RunId("run1"),
        tenant=tenant,
        pool=pool,
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


def names(rows: Sequence[BacklogRow]) -> str:
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

    assert names(pick(rows, {"lock": units("lock", *marks)}, room(count), ALONE).rows) == picked


def test_who_takes_a_lock_that_a_better_row_waits_for_is_counted() -> None:
    rows = [row("big", "a", "b"), row("x", "a"), row("y", "c"), row("z", "a")]
    slots = {"a": units("a", ".", "."), "b": units("b", "=other"), "c": units("c", ".")}

    picked = pick(rows, slots, room(9), ALONE)

    assert names(picked.rows) == "x y z"
    assert picked.passed == {"tasks/big": 2}
    assert pick(rows[:1], slots, room(9), ALONE).passed == {}


def test_an_insistent_row_is_tried_in_its_turn_though_a_lock_looks_taken() -> None:
    rows = [row("first", "c"), row("big", "a", "b"), row("x", "a")]
    slots = {"a": units("a", "."), "b": units("b", "=other"), "c": units("c", ".")}

    picked = pick(rows, slots, room(9), ALONE, insistent=TaskId("tasks/big"))

    assert names(picked.rows) == "first big"
    assert names(pick(rows, slots, room(0), ALONE, insistent=TaskId("tasks/big")).rows) == ""


def test_a_lock_that_was_never_seen_keeps_nobody_back() -> None:
    assert names(pick([row("a", "new"), row("b", "new")], {}, room(9), ALONE).rows) == "a b"


@pytest.mark.parametrize(
    ("marks", "picked"), [([".", "."], "two"), ([".", "=x"], "one"), ([".", ".", "."], "two one")]
)
def test_a_row_needs_all_its_units(marks: list[str], picked: str) -> None:
    rows = [row("two", "pool", "pool"), row("one", "pool")]

    assert names(pick(rows, {"pool": units("pool", *marks)}, room(9), ALONE).rows) == picked


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
    found = pick(rows, slots, room(count), ALONE)
    picked = list(found.rows)

    assert len(picked) <= count
    assert [r for r in rows if r in picked] == picked, "the order stays"
    taken = Counter(name for r in picked for name in r.locks)
    assert all(n <= marks[name].count(".") for name, n in taken.items() if name in marks)
    assert found.short == (ALONE.keys() if len(picked) < count else set())
    if len(picked) < count:  # nobody whose locks are free was left out for no reason
        left = [r for r in rows if r not in picked]
        assert all(
            any(
                name in marks and taken[name] + n > marks[name].count(".")
                for name, n in Counter(r.locks).items()
            )
            for r in left
        )


def level(weight: float = 1.0, floor: int = 0, in_flight_max: int | None = None) -> Level:
    return Level("some", weight, floor, in_flight_max)


@pytest.mark.parametrize(
    ("claimants", "count", "given"),
    [
        ({"a": Claimant(level())}, 5, {"a": 5}),
        ({"a": Claimant(level(3)), "b": Claimant(level(1))}, 8, {"a": 6, "b": 2}),
        ({"a": Claimant(level(3)), "b": Claimant(level(1))}, 0, {"a": 0, "b": 0}),
        # What is in flight counts: who has more than its share waits until the others have theirs.
        ({"a": Claimant(level(1), 4), "b": Claimant(level(1))}, 6, {"a": 1, "b": 5}),
        # The floor comes before any weight.
        ({"a": Claimant(level(1000)), "b": Claimant(level(1, floor=2))}, 3, {"a": 1, "b": 2}),
        ({"a": Claimant(level(1000)), "b": Claimant(level(1, floor=2), 2)}, 3, {"a": 3, "b": 0}),
        # A bound leaves the rest to others, or unused.
        ({"a": Claimant(level(9, in_flight_max=2)), "b": Claimant(level(1))}, 6, {"a": 2, "b": 4}),
        ({"a": Claimant(level(in_flight_max=5), 4)}, 6, {"a": 1}),
        ({"a": Claimant(level(in_flight_max=5), 7)}, 6, {"a": 0}),
    ],
)
def test_capacity_is_shared_by_weight_after_the_floors_and_within_the_bounds(
    claimants: dict[str, Claimant], count: int, given: dict[str, int]
) -> None:
    assert shares(claimants, count) == given


def test_tenants_take_turns_and_one_that_has_too_little_leaves_its_share_to_the_others() -> None:
    claimants = {"a": Claimant(level()), "b": Claimant(level()), "c": Claimant(level())}
    rows = [
        row(f"{t}{n}", tenant=t) for t, many in (("a", 9), ("b", 1), ("c", 3)) for n in range(many)
    ]

    found = pick(rows, {}, room(9), claimants)

    assert names(found.rows) == "a0 b0 c0 a1 c1 a2 c2 a3 a4"
    assert found.short == {"b", "c"}


def test_a_tenant_whose_rows_all_wait_for_locks_is_said_to_be_short() -> None:
    claimants = {"a": Claimant(level()), "b": Claimant(level())}
    rows = [row("a0", "lock", tenant="a"), row("b0", tenant="b"), row("b1", tenant="b")]

    found = pick(rows, {"lock": units("lock", "=other")}, room(2), claimants)

    assert names(found.rows) == "b0 b1"
    assert found.short == {"a"}


@given(
    st.dictionaries(
        st.sampled_from("abcdef"),
        st.tuples(
            st.floats(0.1, 100), st.integers(0, 4), st.none() | st.integers(0, 9), st.integers(0, 9)
        ),
    ),
    st.integers(0, 40),
)
def test_no_share_passes_a_bound_or_starves_a_floor(
    drawn: dict[str, tuple[float, int, int | None, int]], count: int
) -> None:
    claimants = {t: Claimant(level(w, f, m), n) for t, (w, f, m, n) in drawn.items()}
    given_ = shares(claimants, count)

    open_ = {t: c.may_have(count) for t, c in claimants.items()}
    assert all(0 <= given_[t] <= most for t, most in open_.items())
    assert sum(given_.values()) == min(count, sum(open_.values()))
    below = [t for t, c in claimants.items() if c.in_flight + given_[t] < c.level.floor]
    above = [
        t for t, c in claimants.items() if given_[t] and c.in_flight + given_[t] > c.level.floor
    ]
    assert not above or all(given_[t] == open_[t] for t in below)
    rows = [row(f"{t}{n}", tenant=t) for t in claimants for n in range(count)]
    picked = Counter(r.tenant for r in pick(rows, {}, room(count), claimants).rows)
    assert all(picked[t] == given_[t] for t in claimants)


def test_a_full_pool_keeps_nobody_of_another_pool_back() -> None:
    rows = [row("b1", pool="big"), row("b2", pool="big"), row("gone", pool="gone"), row("a")]

    found = pick(rows, {}, room(9, big=1), ALONE)

    assert names(found.rows) == "b1 a"
    assert found.pools == {"default"}
    assert found.short == {"acme"}


@pytest.mark.parametrize(
    ("capacities", "look_ahead", "in_flight", "total", "by_pool"),
    [
        ([], 1, {}, 0, {}),
        ([], 1, {"default": 3}, 0, {}),
        ([{"default": 4}], 1, {}, 8, {"default": 8}),
        ([{"default": 4}], 0, {}, 4, {"default": 4}),
        ([{"default": 4}, {"default": 2}], 1, {"default": 5}, 7, {"default": 7}),
        ([{"default": 4}], 1, {"default": 8}, 0, {"default": 0}),
        ([{"default": 4}], 1, {"default": 99}, 0, {"default": 0}),
        ([{"default": 4}, {"big": 1}], 1, {"default": 8}, 2, {"default": 0, "big": 2}),
        # What waits for a pool that nobody serves takes no room from the others.
        ([{"default": 4}], 1, {"gone": 99}, 8, {"default": 8}),
        # A worker of two pools still runs no more than it can.
        ([{"default": 4, "big": 4}], 1, {"default": 6}, 2, {"default": 2, "big": 8}),
    ],
)
def test_how_many_may_be_promoted_in_all_and_by_pool(
    capacities: list[dict[str, int]],
    look_ahead: int,
    in_flight: dict[str, int],
    total: int,
    by_pool: dict[str, int],
) -> None:
    workers = [
        Instance(
            id=Incarnation(f"w:{n}"),
            roles=(Role.WORKER,),
            region="eu",
            ttl_s=4.0,
            capacity=capacity,
            stamped_at=AT,
        )
        for n, capacity in enumerate(capacities)
    ]

    assert promotable(workers, look_ahead, in_flight) == Room(total, by_pool)
