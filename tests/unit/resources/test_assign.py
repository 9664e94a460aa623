"""A task gets all its slots or none, and no unit has two holders, whoever else is at it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from region_scheduler.commit.create import create
from region_scheduler.commit.gate import Change, commit
from region_scheduler.domain.ids import slot_key
from region_scheduler.domain.slot import Slot, SlotHolder, assign, release
from region_scheduler.domain.task import LockNeed, Task
from region_scheduler.ports.documents import WriteResult, Written
from region_scheduler.ports.records import SlotStore
from region_scheduler.resources.assign import Assignment, assign_slots, slots_of, units_wanted
from tests.unit.resources.slots import Watched, assigned, got, held, new_store, wanting

NAMES = ("lock-a", "lock-b", "lock-c", "lock-d")
ORDERED = sorted(NAMES, key=lambda name: slot_key(name, 0))


def test_units_are_wanted_in_the_order_of_their_keys() -> None:
    task = wanting("t", *reversed(ORDERED[1:]), LockNeed(ORDERED[0], capacity=3, units=2))

    assert [need.resource for need in units_wanted(task)] == [ORDERED[0], *ORDERED]


def test_slots_are_taken_one_after_the_other_in_key_order(store: SlotStore) -> None:
    watched = Watched(store)
    assigned(watched, wanting("t", *reversed(NAMES)))

    assert watched.writes == [[slot_key(name, 0)] for name in ORDERED]


def test_the_kth_slot_of_a_whole_batch_is_taken_in_one_call(store: SlotStore) -> None:
    tasks = [wanting(f"t{i}", f"own-{i}", f"other-{i}") for i in range(5)]
    watched = Watched(store)
    assignments = assigned(watched, *tasks)

    assert got(assignments) == {f"t{i}": 2 for i in range(5)}
    assert [len(call) for call in watched.writes] == [5, 5]


def test_of_a_batch_one_wins_a_lock_that_was_never_seen(store: SlotStore) -> None:
    assignments = assigned(store, *(wanting(f"t{i}", "lock") for i in range(4)))

    (winner,) = got(assignments)
    assert held(store) == {"lock.0": f"{winner}-1"}
    for assignment in assignments:
        if assignment.lost:
            assert assignment.winner == wanting(winner, "lock").id


def test_a_loser_lets_go_of_the_others_in_reverse(store: SlotStore) -> None:
    first, second, third = ORDERED[:3]
    assigned(store, wanting("owner", third))
    watched = Watched(store)
    (lost,) = assigned(watched, wanting("t", first, second, third))

    assert (lost.lost, lost.slots) == (third, ())
    assert watched.writes[-1] == [slot_key(second, 0), slot_key(first, 0)]
    assert held(store) == {f"{third}.0": "owner-1"}


@pytest.mark.parametrize(
    ("capacity", "units", "winners"), [(3, 1, 3), (3, 2, 1), (4, 2, 2), (5, 5, 1), (1, 1, 1)]
)
def test_a_semaphore_gives_as_many_units_as_it_has(
    store: SlotStore, capacity: int, units: int, winners: int
) -> None:
    need = LockNeed("pool", capacity=capacity, units=units)
    waiting = [wanting(f"t{i}", need) for i in range(5)]
    done: dict[str, int] = {}
    for _ in range(5):  # losers let go and try again, as the backlog makes them
        done |= got(assigned(store, *(t for t in waiting if t.spec.name not in done)))

    assert len(done) == winners
    assert set(done.values()) == {units}
    assert Counter(held(store).values()) == dict.fromkeys((f"{t}-1" for t in done), units)


def test_a_busy_unit_of_the_view_is_passed_by(store: SlotStore) -> None:
    need = LockNeed("pool", capacity=2)
    view = slots_of(store, [need])
    assigned(store, wanting("owner", need))

    (assignment,) = assign_slots(store, [wanting("t", need)], view)

    assert len(assignment.slots) == 1


def test_an_old_view_does_not_keep_a_lock_from_its_taker(store: SlotStore) -> None:
    owner = wanting("owner", "lock")
    assigned(store, owner)
    view = slots_of(store, owner.spec.locks)
    free(store, owner)

    tasks = [wanting("t1", "lock"), wanting("t2", "lock")]
    assignments = assign_slots(store, tasks, view)

    assert len(got(assignments)) == 1


def test_a_task_takes_over_from_its_own_older_claim(store: SlotStore) -> None:
    assigned(store, wanting("t", "lock"))

    assert got(assigned(store, wanting("t", "lock", number=3))) == {"t": 1}
    assert held(store) == {"lock.0": "t-3"}
    assert got(assigned(store, wanting("t", "lock", number=2))) == {}


def test_more_units_than_there_are_are_never_got(store: SlotStore) -> None:
    (lost,) = assigned(store, wanting("t", LockNeed("lock", capacity=1, units=2)))

    assert (lost.lost, lost.winner) == ("lock", "nobody: it has too few units")
    assert held(store) == {}


def test_slots_that_were_made_in_part_are_made_to_the_end(store: SlotStore) -> None:
    need = LockNeed("pool", capacity=4)
    create(store, [Slot(id=slot_key("pool", 3), resource="pool", unit=3)])

    found = slots_of(store, [need])["pool"]

    assert sorted(slot.unit for slot in found) == [0, 1, 2, 3]
    assert sorted(s.unit for s in store.of_resources(["pool"])) == [0, 1, 2, 3]


def test_the_first_unit_is_made_last(store: SlotStore) -> None:
    inserted: list[list[int]] = []

    class Telling(Watched):
        def insert(self, values: Sequence[Slot]) -> Any:
            inserted.append([slot.unit for slot in values])
            return self.inner.insert(values)

    slots_of(Telling(store), [LockNeed("pool", capacity=3)])

    assert inserted == [[1, 2], [0]]


def test_an_existing_resource_keeps_its_units_whatever_a_need_says(store: SlotStore) -> None:
    slots_of(store, [LockNeed("pool", capacity=2)])

    assert len(slots_of(store, [LockNeed("pool", capacity=9)])["pool"]) == 2


@pytest.mark.parametrize(("slots_lost", "is_reserved"), [(0, False), (3, False), (4, True)])
def test_a_task_that_lost_too_often_reserves(
    store: SlotStore, slots_lost: int, is_reserved: bool
) -> None:
    assigned(store, wanting("owner", "lock"))
    assigned(store, wanting("t", "lock", slots_lost=slots_lost))

    (slot,) = store.of_resources(["lock"])
    assert (slot.reservation is not None) is is_reserved


def test_the_next_release_honours_a_reservation_and_taking_uses_it_up(store: SlotStore) -> None:
    owner = wanting("owner", "lock")
    assigned(store, owner)
    patient = wanting("patient", "lock", slots_lost=4)
    assigned(store, patient)
    free(store, owner)

    (other,) = assigned(store, wanting("other", "lock"))
    assert (other.lost, other.winner) == ("lock", patient.id)
    assert got(assigned(store, replace(patient))) == {"patient": 1}
    (slot,) = store.of_resources(["lock"])
    assert slot.reservation is None


def test_a_store_that_does_not_answer_has_no_winner_and_no_reservation(store: SlotStore) -> None:
    slots_of(store, [LockNeed("lock")])

    def unknown(answers: Sequence[Any]) -> list[Written[Slot]]:
        return [Written(WriteResult.UNKNOWN)] * len(answers)

    task = wanting("t", "lock", slots_lost=9)
    (lost,) = assigned(Watched(store, luck=unknown), task)

    assert (lost.lost, lost.winner) == ("lock", "")
    (slot,) = store.of_resources(["lock"])
    assert slot.reservation is None


def free(store: SlotStore, task: Task) -> None:
    holder = SlotHolder(task.id, task.token)
    changes = [Change(slot.id, lambda s: release(s, holder)) for slot in store.held_by([task.id])]
    commit(store, changes)


NEEDS = {
    "lock-a": LockNeed("lock-a"),
    "lock-b": LockNeed("lock-b"),
    "pool": LockNeed("pool", capacity=3),
    "pair": LockNeed("pool", capacity=3, units=2),
}
BATCHES = st.lists(
    st.lists(
        st.sets(st.sampled_from(sorted(NEEDS)), min_size=1).filter(
            lambda s: len(s & {"pool", "pair"}) < 2
        ),
        min_size=1,
        max_size=3,
    ),
    min_size=1,
    max_size=2,
)


@settings(max_examples=60, deadline=None)
@given(BATCHES, BATCHES, st.lists(st.booleans(), max_size=60))
def test_two_schedulers_never_give_a_unit_twice(
    mine: list[list[set[str]]], theirs: list[list[set[str]]], turns: list[bool]
) -> None:
    """The other acts between any two calls of the first; each finishes some tasks on its way."""
    store = new_store()
    results: list[Assignment] = []
    is_turn = iter(turns)
    acts: list[Callable[[], None]] = []

    def batch(who: str, n: int, wants: list[set[str]], through: SlotStore) -> Callable[[], None]:
        tasks = [
            wanting(f"{who}{n}-{i}", *(NEEDS[name] for name in sorted(names)))
            for i, names in enumerate(wants)
        ]

        def act() -> None:
            for assignment in assigned(through, *tasks, view=store):
                check_units(store, assignment)
                results.append(assignment)

        return act

    def interfere() -> None:
        is_now = next(is_turn, False)
        if is_now and acts:
            acts.pop(0)()

    watched = Watched(store, before=interfere)
    acts += [batch("b", n, wants, store) for n, wants in enumerate(theirs)]
    for n, wants in enumerate(mine):
        batch("a", n, wants, watched)()
    while acts:
        acts.pop(0)()

    wins = [a for a in results if not a.lost]
    units = [slot.id for assignment in wins for slot in assignment.slots]
    assert len(units) == len(set(units))
    assert len(wins) >= 1, "of contending tasks one always gets all"
    holders = Counter(held(store).values())
    assert holders == {str(a.task.token.claim_id): len(a.slots) for a in wins}
    assert len(store.of_resources(["pool"])) in {0, 3}


def check_units(store: SlotStore, assignment: Assignment) -> None:
    if assignment.lost:
        return
    wanted = Counter(need.resource for need in units_wanted(assignment.task))
    assert Counter(slot.resource for slot in assignment.slots) == wanted
    holder = SlotHolder(assignment.task.id, assignment.task.token)
    standing = store.read([slot.id for slot in assignment.slots])
    assert all(slot is not None and slot.holder == holder for slot in standing)


def test_a_slot_in_the_hands_of_another_is_never_taken_by_view_alone(store: SlotStore) -> None:
    """The view says free, the leader says held: the leader counts."""
    need = LockNeed("lock")
    view = slots_of(store, [need])
    owner = wanting("owner", need)
    commit(store, [Change(slot_key("lock", 0), lambda s: assign(s, owner.id, owner.token))])

    (lost,) = assign_slots(store, [wanting("t", need)], view)

    assert (lost.lost, lost.winner) == ("lock", owner.id)
