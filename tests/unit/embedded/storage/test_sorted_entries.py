from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from region_scheduler.embedded.arango.storage.sorted_entries import SortedEntries

STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 3000)), max_size=400)


@given(st.lists(st.integers(0, 3000), max_size=1500), STEPS, st.integers(0, 3000))
@settings(max_examples=60)
def test_it_is_a_sorted_list(start: list[int], steps: list[tuple[bool, int]], low: int) -> None:
    present = set(start)
    entries = SortedEntries((n,) for n in present)
    for is_add, n in steps:
        if is_add and n not in present:
            entries.add((n,))
            present.add(n)
        elif not is_add and n in present:
            entries.remove((n,))
            present.discard(n)

    expected = [(n,) for n in sorted(present) if low <= n < low + 500]
    assert len(entries) == len(present)
    assert list(entries.between((low,), (low + 500,))) == expected
    assert list(entries.between((low,), (low + 500,), is_reverse=True)) == expected[::-1]


def test_a_reader_sees_what_was_there_when_it_asked() -> None:
    entries = SortedEntries((n,) for n in range(2000))
    reader = entries.between((0,), (5000,))
    assert next(reader) == (0,)
    for n in range(1, 2000):
        entries.remove((n,))
        entries.add((n + 2000,))

    assert list(reader) == [(n,) for n in range(1, 2000)]


@given(st.lists(st.integers(0, 40), max_size=60), st.lists(st.integers(0, 40), max_size=60))
def test_no_reader_sees_what_comes_after_it(start: list[int], later: list[int]) -> None:
    entries = SortedEntries((n, 0) for n in start)
    entries.add((50, 0))
    readers = []
    for place, n in enumerate(later):
        seen = list(entries.between((0,), (99,)))
        readers.append((entries.between((0,), (99,)), seen))
        entries.add((n, place + 1))
        entries.add((60 + place, 0))

    for reader, seen in readers:
        assert list(reader) == seen


def test_what_is_not_there_cannot_be_removed() -> None:
    entries = SortedEntries([(1,), (3,)])
    with pytest.raises(KeyError):
        entries.remove((2,))


def test_nothing_is_found_in_nothing() -> None:
    assert list(SortedEntries().between((0,), (9,))) == []
