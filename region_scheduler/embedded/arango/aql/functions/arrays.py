"""Array functions. None changes its arguments: they may be parts of stored documents."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from region_scheduler.embedded.arango.aql.convert import (
    as_number,
    to_integer,
    to_number,
    to_string,
    truthy,
)
from region_scheduler.embedded.arango.aql.expressions import flatten
from region_scheduler.embedded.arango.aql.functions.registry import function
from region_scheduler.embedded.arango.aql.order import equal, equal_key, sort_key
from region_scheduler.embedded.arango.aql.run import Run
from region_scheduler.embedded.arango.errors import ArangoError


def distinct(items: list[Any]) -> list[Any]:
    """Return the items without repetition, each where it came first."""
    first: dict[Any, Any] = {}
    for item in items:
        first.setdefault(equal_key(item), item)
    return list(first.values())


def place_of(items: list[Any], value: Any) -> int:
    """Return the position of a value, or -1."""
    for place, item in enumerate(items):
        if equal(item, value):
            return place
    return -1


def _are_arrays(run: Run, values: tuple[Any, ...], name: str, number: int = 1542) -> bool:
    if all(type(value) is list for value in values):
        return True
    run.warn(number, name)
    return False


@function("LENGTH COUNT", 1, takes_collection=True)
def _length(value: Any) -> int:
    if type(value) is list or type(value) is dict:
        return len(value)
    if value is None or value is False:
        return 0
    return 1 if value is True else len(to_string(value))


@function("FIRST", 1)
def _first(run: Run, value: Any) -> Any:
    if not _are_arrays(run, (value,), "FIRST", 1563):
        return None
    return value[0] if value else None


@function("LAST", 1)
def _last(run: Run, value: Any) -> Any:
    if not _are_arrays(run, (value,), "LAST", 1563):
        return None
    return value[-1] if value else None


@function("NTH", 2)
def _nth(run: Run, value: Any, position: Any) -> Any:
    if not _are_arrays(run, (value,), "NTH", 1563):
        return None
    place = to_integer(position)
    return value[place] if 0 <= place < len(value) else None


@function("PUSH", 2, 3)
def _push(run: Run, array: Any, value: Any, unique: Any = False) -> Any:
    if array is None:
        return [value]
    if not _are_arrays(run, (array,), "PUSH"):
        return None
    if truthy(unique) and place_of(array, value) >= 0:
        return array
    return [*array, value]


@function("UNSHIFT", 2, 3)
def _unshift(run: Run, array: Any, value: Any, unique: Any = False) -> Any:
    if array is None:
        return [value]
    if not _are_arrays(run, (array,), "UNSHIFT"):
        return None
    if truthy(unique) and place_of(array, value) >= 0:
        return array
    return [value, *array]


@function("POP", 1)
def _pop(run: Run, array: Any) -> Any:
    if array is None or not _are_arrays(run, (array,), "POP"):
        return None
    return array[:-1]


@function("SHIFT", 1)
def _shift(run: Run, array: Any) -> Any:
    if array is None or not _are_arrays(run, (array,), "SHIFT"):
        return None
    return array[1:]


@function("APPEND", 2, 3)
def _append(array: Any, values: Any, unique: Any = False) -> Any:
    added = values if type(values) is list else [] if values is None else [values]
    is_unique = truthy(unique)
    if not added and not is_unique:
        return array
    if array is None and not added:
        return None
    before = array if type(array) is list else []
    result = [*before, *added]
    return distinct(result) if is_unique else result


@function("REMOVE_VALUE", 2, 3)
def _remove_value(run: Run, array: Any, value: Any, limit: Any = None) -> Any:
    if array is None:
        return []
    if not _are_arrays(run, (array,), "REMOVE_VALUE"):
        return None
    left = -1 if limit is None else to_integer(limit)
    result = []
    for item in array:
        if left != 0 and equal(item, value):
            left -= 1
        else:
            result.append(item)
    return result


@function("REMOVE_VALUES", 2)
def _remove_values(run: Run, array: Any, values: Any) -> Any:
    if values is None:
        return array
    if array is None:
        return []
    if not _are_arrays(run, (array, values), "REMOVE_VALUES"):
        return None
    gone = {equal_key(value) for value in values}
    return [item for item in array if equal_key(item) not in gone]


@function("REMOVE_NTH", 2)
def _remove_nth(run: Run, array: Any, position: Any) -> Any:
    if array is None:
        return []
    if not _are_arrays(run, (array,), "REMOVE_NTH"):
        return None
    place = to_number(position)
    if not -len(array) <= place < len(array):
        return array
    target = int(place + len(array) if place < 0 else place)
    return array[:target] + array[target + 1 :]


@function("REPLACE_NTH", 3, 4)
def _replace_nth(run: Run, array: Any, position: Any, value: Any, *padding: Any) -> Any:
    if not _are_arrays(run, (array,), "REPLACE_NTH"):
        return None
    place = to_integer(position)
    if place < 0:
        place = max(0, place + len(array))
    if position is None or (place > len(array) and not padding):
        raise ArangoError(1542, "AQL: invalid argument type in call to function 'REPLACE_NTH()'")
    filled = array + [padding[0]] * (place - len(array)) if padding else array
    return [*filled[:place], value, *filled[place + 1 :]]


@function("POSITION CONTAINS_ARRAY", 2, 3)
def _position(run: Run, array: Any, value: Any, index: Any = False) -> Any:
    if not _are_arrays(run, (array,), "POSITION", 1563):
        return None
    place = place_of(array, value)
    return place if truthy(index) else place >= 0


@function("INTERLEAVE", 2, None)
def _interleave(run: Run, *arrays: Any) -> Any:
    if not _are_arrays(run, arrays, "INTERLEAVE", 1563):
        return None
    nothing = object()
    rounds = zip_longest(*arrays, fillvalue=nothing)
    return [item for turn in rounds for item in turn if item is not nothing]


@function("RANGE", 2, 3)
def _range(run: Run, start: Any, stop: Any, step: Any = None) -> Any:
    if step is None:
        low, high = to_integer(start), to_integer(stop)
        return list(range(low, high + 1) if low <= high else range(low, high - 1, -1))
    first, last, by = float(to_number(start)), float(to_number(stop)), float(to_number(step))
    if by == 0 or (first < last and by < 0) or (first > last and by > 0):
        run.warn(1542, "RANGE")
        return None
    if abs((last - first) / by) > 10_000_000:
        raise ArangoError(32, "AQL: query would use more memory than allowed")
    numbers = []
    while first <= last if by > 0 else first >= last:
        numbers.append(first)
        first += by
    return numbers


@function("UNIQUE", 1)
def _unique(run: Run, array: Any) -> Any:
    return distinct(array) if _are_arrays(run, (array,), "UNIQUE", 1563) else None


@function("COUNT_DISTINCT COUNT_UNIQUE", 1)
def _count_distinct(run: Run, array: Any) -> Any:
    if not _are_arrays(run, (array,), "COUNT_DISTINCT", 1563):
        return None
    return len({equal_key(item) for item in array})


@function("SORTED", 1)
def _sorted(run: Run, array: Any) -> Any:
    return sorted(array, key=sort_key) if _are_arrays(run, (array,), "SORTED", 1563) else None


@function("SORTED_UNIQUE", 1)
def _sorted_unique(run: Run, array: Any) -> Any:
    if not _are_arrays(run, (array,), "SORTED_UNIQUE", 1563):
        return None
    return sorted(distinct(array), key=sort_key)


@function("UNION", 2, None)
def _union(run: Run, *arrays: Any) -> Any:
    if not _are_arrays(run, arrays, "UNION"):
        return None
    return [item for array in arrays for item in array]


@function("UNION_DISTINCT", 2, None)
def _union_distinct(run: Run, *arrays: Any) -> Any:
    if not _are_arrays(run, arrays, "UNION_DISTINCT"):
        return None
    return distinct([item for array in arrays for item in array])


@function("INTERSECTION", 2, None)
def _intersection(run: Run, *arrays: Any) -> Any:
    if not _are_arrays(run, arrays, "INTERSECTION"):
        return None
    others = [{equal_key(item) for item in array} for array in arrays[1:]]
    return [item for item in distinct(arrays[0]) if all(equal_key(item) in keys for keys in others)]


@function("OUTERSECTION", 2, None)
def _outersection(run: Run, *arrays: Any) -> Any:
    if not _are_arrays(run, arrays, "OUTERSECTION", 1563):
        return None
    items = [item for array in arrays for item in array]
    counts: dict[Any, int] = {}
    for item in items:
        key = equal_key(item)
        counts[key] = counts.get(key, 0) + 1
    return [item for item in items if counts[equal_key(item)] == 1]


@function("MINUS", 2, None)
def _minus(run: Run, *arrays: Any) -> Any:
    if not _are_arrays(run, arrays, "MINUS"):
        return None
    gone = {equal_key(item) for array in arrays[1:] for item in array}
    return [item for item in distinct(arrays[0]) if equal_key(item) not in gone]


@function("JACCARD", 2)
def _jaccard(run: Run, left: Any, right: Any) -> Any:
    if not _are_arrays(run, (left, right), "JACCARD"):
        return None
    one, two = {equal_key(item) for item in left}, {equal_key(item) for item in right}
    return len(one & two) / len(one | two) if one or two else 1


@function("FLATTEN", 1, 2)
def _flatten(run: Run, array: Any, depth: Any = 1) -> Any:
    if not _are_arrays(run, (array,), "FLATTEN", 1563):
        return None
    levels = as_number(depth)
    return flatten(array, 1 if levels is None or levels < 1 else int(levels))


@function("SLICE", 2, 3)
def _slice(run: Run, array: Any, start: Any, length: Any = None) -> Any:
    if not _are_arrays(run, (array,), "SLICE"):
        return None
    first = to_integer(start)
    if first < 0:
        first = max(0, len(array) + first)
    if length is None:
        return array[first:]
    end = to_integer(length)
    end = end + first if end >= 0 else max(0, len(array) + end)
    return array[first:end]


@function("REVERSE", 1)
def _reverse(run: Run, value: Any) -> Any:
    if type(value) is list:
        return value[::-1]
    if type(value) is str:
        return value[::-1]
    run.warn(1542, "REVERSE")
    return None
