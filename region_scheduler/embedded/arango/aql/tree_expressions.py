"""Lark's reductions of expressions, each turned at once into a piece of the syntax tree."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from lark import Token, Transformer, v_args

from region_scheduler.embedded.arango.aql import syntax

_OPERATORS: Final = {
    "EQ": "==",
    "NE": "!=",
    "LT": "<",
    "LE": "<=",
    "GT": ">",
    "GE": ">=",
    "_IN": "in",
    "NOT_IN": "not in",
    "_LIKE": "like",
    "NOT_LIKE": "not like",
    "MATCH": "=~",
    "NOT_MATCH": "!~",
    "AND": "and",
    "OR": "or",
    "NOT": "!",
    "RANGE": "..",
    "PLUS": "+",
    "MINUS": "-",
    "STAR": "*",
    "SLASH": "/",
    "PERCENT": "%",
}
ZERO: Final = syntax.Literal(0)
_NULL: Final = syntax.Literal(None)
_CURRENT: Final = syntax.Name("CURRENT")

Accessor = Callable[[Any], Any]


class _Inline(NamedTuple):
    """An expansion that still waits for its target."""

    depth: int
    condition: Any
    limit: Any
    projection: Any

    def of(self, target: Any) -> syntax.Expansion:
        """Return the expansion of a target."""
        return syntax.Expansion(
            target, self.depth, self.condition, self.limit, self.projection, _CURRENT
        )


def _number(text: str) -> int | float | None:
    lower = text.lower()
    if lower.startswith("0x"):
        return int(lower, base=16)
    if lower.startswith("0b"):
        return int(lower, base=2)
    if "." in lower or "e" in lower:
        value = float(lower)
        # A number that no double can hold is null.
        return value if math.isfinite(value) else None
    number = int(lower)
    return number if number < 2**63 else float(number)


def _apply(target: Any, accessors: list[Any]) -> Any:
    """Hang accessors on a target; those behind an expansion act on each of its elements.

    A second `[*]` expands each element too, as `a[*].b[*]` shows; `[**]` takes the whole result.
    """
    is_expanded = False
    for accessor in accessors:
        if not isinstance(accessor, _Inline):
            target = _deepened(target, accessor) if is_expanded else accessor(target)
        elif is_expanded and accessor.depth == 1:
            target = replace(target, access=accessor.of(target.access))
        else:
            target = accessor.of(target)
            is_expanded = True
    return target


def _deepened(expansion: syntax.Expansion, accessor: Accessor) -> syntax.Expansion:
    """Hang an accessor on the elements of the innermost expansion."""
    if isinstance(expansion.access, syntax.Expansion):
        return replace(expansion, access=_deepened(expansion.access, accessor))
    return replace(expansion, access=accessor(expansion.access))


@v_args(inline=True)
class ExpressionTree(Transformer[Token, syntax.Query]):
    """One method a grammar rule of expressions."""

    def ternary(self, test: Any, yes: Any, no: Any) -> Any:
        return syntax.Ternary(test, yes, no)

    def elvis(self, test: Any, no: Any) -> Any:
        return syntax.Ternary(test, None, no)

    def binary(self, left: Any, operator: Any, right: Any) -> Any:
        name = _OPERATORS[operator.type] if isinstance(operator, Token) else operator
        return syntax.Binary(name, left, right)

    def quantified(self, left: Any, quantifier: Any, operator: str, right: Any) -> Any:
        return syntax.Quantified(quantifier, operator, left, right)

    def equality(self, token: Token) -> Any:
        return _OPERATORS[token.type]

    inclusion = equality
    order = equality

    def unary(self, operator: Token, operand: Any) -> Any:
        if operator.type == "MINUS" and isinstance(operand, syntax.Literal):
            value = operand.value
            if isinstance(value, int | float) and not isinstance(value, bool):
                return syntax.Literal(-value if value != 0 else -0.0)
        return syntax.Unary(_OPERATORS[operator.type], operand)

    def operand(self, primary: Any, *accessors: Any) -> Any:
        return _apply(primary, list(accessors)) if accessors else primary

    def attribute(self, name: str) -> Accessor:
        return lambda target: syntax.Attribute(target, name)

    def bound_attribute(self, bind: Token) -> Accessor:
        return lambda target: syntax.BoundAttribute(target, str(bind))

    def index(self, key: Any) -> Accessor:
        return lambda target: syntax.Index(target, key)

    def stars(self, *stars: Token) -> Any:
        return len(stars)

    def inline_limit(self, first: Any, second: Any) -> Any:
        return (ZERO, first) if second is None else (first, second)

    def expansion(self, depth: int, condition: Any, limit: Any, projection: Any) -> Any:
        return _Inline(depth, condition, limit, projection)

    def question(self, amount: Any, condition: Any) -> Accessor:
        quantifier = amount or syntax.Quantifier("any")
        return lambda target: syntax.Question(target, quantifier, condition)

    def each_all(self, *_: Token) -> Any:
        return syntax.Quantifier("all")

    def each_any(self, *_: Token) -> Any:
        return syntax.Quantifier("any")

    def each_none(self, *_: Token) -> Any:
        return syntax.Quantifier("none")

    def at_least(self, number: Any) -> Any:
        return syntax.Quantifier("at_least", number)

    def exactly(self, number: Any) -> Any:
        if isinstance(number, syntax.Binary) and number.operator == "..":
            return syntax.Quantifier("number", number.left, number.right)
        return syntax.Quantifier("number", number, number)

    def parenthesised(self, value: Any) -> Any:
        return value

    def subquery(self, query: syntax.Query) -> Any:
        return syntax.Subquery(query)

    def variable(self, name: str) -> Any:
        return syntax.Name(name)

    def bind(self, token: Token) -> Any:
        return syntax.Bind(str(token))

    def collection_bind(self, token: Token) -> Any:
        return syntax.CollectionBind(str(token))

    def literal_name(self, name: str) -> Any:
        return syntax.Literal(name)

    def null(self) -> Any:
        return _NULL

    def true(self) -> Any:
        return syntax.Literal(value=True)

    def false(self) -> Any:
        return syntax.Literal(value=False)

    def number(self, token: Token) -> Any:
        return syntax.Literal(_number(token))

    def string(self, token: Token) -> Any:
        return syntax.Literal(str(token))

    def array(self, *items: Any) -> Any:
        return syntax.ArrayLiteral(items)

    def object(self, *items: Any) -> Any:
        return syntax.ObjectLiteral(items)

    def property(self, key: Any, value: Any) -> Any:
        return key, value

    def shorthand(self, name: str) -> Any:
        return syntax.Literal(name), syntax.Name(name, is_variable=True)

    def computed_key(self, value: Any) -> Any:
        return value

    def function(self, *parts: Token) -> Any:
        return "::".join(part.upper() for part in parts if part.type != "_SCOPE")

    def call(self, name: str, *arguments: Any) -> Any:
        return syntax.Call(name, arguments)

    def name(self, token: Token) -> Any:
        return str(token)
