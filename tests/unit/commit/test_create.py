"""Creation: whoever comes second finds what the first one made."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.commit.create import create
from region_scheduler.errors import OutcomeUnknown, Unavailable
from tests.unit.commit.weak_store import Counter, Luck, WeakStore

ME = Counter("d1", writers=("me",))
OTHER = Counter("d1", writers=("other",))


def test_the_first_creates() -> None:
    store = WeakStore.with_luck([], ids=[])
    (created,) = create(store, [ME])

    assert created.is_new
    assert created.value == store.documents["d1"]
    assert store.reads == 0


def test_the_second_finds() -> None:
    store = WeakStore.with_luck([], ids=[])
    store.put(OTHER)
    (created,) = create(store, [ME])

    assert not created.is_new
    assert created.value.writers == ("other",)


def test_a_lost_answer_finds_its_own() -> None:
    store = WeakStore.with_luck([Luck.LOST_AFTER], ids=[])
    (created,) = create(store, [ME])

    assert created.value.writers == ("me",)
    assert not created.is_new


def test_a_lost_request_is_made_again() -> None:
    store = WeakStore.with_luck([Luck.LOST_BEFORE], ids=[])

    assert create(store, [ME])[0].is_new


def test_silence_to_the_end_is_unknown() -> None:
    store = WeakStore.with_luck([Luck.LOST_BEFORE] * 100, ids=[])

    with pytest.raises(OutcomeUnknown):
        create(store, [ME])
    assert store.writes <= 10


def test_a_store_that_is_down_says_so() -> None:
    store = WeakStore.with_luck([], ids=[])
    store.is_down = lambda s: True

    with pytest.raises(Unavailable):
        create(store, [ME])


@given(
    st.lists(st.sampled_from([Luck.FINE, Luck.LOST_BEFORE, Luck.LOST_AFTER]), max_size=12),
    st.sets(st.sampled_from("abcd")),
)
def test_what_is_returned_is_what_stands(luck: list[Luck], taken: set[str]) -> None:
    store = WeakStore.with_luck(luck, ids=[])
    for id_ in taken:
        store.put(Counter(id_, writers=("other",)))
    try:
        created = create(store, [Counter(id_, writers=("me",)) for id_ in "abcd"])
    except OutcomeUnknown:
        return
    assert [c.value for c in created] == [store.documents[id_] for id_ in "abcd"]
    for id_, standing in zip("abcd", created, strict=True):
        assert standing.value.writers == (("other",) if id_ in taken else ("me",))
        assert not (standing.is_new and id_ in taken)
