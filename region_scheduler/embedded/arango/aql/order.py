"""Equality and comparison of AQL values, and hashable keys for grouping.

The order itself is `values.sort_key`, which the indexes use too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from region_scheduler.embedded.arango.values import SortKey
from region_scheduler.embedded.arango.values import sort_key as stored_key

__all__ = [
    "COMPARISONS",
    "equal",
    "equal_key",
    "less",
    "less_or_equal",
    "sort_key",
    "string_order",
]

string_order = stored_key
"""The key by which names sort: as strings do."""


def sort_key(value: Any) -> SortKey:
    """Return a hashable key that orders any AQL values; equal exactly for values that are `==`."""
    kind = type(value)
    return stored_key(_trimmed(value) if kind is list or kind is dict else value)


def _trimmed(value: Any) -> Any:
    """Return a value without the nulls at an array's end, which a missing element equals."""
    if type(value) is dict:
        return {name: _trimmed(item) for name, item in value.items()}
    if type(value) is not list:
        return value
    end = len(value)
    while end and value[end - 1] is None:
        end -= 1
    return [_trimmed(item) for item in value[:end]]


def equal_key(value: Any) -> Any:
    """Return a hashable key, the same exactly for values that are `==` in AQL.

    It does not order: that is what makes it cheap for objects.
    """
    kind = type(value)
    if kind is str or value is None or kind is int or kind is float:
        return value
    if kind is bool:
        return (bool, value)
    if kind is dict:
        return (
            dict,
            frozenset([(name, equal_key(v)) for name, v in value.items() if v is not None]),
        )
    keys = [equal_key(item) for item in value]
    while keys and keys[-1] is None:
        keys.pop()
    return (list, tuple(keys))


def equal(left: Any, right: Any) -> bool:
    """Tell whether AQL's `==` holds: no conversion between types, a missing part is null."""
    kind, other = type(left), type(right)
    if kind is other:
        if kind is dict:
            return _equal_objects(left, right)
        if kind is list:
            return _equal_arrays(left, right)
        return bool(left == right)
    if kind is bool or other is bool:
        return False
    if kind in (int, float) and other in (int, float):
        return bool(left == right)
    return False


def _equal_arrays(left: list[Any], right: list[Any]) -> bool:
    if len(left) < len(right):
        left, right = right, left
    short = len(right)
    return all(equal(left[i], right[i]) for i in range(short)) and not any(
        item is not None for item in left[short:]
    )


def _equal_objects(left: dict[str, Any], right: dict[str, Any]) -> bool:
    if left is right:
        return True
    for name, value in left.items():
        if not equal(value, right.get(name)):
            return False
    return all(value is None or name in left for name, value in right.items())


def less(left: Any, right: Any) -> bool:
    """Tell whether AQL's `<` holds."""
    kind, other = type(left), type(right)
    if kind in (int, float) and other in (int, float):
        return bool(left < right)
    return sort_key(left) < sort_key(right)


def less_or_equal(left: Any, right: Any) -> bool:
    """Tell whether AQL's `<=` holds."""
    kind, other = type(left), type(right)
    if kind in (int, float) and other in (int, float):
        return bool(left <= right)
    return sort_key(left) <= sort_key(right)


Comparison: TypeAlias = Callable[[Any, Any], bool]
COMPARISONS: Final[dict[str, Comparison]] = {
    "==": equal,
    "!=": lambda a, b: not equal(a, b),
    "<": less,
    "<=": less_or_equal,
    ">": lambda a, b: less(b, a),
    ">=": lambda a, b: less_or_equal(b, a),
}
