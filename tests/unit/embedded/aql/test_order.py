"""Laws of equality and order, over any values."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from region_scheduler.embedded.arango.aql.order import COMPARISONS, equal, equal_key, sort_key
from tests.unit.embedded.aql.asking import rows

SCALARS: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-3, 3, allow_nan=False)
    | st.sampled_from(["", "a", "A", "b", "ä", "a b", "0", "é"])
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("aAb"), inner),
    max_leaves=6,
)


@settings(deadline=None)
@given(VALUES, VALUES)
def test_exactly_one_of_less_equal_greater_holds(left: Any, right: Any) -> None:
    holds = [COMPARISONS[operator](left, right) for operator in ("<", "==", ">")]

    assert sum(holds) == 1
    assert COMPARISONS["<="](left, right) is not holds[2]
    assert COMPARISONS[">="](left, right) is not holds[0]
    assert COMPARISONS["!="](left, right) is not holds[1]


@settings(deadline=None)
@given(VALUES, VALUES)
def test_equal_values_have_equal_keys(left: Any, right: Any) -> None:
    assert equal(left, right) is (equal_key(left) == equal_key(right))
    assert equal(left, right) is (sort_key(left) == sort_key(right))


@settings(deadline=None)
@given(st.lists(VALUES, max_size=6))
def test_sorting_is_idempotent_and_loses_nothing(values: list[Any]) -> None:
    (once,) = rows("RETURN (FOR v IN @v SORT v RETURN v)", v=values)
    (twice,) = rows("RETURN (FOR v IN @v SORT v RETURN v)", v=once)

    assert once == twice
    assert sorted(map(sort_key, values)) == [sort_key(value) for value in once]


@settings(deadline=None)
@given(st.lists(VALUES, max_size=8))
def test_grouping_agrees_with_equality(values: list[Any]) -> None:
    groups = rows("FOR v IN @v COLLECT k = v WITH COUNT INTO n RETURN [k, n]", v=values)

    assert sum(count for _, count in groups) == len(values)
    for key, count in groups:
        assert count == sum(equal(key, value) for value in values)
    assert rows("FOR v IN @v RETURN DISTINCT v", v=values) == rows("RETURN UNIQUE(@v)", v=values)[0]
