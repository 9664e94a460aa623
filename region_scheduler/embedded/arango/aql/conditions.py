"""What the conditions behind a FOR say about its variable, in a form that an index can answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.expressions import Compiler
from region_scheduler.embedded.arango.aql.scope import Closure, Frame, Scope
from region_scheduler.embedded.arango.aql.walk import alternatives, is_movable, names

# One part of an attribute path: its name, or the bind parameter that holds it.
PathPart: TypeAlias = str | syntax.Bind
Path: TypeAlias = tuple[PathPart, ...]

_FLIPPED: Final = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Condition:
    """One conjunct.

    Attributes:
        test: The whole condition as a closure.
        kind: An operator (`==`, `in`, `<`, …), `contains` (value IN doc.path), or None for others.
        path: The attribute it is about.
        value: The other side, computed before the loop.
    """

    test: Closure
    text: syntax.Expression
    kind: str | None = None
    path: Path = ()
    value: Closure | None = None


def analyse(compiler: Compiler, variable: str, node: syntax.Expression, scope: Scope) -> Condition:
    """Return the condition in the form `variable.path operator value`, as far as it has one."""
    test = compiler.expression(node, scope)
    if isinstance(node, syntax.Binary) and node.operator == "or":
        return _alternatives(compiler, variable, node, scope, test)
    if not isinstance(node, syntax.Binary) or node.operator not in {*_FLIPPED, "in"}:
        return Condition(test, node)
    left, right = path_of(node.left, variable), path_of(node.right, variable)
    if left and variable not in names(node.right) and is_movable(node.right):
        value = compiler.expression(node.right, scope)
        return Condition(test, node, node.operator, left, value)
    if right and variable not in names(node.left) and is_movable(node.left):
        kind = "contains" if node.operator == "in" else _FLIPPED[node.operator]
        return Condition(test, node, kind, right, compiler.expression(node.left, scope))
    return Condition(test, node)


def _alternatives(
    compiler: Compiler, variable: str, node: syntax.Expression, scope: Scope, test: Closure
) -> Condition:
    """Read `x.a == 1 OR x.a IN [2, 3]` as one IN, if all alternatives are about one attribute."""
    parts = [analyse(compiler, variable, part, scope) for part in alternatives(node)]
    paths = {part.path for part in parts}
    if len(paths) != 1 or not all(part.kind in ("==", "in") and part.value for part in parts):
        return Condition(test, node)

    def values(frame: Frame) -> list[Any]:
        found: list[Any] = []
        for part in parts:
            value = part.value(frame) if part.value else None
            if part.kind == "==":
                found.append(value)
            elif type(value) is list:
                found += value
        return found

    return Condition(test, node, "in", paths.pop(), values)


def path_of(node: syntax.Expression, variable: str) -> Path:
    """Return the attribute path that hangs on a variable; empty if `node` is something else."""
    parts: list[PathPart] = []
    while True:
        if isinstance(node, syntax.Attribute):
            parts.append(node.name)
            node = node.target
        elif isinstance(node, syntax.BoundAttribute):
            parts.append(syntax.Bind(node.bind))
            node = node.target
        elif isinstance(node, syntax.Index):
            part = _index_part(node.key)
            if part is None:
                return ()
            parts.append(part)
            node = node.target
        elif isinstance(node, syntax.Expansion):
            if not _is_plain(node):
                return ()
            is_whole = node.access == syntax.Name("CURRENT")
            tail = () if is_whole else path_of(node.access, "CURRENT")
            head = path_of(node.target, variable)
            if not (is_whole or tail):
                return ()
            if not head or not isinstance(head[-1], str) or parts:
                return ()
            return (*head[:-1], head[-1] + "[*]", *tail)
        else:
            break
    if not isinstance(node, syntax.Name) or node.name != variable:
        return ()
    return tuple(reversed(parts))


def _index_part(key: syntax.Expression) -> PathPart | None:
    if isinstance(key, syntax.Literal) and isinstance(key.value, str):
        return key.value
    return key if isinstance(key, syntax.Bind) else None


def _is_plain(node: syntax.Expansion) -> bool:
    return (
        node.depth == 1
        and node.condition is None
        and node.limit is None
        and node.projection is None
    )


def resolved(path: Path, bind: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the path with bind parameters put in; None if one of them names no attribute."""
    parts: list[str] = []
    for part in path:
        if isinstance(part, str):
            parts.append(part)
            continue
        value = bind.get(part.name)
        if isinstance(value, str):
            parts.append(value)
        elif isinstance(value, list) and all(isinstance(item, str) for item in value):
            parts.extend(value)
        else:
            return None
    return tuple(parts)
