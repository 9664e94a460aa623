"""Questions about a piece of syntax: which names it mentions, whether it may be moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

from region_scheduler.embedded.arango.aql import syntax

_MODIFICATIONS: Final = (syntax.Insert, syntax.Update, syntax.Remove, syntax.Upsert)
# What must happen where it is written: it may fail, take time, or differ from call to call.
_FIXED_CALLS: Final = frozenset(
    "FAIL ASSERT WARN SLEEP RAND RANDOM_TOKEN UUID NOOPT NOEVAL DOCUMENT".split()
)


def nodes(node: Any) -> Iterator[Any]:
    """Yield every syntax node at and below `node`."""
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, tuple):
            pending.extend(current)
        elif is_dataclass(current) and not isinstance(current, type):
            yield current
            pending.extend(getattr(current, part.name) for part in fields(current))


def names(node: Any) -> set[str]:
    """Return every name mentioned, collections and inner variables included."""
    return {found.name for found in nodes(node) if isinstance(found, syntax.Name)}


def is_unseen(variable: syntax.Pattern, clauses: Sequence[syntax.Clause]) -> bool:
    """Tell whether no clause looks at a variable, by its name or by taking all there are."""
    behind = tuple(clauses)
    is_grouped = any(
        isinstance(found, syntax.Collect) and found.into is not None and not found.is_count
        for found in nodes(behind)
    )
    return isinstance(variable, str) and not is_grouped and variable not in names(behind)


def used_names(query: syntax.Query) -> frozenset[str] | None:
    """Return the names that a query mentions; None if it takes variables without naming them."""
    for found in nodes(query):
        if isinstance(found, syntax.Collect):
            takes_all = found.into_value is None and not found.keep and not found.is_count
            if found.into is not None and takes_all:
                return None
    return frozenset(names(query)) | {
        name for found in nodes(query) if isinstance(found, syntax.Collect) for name in found.keep
    }


def has_modification(node: Any) -> bool:
    """Tell whether some part writes."""
    return any(isinstance(found, _MODIFICATIONS) for found in nodes(node))


def is_movable(node: Any) -> bool:
    """Tell whether a condition may be computed earlier than it is written."""
    for found in nodes(node):
        if isinstance(found, syntax.Subquery):
            return False
        if isinstance(found, syntax.Call) and found.name in _FIXED_CALLS:
            return False
    return True


def conjuncts(condition: syntax.Expression) -> list[syntax.Expression]:
    """Return the parts that `and` joins, in order."""
    return _joined(condition, "and")


def alternatives(condition: syntax.Expression) -> list[syntax.Expression]:
    """Return the parts that `or` joins, in order."""
    return _joined(condition, "or")


def _joined(condition: syntax.Expression, operator: str) -> list[syntax.Expression]:
    parts: list[syntax.Expression] = []
    pending = [condition]
    while pending:
        current = pending.pop()
        if isinstance(current, syntax.Binary) and current.operator == operator:
            pending += [current.right, current.left]
        else:
            parts.append(current)
    return parts
