"""Removal: a document goes only as it was read, and an answer that is lost is asked for again."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.commit.remove import remove
from region_scheduler.errors import OutcomeUnknown, Unavailable
from tests.unit.commit.weak_store import Counter, Luck, WeakStore


def a_store(*luck: Luck) -> tuple[WeakStore, list[Counter]]:
    store = WeakStore.with_luck(luck, ids=["d1", "d2"])
    return store, list(store.documents.values())


def test_what_is_as_it_was_read_goes_and_the_rest_stays() -> None:
    store, values = a_store()
    changed = store.put(Counter("d2", writers=("other",)))

    assert remove(store.remove, values) == 1
    assert list(store.documents.values()) == [changed]


def test_what_another_removed_is_gone_as_well() -> None:
    store, values = a_store()
    del store.documents["d1"]

    assert remove(store.remove, values) == 2
    assert remove(store.remove, []) == 0


@given(st.lists(st.sampled_from(Luck), max_size=9))
def test_whatever_is_lost_what_it_calls_gone_is_gone(luck: list[Luck]) -> None:
    store, values = a_store(*luck)
    with suppress(OutcomeUnknown):
        assert remove(store.remove, values) == 2 - len(store.documents)


def test_who_gets_no_answer_says_so() -> None:
    store, values = a_store(Luck.LOST_AFTER, *[Luck.LOST_BEFORE] * 3)
    assert remove(store.remove, values[:1]) == 1
    store, values = a_store(*[Luck.LOST_BEFORE] * 99)
    with pytest.raises(OutcomeUnknown):
        remove(store.remove, values)
    store.is_down = lambda _: True
    with pytest.raises(Unavailable):
        remove(store.remove, values)
