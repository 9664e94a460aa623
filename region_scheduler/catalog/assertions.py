"""Evaluates what a check asserts about the inputs and upstream outputs of its task."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from region_scheduler.domain.task import Json

_MISSING: Final = object()
UPSTREAM: Final = re.compile(r"/upstream/([^/]+)(?:/.*)?", re.DOTALL)
"""A path into the outputs of a predecessor; the group is its name, escaped as in a pointer."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An assertion that does not hold, in words."""

    path: str
    reason: str


def failures(assertions: Iterable[Mapping[str, Json]], document: Json) -> list[Failure]:
    """Return the assertions that do not hold, in the order given.

    Args:
        assertions: Each with `path` (a JSON pointer, RFC 6901), `op`, and but for `present` a
            `value`. Ops: `present`, `eq`, `ne`, `in` (the value holds it), `subset` (the value
            holds all of it), `le`, `ge`, `matches` (regular expression, found anywhere). What is
            missing, of another type, or asserted by an unknown op, fails.
        document: `{"inputs": ..., "upstream": {task name: outputs}}`.
    """
    found = []
    for assertion in assertions:
        path, op = str(assertion["path"]), str(assertion["op"])
        actual = _at(document, path)
        if actual is _MISSING:
            found.append(Failure(path, "is missing"))
        elif not _holds(op, actual, assertion.get("value")):
            expected = f"{op} {assertion.get('value')!r}"
            found.append(Failure(path, f"is {_short(actual)}, expected {expected}"))
    return found


def _at(document: Json, pointer: str) -> Json:
    value = document
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return _MISSING
    return value


def _holds(op: str, actual: Json, value: Json) -> bool:
    holds = _OPS.get(op)
    try:
        return holds is not None and holds(actual, value)
    except TypeError:  # values that cannot be compared
        return False


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


_OPS: Final[Mapping[str, Callable[[Json, Json], bool]]] = {
    "present": lambda _actual, _value: True,
    "eq": lambda actual, value: bool(actual == value),
    "ne": lambda actual, value: bool(actual != value),
    "in": lambda actual, value: actual in value,
    "subset": lambda actual, value: all(item in value for item in actual),
    "le": lambda actual, value: bool(actual <= value),
    "ge": lambda actual, value: bool(actual >= value),
    "matches": lambda actual, value: re.search(value, actual) is not None,
}
OPS: Final = frozenset(_OPS)
"""Every op that an assertion may have."""
