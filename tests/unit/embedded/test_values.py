from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.embedded.arango.values import ABOVE_ALL, NULL_KEY, compare, sort_key

LADDER: list[Any] = [
    *(None, False, True, -(2**63), -1.5, 0, 0.1, 1, 2**63, 1e300),
    *("", " ", "_", "-", "1", "A", "a", "AB", "aB", "ab", "B", "b", "e", "é", "f", "z"),
    *([], [None], [0], [0, None], [1], [1, 2], [2], [[]], [{}]),
    *({}, {"b": 1}, {"a": 1}, {"a": 1, "b": 1}, {"a": 2}, {"a": {}}),
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


def test_the_ladder_of_types_letters_and_lengths_rises() -> None:
    assert sorted(LADDER, key=sort_key) == LADDER
    for lower, higher in pairwise(LADDER):
        assert compare(lower, higher) == -1
        assert compare(higher, lower) == 1


@pytest.mark.parametrize(
    ("left", "right"), [(1, 1.0), ({}, {"a": None}), ({"a": 1, "b": None}, {"a": 1}), ([1], [1.0])]
)
def test_equal_values_have_equal_keys(left: Any, right: Any) -> None:
    assert sort_key(left) == sort_key(right)
    assert compare(left, right) == 0


@pytest.mark.parametrize(("left", "right"), [(0, False), (1, True), ("1", 1), ([], None)])
def test_values_of_different_types_are_never_equal(left: Any, right: Any) -> None:
    assert compare(left, right) != 0


@given(VALUES, VALUES, VALUES)
def test_the_order_is_total(one: Any, two: Any, three: Any) -> None:
    assert compare(one, two) == -compare(two, one)
    if compare(one, two) <= 0 and compare(two, three) <= 0:
        assert compare(one, three) <= 0
    assert NULL_KEY <= sort_key(one) < ABOVE_ALL


@given(st.dictionaries(st.text(max_size=3), SCALARS), st.dictionaries(st.text(max_size=3), SCALARS))
def test_objects_compare_over_the_union_of_their_names(
    left: dict[str, Any], right: dict[str, Any]
) -> None:
    expected = 0
    for name in sorted({*left, *right}):
        expected = compare(left.get(name), right.get(name))
        if expected:
            break
    assert compare(left, right) == expected
