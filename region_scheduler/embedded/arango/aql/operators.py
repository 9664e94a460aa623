"""Operators: logic, comparison, membership, patterns, arithmetic, and their quantified forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.convert import as_number, narrow, to_integer, truthy
from region_scheduler.embedded.arango.aql.expressions import Compiler, quantity
from region_scheduler.embedded.arango.aql.order import COMPARISONS, equal, equal_key
from region_scheduler.embedded.arango.aql.patterns import like, matches_regex
from region_scheduler.embedded.arango.aql.run import Run
from region_scheduler.embedded.arango.aql.scope import Closure, Frame, Scope
from region_scheduler.embedded.arango.aql.walk import alternatives, conjuncts
from region_scheduler.embedded.arango.errors import ArangoError

_RANGE_MAX: Final = 10_000_000


def unary(compiler: Compiler, node: syntax.Unary, scope: Scope) -> Closure:
    """`!`, `+`, `-`."""
    operand = compiler.expression(node.operand, scope)
    if node.operator == "!":
        return lambda frame: not truthy(operand(frame))
    if node.operator == "+":
        return lambda frame: number_of(frame[0], operand(frame))
    return lambda frame: narrow(-number_of(frame[0], operand(frame)))


def number_of(run: Run, value: Any) -> int | float:
    """Return an operand as a number; warn 1561 and take 0 if it stands for none."""
    number = as_number(value)
    if number is None:
        run.warn(1561)
        return 0
    return number


def binary(compiler: Compiler, node: syntax.Binary, scope: Scope) -> Closure:
    """Every operator between two operands."""
    operator = node.operator
    if operator in ("and", "or"):
        # A long chain is one flat test: no deep nest of closures.
        joined = conjuncts(node) if operator == "and" else alternatives(node)
        return _LOGIC[operator]([compiler.expression(part, scope) for part in joined])
    left = compiler.expression(node.left, scope)
    if operator in ("in", "not in"):
        member = membership(compiler, node.right, scope)
        if operator == "in":
            return lambda frame: member(frame, left(frame))
        return lambda frame: not member(frame, left(frame))
    right = compiler.expression(node.right, scope)
    if operator == "==":
        return lambda frame: equal(left(frame), right(frame))
    if operator in COMPARISONS:
        comparison = COMPARISONS[operator]
        return lambda frame: comparison(left(frame), right(frame))
    if operator in _PATTERNS:
        test = _PATTERNS[operator]
        return lambda frame: test(frame[0], left(frame), right(frame))
    arithmetic = ARITHMETIC[operator]
    return lambda frame: arithmetic(frame[0], left(frame), right(frame))


def _and(parts: list[Closure]) -> Closure:
    first, *others = parts

    def every(frame: Frame) -> Any:
        value = first(frame)
        for part in others:
            if not truthy(value):
                return value
            value = part(frame)
        return value

    return every


def _or(parts: list[Closure]) -> Closure:
    first, *others = parts

    def any_(frame: Frame) -> Any:
        value = first(frame)
        for part in others:
            if truthy(value):
                return value
            value = part(frame)
        return value

    return any_


_LOGIC: Final[dict[str, Callable[[list[Closure]], Closure]]] = {"and": _and, "or": _or}

# --- membership


def membership(
    compiler: Compiler, node: syntax.Expression, scope: Scope
) -> Callable[[Frame, Any], bool]:
    """Return a test whether a value is among the elements that `node` evaluates to."""
    right = compiler.expression(node, scope)
    if isinstance(node, syntax.ArrayLiteral) and all(
        isinstance(item, syntax.Literal) for item in node.items
    ):
        keys = {equal_key(item.value) for item in node.items if isinstance(item, syntax.Literal)}
        return lambda _frame, value: equal_key(value) in keys
    return lambda frame, value: contains(right(frame), value)


def contains(array: Any, value: Any) -> bool:
    """Tell whether AQL's `value IN array` holds; false for anything but an array."""
    if type(array) is not list:
        return False
    if type(value) is str:
        return value in array
    return any(equal(value, item) for item in array)


# --- patterns

