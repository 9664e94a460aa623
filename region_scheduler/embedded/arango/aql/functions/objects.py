"""Object functions. None changes its arguments: they may be stored documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from region_scheduler.embedded.arango.aql.convert import to_string, truthy
from region_scheduler.embedded.arango.aql.expressions import element
from region_scheduler.embedded.arango.aql.functions.registry import function
from region_scheduler.embedded.arango.aql.order import equal, string_order
from region_scheduler.embedded.arango.aql.run import Run


def _is_object(run: Run, value: Any, name: str) -> bool:
    if type(value) is dict:
        return True
    run.warn(1542, name)
    return False


def _names(arguments: tuple[Any, ...]) -> set[str]:
    """Return the attribute names given one by one or in arrays."""
    names: set[str] = set()
    for argument in arguments:
        if type(argument) is list:
            names.update(to_string(name) for name in argument)
        elif argument is not None:
            names.add(to_string(argument))
    return names


@function("ATTRIBUTES KEYS", 1, 3)
def _attributes(run: Run, value: Any, without_system: Any = False, sort: Any = False) -> Any:
    if not _is_object(run, value, "ATTRIBUTES"):
        return None
    hides = truthy(without_system)
    names = [name for name in value if not (hides and name.startswith("_"))]
    # Unsorted means in the order of storage, which is that of the names' bytes.
    return sorted(names, key=string_order) if truthy(sort) else sorted(names)


@function("VALUES", 1, 2)
def _values(run: Run, value: Any, without_system: Any = False) -> Any:
    if not _is_object(run, value, "VALUES"):
        return None
    hides = truthy(without_system)
    return [item for name, item in value.items() if not (hides and name.startswith("_"))]


@function("ENTRIES", 1)
def _entries(run: Run, value: Any) -> Any:
    if not _is_object(run, value, "ENTRIES"):
        return None
    return [[name, item] for name, item in value.items()]


@function("HAS", 2)
def _has(value: Any, name: Any) -> bool:
    return type(value) is dict and to_string(name) in value


@function("KEEP", 2, None)
def _keep(run: Run, value: Any, *names: Any) -> Any:
    if not _is_object(run, value, "KEEP"):
        return None
    wanted = _names(names)
    return {name: item for name, item in value.items() if name in wanted}


@function("UNSET", 2, None)
def _unset(run: Run, value: Any, *names: Any) -> Any:
    if not _is_object(run, value, "UNSET"):
        return None
    unwanted = _names(names)
    return {name: item for name, item in value.items() if name not in unwanted}


def _recursive(value: Any, takes: Callable[[str], bool]) -> Any:
    if type(value) is dict:
        return {name: _recursive(item, takes) for name, item in value.items() if takes(name)}
    if type(value) is list:
        return [_recursive(item, takes) for item in value]
    return value


@function("KEEP_RECURSIVE", 2, None)
def _keep_recursive(run: Run, value: Any, *names: Any) -> Any:
    if not _is_object(run, value, "KEEP_RECURSIVE"):
        return None
    wanted = _names(names)
    return _recursive(value, lambda name: name in wanted)


@function("UNSET_RECURSIVE", 2, None)
def _unset_recursive(run: Run, value: Any, *names: Any) -> Any:
    if not _is_object(run, value, "UNSET_RECURSIVE"):
        return None
    unwanted = _names(names)
    return _recursive(value, lambda name: name not in unwanted)


def _objects(run: Run, arguments: tuple[Any, ...], name: str) -> list[dict[str, Any]] | None:
    """Return the objects to merge: the arguments, or the elements of a single array."""
    parts = arguments
    if len(arguments) == 1 and type(arguments[0]) is list:
        parts = tuple(arguments[0])
    if not all(type(part) is dict for part in parts):
        run.warn(1542, name)
        return None
    return list(parts)


@function("MERGE", 1, None)
def _merge(run: Run, *arguments: Any) -> Any:
    parts = _objects(run, arguments, "MERGE")
    if parts is None:
        return None
    result: dict[str, Any] = {}
    for part in parts:
        result.update(part)
    return result


@function("MERGE_RECURSIVE", 1, None)
def _merge_recursive(run: Run, *arguments: Any) -> Any:
    parts = _objects(run, arguments, "MERGE_RECURSIVE")
    if parts is None:
        return None
    result: dict[str, Any] = {}
    for part in parts:
        result = _merged(result, part)
    return result


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    result = dict(old)
    for name, value in new.items():
        before = result.get(name)
        both = type(before) is dict and type(value) is dict
        result[name] = _merged(before, value) if both and before is not None else value
    return result


@function("MATCHES", 2, 3)
def _matches(run: Run, value: Any, examples: Any, index: Any = False) -> Any:
    if type(value) is not dict:
        return -1 if truthy(index) else False
    candidates = examples if type(examples) is list else [examples]
    if not candidates:
        run.warn(1542, "MATCHES")
        return -1 if truthy(index) else False
    for place, example in enumerate(candidates):
        if type(example) is not dict:
            run.warn(1542, "MATCHES")
            continue
        if all(equal(value.get(name), item) for name, item in example.items()):
            return place if truthy(index) else True
    return -1 if truthy(index) else False


@function("ZIP", 2)
def _zip(run: Run, names: Any, values: Any) -> Any:
    if type(names) is not list or type(values) is not list or len(names) != len(values):
        run.warn(1542, "ZIP")
        return None
    result: dict[str, Any] = {}
    for name, value in zip(names, values, strict=True):
        # The first value of a repeated name stays.
        result.setdefault(to_string(name), value)
    return result


@function("TRANSLATE", 2, 3)
def _translate(run: Run, value: Any, mapping: Any, *default: Any) -> Any:
    if not _is_object(run, mapping, "TRANSLATE"):
        return None
    fallback = default[0] if default else value
    return mapping.get(to_string(value), fallback)


@function("VALUE", 2)
def _value(run: Run, value: Any, path: Any) -> Any:
    if type(value) is not dict or type(path) is not list:
        run.warn(1542, "VALUE")
        return None
    current: Any = value
    for part in path:
        current = element(current, part)
    return current


def _identifier(run: Run, value: Any, name: str) -> tuple[str, str] | None:
    if type(value) is dict:
        value = value.get("_id")
    if type(value) is str:
        collection, slash, key = value.partition("/")
        if slash and collection and key and "/" not in key:
            return collection, key
    run.warn(1542, name)
    return None


@function("PARSE_IDENTIFIER", 1)
def _parse_identifier(run: Run, value: Any) -> Any:
    parts = _identifier(run, value, "PARSE_IDENTIFIER")
    return None if parts is None else {"collection": parts[0], "key": parts[1]}


@function("PARSE_COLLECTION", 1)
def _parse_collection(run: Run, value: Any) -> Any:
    parts = _identifier(run, value, "PARSE_COLLECTION")
    return None if parts is None else parts[0]


@function("PARSE_KEY", 1)
def _parse_key(run: Run, value: Any) -> Any:
    parts = _identifier(run, value, "PARSE_KEY")
    return None if parts is None else parts[1]


@function("IS_SAME_COLLECTION", 2, takes_collection=True)
def _is_same_collection(run: Run, collection: Any, value: Any) -> Any:
    names = []
    for part in (collection, value):
        text = part.get("_id") if type(part) is dict else part
        if type(text) is not str:
            run.warn(1542, "IS_SAME_COLLECTION")
            return None
        names.append(text.partition("/")[0])
    return names[0] == names[1]
