"""The commit gate: what it makes of every way in which a write can go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.commit.gate import Change, Fate, Outcome, commit, commit_one
from region_scheduler.errors import (
    Fenced,
    IllegalMove,
    LostRace,
    NotFound,
    OutcomeUnknown,
    RegionSchedulerError,
    Unavailable,
)
from tests.unit.commit.weak_store import Counter, Luck, WeakStore


def signed_by(writer: str) -> Callable[[Counter], Counter]:
    """Sign once: a repeat finds its own signature."""

    def decide(value: Counter) -> Counter:
        if writer in value.writers:
            return value
        return replace(value, writers=(*value.writers, writer))

    return decide


def sign(store: WeakStore, writer: str = "me", known: Counter | None = None) -> Outcome[Counter]:
    (outcome,) = commit(store, [Change("d1", signed_by(writer), known)])
    return outcome


def refusing(error: RegionSchedulerError) -> Callable[[Counter], Counter]:
    def decide(value: Counter) -> Counter:
        raise error

    return decide


def test_a_change_is_read_decided_and_written() -> None:
    store = WeakStore.with_luck([])
    outcome = sign(store)

    assert outcome.fate is Fate.COMMITTED
    assert outcome.value == store.documents["d1"]
    assert store.documents["d1"].writers == ("me",)
    assert (store.reads, store.writes) == (1, 1)


def test_a_known_value_saves_the_read() -> None:
    store = WeakStore.with_luck([])

    assert sign(store, known=store.documents["d1"]).fate is Fate.COMMITTED
    assert (store.reads, store.writes) == (0, 1)


def test_a_stale_known_value_costs_a_round_and_loses_nothing() -> None:
    store = WeakStore.with_luck([])
    stale = store.documents["d1"]
    store.put(replace(stale, writers=("other",)))

    assert sign(store, known=stale).fate is Fate.COMMITTED
    assert store.documents["d1"].writers == ("other", "me")
    assert (store.reads, store.writes) == (1, 2)


def test_nothing_to_do_writes_nothing() -> None:
    store = WeakStore.with_luck([])
    sign(store)
    outcome = sign(store)

    assert outcome.fate is Fate.UNCHANGED
    assert outcome.is_ours
    assert store.writes == 1


@pytest.mark.parametrize(
    "error",
    [
        LostRace(thing="task", winner="other"),
        Fenced(held="1", current="2"),
        IllegalMove(thing="task", current="done", target="running"),
    ],
    ids=lambda error: error.code,
)
def test_a_refusing_decision_writes_nothing(error: RegionSchedulerError) -> None:
    store = WeakStore.with_luck([])
    (outcome,) = commit(store, [Change("d1", refusing(error))])

    assert (outcome.fate, outcome.error) == (Fate.REFUSED, error)
    assert outcome.value == store.documents["d1"]
    assert store.writes == 0


def test_a_missing_document_is_not_found() -> None:
    (outcome,) = commit(WeakStore.with_luck([], ids=[]), [Change("d1", signed_by("me"))])

    assert outcome.fate is Fate.REFUSED
    assert isinstance(outcome.error, NotFound)


def test_a_document_that_vanishes_meanwhile_is_not_found() -> None:
    store = WeakStore.with_luck([])
    store.before_write = lambda s: s.documents.clear()

    assert isinstance(sign(store).error, NotFound)


def test_a_conflict_without_a_winner_is_written_again() -> None:
    store = WeakStore.with_luck([Luck.NO_WINNER, Luck.NO_WINNER])

    assert sign(store).fate is Fate.COMMITTED
    assert store.writes == 3


def test_a_conflict_asks_the_decision_again_with_the_newer_value() -> None:
    store = WeakStore.with_luck([])
    seen: list[tuple[str, ...]] = []

    def decide(value: Counter) -> Counter:
        seen.append(value.writers)
        if "other" in value.writers:
            raise LostRace(thing="d1", winner="other")
        store.put(replace(value, writers=("other",)))
        return replace(value, writers=("me",))

    (outcome,) = commit(store, [Change("d1", decide)])

    assert isinstance(outcome.error, LostRace)
    assert seen == [(), ("other",)]
    assert store.documents["d1"].writers == ("other",)


@pytest.mark.parametrize("luck", [Luck.LOST_BEFORE, Luck.LOST_AFTER])
def test_a_lost_answer_is_settled_by_the_same_write(luck: Luck) -> None:
    store = WeakStore.with_luck([luck])
    outcome = sign(store)

    assert outcome.is_ours
    assert outcome.fate is (Fate.COMMITTED if luck is Luck.LOST_BEFORE else Fate.UNCHANGED)
    assert store.documents["d1"].writers == ("me",)


def test_a_read_that_shows_no_change_decides_nothing() -> None:
    """The first request acts only after the second has been refused for want of a winner.

    Whoever reads an unchanged revision and walks away here leaves a write behind that nobody knows.
    """
    store = WeakStore.with_luck([Luck.DELAYED, Luck.LOST_BEFORE])
    outcome = sign(store)
    store.arrive()

    assert outcome.is_ours
    assert store.documents["d1"].writers == ("me",)


def test_a_lost_answer_is_never_followed_by_another_decision() -> None:
    store = WeakStore.with_luck([Luck.LOST_BEFORE] * 5)
    asked = 0

    def decide(value: Counter) -> Counter:
        nonlocal asked
        asked += 1
        return replace(value, writers=(f"try-{asked}",))

    (outcome,) = commit(store, [Change("d1", decide)])

    assert outcome.fate is Fate.COMMITTED
    assert asked == 1
    assert store.documents["d1"].writers == ("try-1",)


def test_rounds_are_bounded_and_silence_ends_unknown() -> None:
    store = WeakStore.with_luck([Luck.LOST_BEFORE] * 1_000)
    outcome = sign(store)

    assert outcome.fate is Fate.UNKNOWN
    assert isinstance(outcome.error, OutcomeUnknown)
    assert store.writes <= 20


def test_rounds_are_bounded_and_endless_contention_ends_lost() -> None:
    store = WeakStore.with_luck([Luck.NO_WINNER] * 1_000)
    outcome = sign(store)

    assert outcome.fate is Fate.REFUSED
    assert isinstance(outcome.error, LostRace)
    assert store.documents["d1"].writers == ()
    assert store.writes <= 20


def test_a_store_that_is_down_before_anything_was_sent_refuses() -> None:
    store = WeakStore.with_luck([])
    store.is_down = lambda s: True

    assert (sign(store).fate, type(sign(store).error)) == (Fate.REFUSED, Unavailable)
    known = sign(store, known=Counter("d1", "_1"))
    assert (known.fate, type(known.error)) == (Fate.REFUSED, Unavailable)


def test_a_store_that_goes_down_after_a_lost_answer_leaves_it_unknown() -> None:
    """Not `Unavailable`: that says that nothing was done, and the first request may have acted."""
    store = WeakStore.with_luck([Luck.LOST_AFTER])
    store.is_down = lambda s: s.writes > 1
    outcome = sign(store)

    assert outcome.fate is Fate.UNKNOWN
    assert isinstance(outcome.error, OutcomeUnknown)
    assert store.documents["d1"].writers == ("me",)


def test_a_last_try_that_meets_its_own_work_is_not_called_lost() -> None:
    """All answers are lost, the last but one after it acted; the last try meets a conflict."""
    store = WeakStore.with_luck([*[Luck.LOST_BEFORE] * 10, Luck.LOST_AFTER])
    outcome = sign(store)

    assert store.documents["d1"].writers == ("me",)
    assert outcome.fate is not Fate.REFUSED


def test_a_read_that_fails_after_a_lost_answer_leaves_it_unknown() -> None:
    """The repeat met a conflict, with its own first request for all that is known."""
    store = WeakStore.with_luck([Luck.LOST_AFTER])
    store.is_down = lambda s: s.writes == 2
    outcome = sign(store)

    assert store.documents["d1"].writers == ("me",)
    assert outcome.fate is Fate.UNKNOWN


def test_batches_stand_each_alone_in_order() -> None:
    ids = ["d1", "d2", "d3", "d4"]
    store = WeakStore.with_luck([Luck.FINE, Luck.LOST_AFTER, Luck.NO_WINNER], ids)
    refused = Fenced(held="1", current="2")
    outcomes = commit(
        store,
        [
            Change("d1", signed_by("me")),
            Change("gone", signed_by("me")),
            Change("d2", signed_by("me")),
            Change("d4", refusing(refused)),
            Change("d3", signed_by("me")),
        ],
    )

    assert [o.fate for o in outcomes] == [
        Fate.COMMITTED,
        Fate.REFUSED,
        Fate.UNCHANGED,
        Fate.REFUSED,
        Fate.COMMITTED,
    ]
    assert [store.documents[id_].writers for id_ in ids] == [("me",), ("me",), ("me",), ()]
    assert store.writes == 2


def test_an_empty_batch_asks_nothing() -> None:
    store = WeakStore.with_luck([])

    assert commit(store, []) == []
    assert (store.reads, store.writes) == (0, 0)


def test_commit_one_returns_the_document_or_raises() -> None:
    store = WeakStore.with_luck([])

    assert commit_one(store, Change("d1", signed_by("me"))).writers == ("me",)
    assert commit_one(store, Change("d1", signed_by("me"))).writers == ("me",)
    with pytest.raises(NotFound):
        commit_one(store, Change("gone", signed_by("me")))
    with pytest.raises(Fenced):
        commit_one(store, Change("d1", refusing(Fenced(held="1", current="2"))))


@given(st.lists(st.sampled_from(Luck), max_size=40), st.integers(1, 6))
def test_whatever_happens_nobody_signs_twice_and_every_outcome_is_true(
    luck: list[Luck], writer_count: int
) -> None:
    store = WeakStore.with_luck(luck)
    outcomes = {f"writer-{n}": sign(store, f"writer-{n}") for n in range(writer_count)}
    store.arrive()
    signed = store.documents["d1"].writers

    assert len(signed) == len(set(signed))
    for writer, outcome in outcomes.items():
        if outcome.fate is not Fate.UNKNOWN:
            assert (writer in signed) == outcome.is_ours


@given(
    st.lists(st.sampled_from(Luck), max_size=60),
    st.permutations([f"d{n}" for n in range(4)]),
    st.integers(0, 3),
)
def test_whatever_happens_to_a_batch_every_outcome_is_true(
    luck: list[Luck], ids: list[str], interruptions: int
) -> None:
    store = WeakStore.with_luck(luck, ids)
    left = [interruptions]

    def interrupt(weak: WeakStore) -> None:
        if left[0]:
            left[0] -= 1
            value = weak.documents[ids[left[0]]]
            weak.put(replace(value, writers=(*value.writers, f"other-{left[0]}")))

    store.before_write = interrupt
    outcomes = commit(store, [Change(id_, signed_by("me")) for id_ in ids])
    store.arrive()

    for id_, outcome in zip(ids, outcomes, strict=True):
        count = store.documents[id_].writers.count("me")
        if outcome.fate is Fate.UNKNOWN:
            assert count <= 1
        else:
            assert count == (1 if outcome.is_ours else 0)