_PATTERNS: Final[dict[str, Callable[[Run, Any, Any], bool]]] = {
    "like": lambda _run, text, pattern: like(text, pattern),
    "not like": lambda _run, text, pattern: not like(text, pattern),
    "=~": matches_regex,
    "!~": lambda run, text, pattern: not matches_regex(run, text, pattern),
}

# --- arithmetic


def _result(run: Run, number: int | float) -> int | float | None:
    if not math.isfinite(number):
        run.warn(1504)
        return None
    return narrow(number)


def add(run: Run, left: Any, right: Any) -> int | float | None:
    """Return `left + right`."""
    return _result(run, number_of(run, left) + number_of(run, right))


def subtract(run: Run, left: Any, right: Any) -> int | float | None:
    """Return `left - right`."""
    return _result(run, number_of(run, left) - number_of(run, right))


def multiply(run: Run, left: Any, right: Any) -> int | float | None:
    """Return `left * right`."""
    return _result(run, number_of(run, left) * number_of(run, right))


def divide(run: Run, left: Any, right: Any) -> int | float | None:
    """Return `left / right`; null and warning 1562 if `right` is 0."""
    dividend, divisor = number_of(run, left), number_of(run, right)
    if divisor == 0:
        run.warn(1562)
        return None
    return _result(run, dividend / divisor)


def modulo(run: Run, left: Any, right: Any) -> int | float | None:
    """Return `left % right` with the sign of `left`."""
    dividend, divisor = number_of(run, left), number_of(run, right)
    if divisor == 0:
        run.warn(1562)
        return None
    if type(dividend) is int and type(divisor) is int:
        rest = abs(dividend) % abs(divisor)
        return -rest if dividend < 0 else rest
    return _result(run, math.fmod(dividend, divisor))


def between(_run: Run, left: Any, right: Any) -> list[int]:
    """Return the integers of `left..right`, downwards if left is larger.

    Raises:
        ArangoError: 32 if there are more than an array may hold here.
    """
    numbers = number_range(left, right)
    if len(numbers) > _RANGE_MAX:
        raise ArangoError(32, "AQL: query would use more memory than allowed")
    return list(numbers)


def number_range(left: Any, right: Any) -> range:
    """Return `left..right` without its numbers laid out."""
    low, high = to_integer(left), to_integer(right)
    return range(low, high + 1) if low <= high else range(low, high - 1, -1)


ARITHMETIC: Final[dict[str, Callable[[Run, Any, Any], Any]]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": modulo,
    "..": between,
}

# --- quantified


def quantified(compiler: Compiler, node: syntax.Quantified, scope: Scope) -> Closure:
    """`left ALL == right` and its kin: the comparison of each element, counted."""
    left = compiler.expression(node.left, scope)
    test = _element_test(compiler, node, scope)
    kind = node.quantifier.kind
    if kind in ("all", "any", "none"):
        wanted = kind == "any"
        stop = kind != "all"

        def scan(frame: Frame) -> bool:
            items = left(frame)
            if type(items) is not list:
                return False
            check = test(frame)
            for item in items:
                if check(item) is stop:
                    return wanted
            return not wanted

        return scan
    enough = quantity(compiler, node.quantifier, scope)

    def count(frame: Frame) -> bool:
        items = left(frame)
        if type(items) is not list:
            return False
        check = test(frame)
        return enough(frame, sum(1 for item in items if check(item)), len(items))

    return count


def _element_test(
    compiler: Compiler, node: syntax.Quantified, scope: Scope
) -> Callable[[Frame], Callable[[Any], bool]]:
    """Return what makes, for one frame, the test of one element against the right side."""
    if node.operator in ("in", "not in"):
        member = membership(compiler, node.right, scope)
        is_in = node.operator == "in"
        return lambda frame: lambda item: member(frame, item) is is_in
    right = compiler.expression(node.right, scope)
    if node.operator in COMPARISONS:
        comparison = COMPARISONS[node.operator]

        def prepare(frame: Frame) -> Callable[[Any], bool]:
            value = right(frame)
            return lambda item: comparison(item, value)

        return prepare
    pattern_test = _PATTERNS[node.operator]

    def prepare_pattern(frame: Frame) -> Callable[[Any], bool]:
        value = right(frame)
        return lambda item: pattern_test(frame[0], item, value)

    return prepare_pattern
