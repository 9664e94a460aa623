"""Expressions as closures over a frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.convert import to_integer, to_string, truthy
from region_scheduler.embedded.arango.aql.scope import (
    Closure,
    Frame,
    Layout,
    Scope,
)
from region_scheduler.embedded.arango.errors import ArangoError


class Compiler(Protocol):
    """What expression builders need of the compiler around them."""

    layout: Layout

    def expression(self, node: syntax.Expression, scope: Scope) -> Closure: ...

    def subquery(self, node: syntax.Subquery, scope: Scope) -> Closure: ...


def literal(_compiler: Compiler, node: syntax.Literal, _scope: Scope) -> Closure:
    """A constant."""
    value = node.value
    return lambda _frame: value


def bind(compiler: Compiler, node: syntax.Bind, _scope: Scope) -> Closure:
    """A bind parameter: a slot that the run fills."""
    slot = compiler.layout.bind_slot(node.name)
    return lambda frame: frame[slot]


def name(compiler: Compiler, node: syntax.Name, scope: Scope) -> Closure:
    """A variable, or else a collection where none may stand."""
    slot = scope.find(node.name)
    if slot is not None:
        return lambda frame: frame[slot]
    if node.is_variable:
        raise ArangoError(1512, f"AQL: use of unknown variable '{node.name}' in object literal")
    return collection(compiler, node, scope)


def collection(compiler: Compiler, node: syntax.CollectionName, _scope: Scope) -> Closure:
    """A collection used as a value: 1203 or 1568 before the query runs."""
    compiler.layout.touch("read", node)
    compiler.layout.operands.append(node)
    return lambda _frame: None


def attribute(compiler: Compiler, node: syntax.Attribute, scope: Scope) -> Closure:
    """`target.name`; anything but an object gives null."""
    key = node.name
    if isinstance(node.target, syntax.Name):
        slot = scope.find(node.target.name)
        if slot is not None:

            def of_variable(frame: Frame) -> Any:
                value = frame[slot]
                return value.get(key) if type(value) is dict else None

            return of_variable
    target = compiler.expression(node.target, scope)

    def of_value(frame: Frame) -> Any:
        value = target(frame)
        return value.get(key) if type(value) is dict else None

    return of_value


def bound_attribute(compiler: Compiler, node: syntax.BoundAttribute, scope: Scope) -> Closure:
    """`target.@name`: an attribute, or a path given as an array."""
    target = compiler.expression(node.target, scope)
    slot = compiler.layout.bind_slot(node.bind)
    compiler.layout.attribute_binds.add(node.bind)

    def read(frame: Frame) -> Any:
        path = frame[slot]
        value = target(frame)
        for key in [path] if type(path) is str else path:
            if type(value) is not dict:
                return None
            value = value.get(key)
        return value

    return read


def index(compiler: Compiler, node: syntax.Index, scope: Scope) -> Closure:
    """`target[key]`: by position in an array, by name in an object."""
    target = compiler.expression(node.target, scope)
    key = compiler.expression(node.key, scope)
    return lambda frame: element(target(frame), key(frame))


def element(target: Any, key: Any) -> Any:
    """Return an array's element or an object's attribute; null where there is none."""
    if type(target) is list:
        position = _position(key)
        if position is None or not -len(target) <= position < len(target):
            return None
        return target[position]
    if type(target) is dict:
        return target.get(key if type(key) is str else to_string(key))
    return None


def _position(key: Any) -> int | None:
    kind = type(key)
    if kind is int:
        return int(key)
    if kind is float:
        return int(key // 1)
    if kind is str and key.removeprefix("-").isdigit():
        return int(key)
    return None


def array(compiler: Compiler, node: syntax.ArrayLiteral, scope: Scope) -> Closure:
    """`[a, b]`."""
    items = [compiler.expression(item, scope) for item in node.items]
    if all(isinstance(item, syntax.Literal) for item in node.items):
        constant = [item.value for item in node.items if isinstance(item, syntax.Literal)]
        return lambda _frame: constant
    return lambda frame: [item(frame) for item in items]


def object_(compiler: Compiler, node: syntax.ObjectLiteral, scope: Scope) -> Closure:
    """`{a: 1, [key]: 2}`; the last of equal names wins."""
    parts = [
        (compiler.expression(key, scope), compiler.expression(value, scope))
        for key, value in node.items
    ]
    names = [key.value for key, _ in node.items if isinstance(key, syntax.Literal)]
    if len(names) == len(parts):
        pairs = [(name, value) for name, (_, value) in zip(names, parts, strict=True)]
        return lambda frame: {name: value(frame) for name, value in pairs}
    return lambda frame: {to_string(key(frame)): value(frame) for key, value in parts}


def ternary(compiler: Compiler, node: syntax.Ternary, scope: Scope) -> Closure:
    """`test ? yes : no`, only the chosen side is computed."""
    test = compiler.expression(node.test, scope)
    no = compiler.expression(node.no, scope)
    if node.yes is None:

        def elvis(frame: Frame) -> Any:
            value = test(frame)
            return value if truthy(value) else no(frame)

        return elvis
    yes = compiler.expression(node.yes, scope)
    return lambda frame: yes(frame) if truthy(test(frame)) else no(frame)


def subquery(compiler: Compiler, node: syntax.Subquery, scope: Scope) -> Closure:
    """A query in parentheses: the array of its results."""
    return compiler.subquery(node, scope)


def expansion(compiler: Compiler, node: syntax.Expansion, scope: Scope) -> Closure:
    """`target[* …]`."""
    target = compiler.expression(node.target, scope)
    inner = Scope(parent=scope)
    slot = compiler.layout.redeclare(inner, "CURRENT")
    condition = _optional(compiler, node.condition, inner)
    access = node.access if node.projection is None else node.projection
    is_plain = access == syntax.Name("CURRENT")
    projection = None if is_plain else compiler.expression(access, inner)
    limit = node.limit and tuple(compiler.expression(part, scope) for part in node.limit)
    levels = node.depth - 1

    def expand(frame: Frame) -> list[Any]:
        source = target(frame)
        if type(source) is not list:
            return []
        items = flatten(source, levels) if levels else source
        skip, left = (to_integer(part(frame)) for part in limit) if limit else (0, len(items))
        if skip < 0:
            return []
        result = []
        for item in items:
            frame[slot] = item
            if condition is not None and not truthy(condition(frame)):
                continue
            if skip > 0:
                skip -= 1
                continue
            if left <= 0:
                break
            left -= 1
            result.append(item if projection is None else projection(frame))
        return result

    if condition is None and limit is None and projection is not None:

        def project(frame: Frame) -> list[Any]:
            source = target(frame)
            if type(source) is not list:
                return []
            result = []
            for item in flatten(source, levels) if levels else source:
                frame[slot] = item
                result.append(projection(frame))
            return result

        return project
    return expand


def _optional(compiler: Compiler, node: syntax.Expression | None, scope: Scope) -> Closure | None:
    return None if node is None else compiler.expression(node, scope)


def flatten(items: list[Any], levels: int) -> list[Any]:
    """Return the array with `levels` levels of nesting taken out."""
    result: list[Any] = []
    for item in items:
        if type(item) is list and levels > 0:
            result.extend(flatten(item, levels - 1) if levels > 1 else item)
        else:
            result.append(item)
    return result


def question(compiler: Compiler, node: syntax.Question, scope: Scope) -> Closure:
    """`target[? quantifier FILTER …]`."""
    target = compiler.expression(node.target, scope)
    inner = Scope(parent=scope)
    slot = compiler.layout.redeclare(inner, "CURRENT")
    condition = _optional(compiler, node.condition, inner)
    enough = quantity(compiler, node.quantifier, scope)

    def search(frame: Frame) -> bool:
        source = target(frame)
        if type(source) is not list:
            source = [] if source is None else [source]
        total = len(source)
        matches = total
        if condition is not None:
            matches = 0
            for item in source:
                frame[slot] = item
                matches += truthy(condition(frame))
        return enough(frame, matches, total)

    return search


def quantity(
    compiler: Compiler, node: syntax.Quantifier, scope: Scope
) -> Callable[[Frame, int, int], bool]:
    """Return a test of the number of matches against a quantifier."""
    if node.kind == "all":
        return lambda _frame, matches, total: bool(matches == total)
    if node.kind == "any":
        return lambda _frame, matches, _total: bool(matches > 0)
    if node.kind == "none":
        return lambda _frame, matches, _total: bool(matches == 0)
    if node.low is None:
        raise ArangoError(1501, "AQL: syntax error, quantifier without a number")
    low = compiler.expression(node.low, scope)
    if node.high is None:
        return lambda frame, matches, _total: bool(matches >= low(frame))
    high = compiler.expression(node.high, scope)
    return lambda frame, matches, _total: bool(low(frame) <= matches <= high(frame))
