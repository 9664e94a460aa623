"""FOR over values, LET, FILTER, SORT, LIMIT and RETURN as steps over frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.convert import truthy
from region_scheduler.embedded.arango.aql.expressions import Compiler, element
from region_scheduler.embedded.arango.aql.functions.types import typename
from region_scheduler.embedded.arango.aql.operators import number_range
from region_scheduler.embedded.arango.aql.order import equal_key, sort_key
from region_scheduler.embedded.arango.aql.run import Run
from region_scheduler.embedded.arango.aql.scope import Closure, Frame, Scope, Step
from region_scheduler.embedded.arango.aql.walk import names
from region_scheduler.embedded.arango.errors import ArangoError

Assign = Callable[[Frame, Any], None]


def assign_to(compiler: Compiler, pattern: syntax.Pattern, scope: Scope) -> Assign:
    """Declare the variables of a pattern, and return what fills them."""
    if isinstance(pattern, str):
        slot = compiler.layout.declare(scope, pattern)

        def set_slot(frame: Frame, value: Any) -> None:
            frame[slot] = value

        return set_slot
    parts: list[tuple[Any, Assign]] = []
    if isinstance(pattern, syntax.ArrayPattern):
        for place, item in enumerate(pattern.items):
            if item is not None:
                parts.append((place, assign_to(compiler, item, scope)))
        kind: type = list
    else:
        for name, target in pattern.items:
            parts.append((name, assign_to(compiler, target, scope)))
        kind = dict

    def take_apart(frame: Frame, value: Any) -> None:
        whole = value if type(value) is kind else None
        for key, assign in parts:
            assign(frame, element(whole, key))

    return take_apart


def for_values(compiler: Compiler, clause: syntax.For, scope: Scope) -> Step:
    """`FOR x IN expression`."""
    source = _iterable(compiler, clause.source, scope)
    scope.enter_loop()
    if isinstance(clause.target, str):
        slot = compiler.layout.declare(scope, clause.target)

        def loop(upstream: Iterator[Frame], _origin: Frame) -> Iterator[Frame]:
            for frame in upstream:
                tick = frame[0].tick
                for value in source(frame):
                    tick()
                    frame[slot] = value
                    yield frame

        return loop
    assign = assign_to(compiler, clause.target, scope)

    def loop_apart(upstream: Iterator[Frame], _origin: Frame) -> Iterator[Frame]:
        for frame in upstream:
            tick = frame[0].tick
            for value in source(frame):
                tick()
                assign(frame, value)
                yield frame

    return loop_apart


def _iterable(
    compiler: Compiler, node: syntax.Expression, scope: Scope
) -> Callable[[Frame], Iterable[Any]]:
    if isinstance(node, syntax.Binary) and node.operator == "..":
        low = compiler.expression(node.left, scope)
        high = compiler.expression(node.right, scope)
        return lambda frame: number_range(low(frame), high(frame))
    source = compiler.expression(node, scope)

    def array(frame: Frame) -> Iterable[Any]:
        value = source(frame)
        if type(value) is not list:
            raise ArangoError(
                1563,
                "AQL: collection or array expected as operand to FOR loop; you provided a value of"
                f" type '{typename(value)}' (while executing)",
            )
        return value

    return array


def let(compiler: Compiler, clause: syntax.Let, scope: Scope) -> Step:
    """`LET x = expression`."""
    value = compiler.expression(clause.value, scope)
    assign = assign_to(compiler, clause.target, scope)

    def step(upstream: Iterator[Frame], _origin: Frame) -> Iterator[Frame]:
        for frame in upstream:
            assign(frame, value(frame))
            yield frame

    return step


def filter_(compiler: Compiler, clause: syntax.Filter, scope: Scope) -> Step:
    """`FILTER condition`."""
    condition = compiler.expression(clause.condition, scope)

    def step(upstream: Iterator[Frame], _origin: Frame) -> Iterator[Frame]:
        for frame in upstream:
            if truthy(condition(frame)):
                yield frame
            else:
                frame[0].statistics.filtered += 1

    return step


def sort(
    compiler: Compiler,
    clause: syntax.Sort,
    scope: Scope,
    is_sorted: Callable[[Run], bool] | None = None,
) -> Step:
    """`SORT …`: stable; nothing is done where an index has delivered the order."""
    keys = [
        (compiler.expression(key.value, scope), _direction(compiler, key)) for key in clause.keys
    ]

    def step(upstream: Iterator[Frame], _origin: Frame) -> Iterator[Frame]:
        first = next(upstream, None)
        if first is None:
            return
        run: Run = first[0]
        if is_sorted is not None and is_sorted(run):
            yield first
            yield from upstream
            return
        directions = [(value, descending(first)) for value, descending in keys]
        rows = [first[:]]
        for frame in upstream:
            run.account(16)
            rows.append(frame[:])
        sort_rows(rows, directions)
        yield from rows

    return step


def sort_rows(rows: list[Frame], keys: list[tuple[Closure, bool]]) -> None:
    """Sort frames in place: one stable pass for each run of keys of one direction, last first."""
    runs = [
        (is_descending, [value for value, _ in group])
        for is_descending, group in groupby(keys, key=lambda key: key[1])
    ]
    for is_descending, values in reversed(runs):
        if len(values) == 1:
            (value,) = values
            rows.sort(key=lambda frame: sort_key(value(frame)), reverse=is_descending)
        else:
            rows.sort(
                key=lambda frame: tuple([sort_key(value(frame)) for value in values]),
                reverse=is_descending,
            )


def _direction(compiler: Compiler, key: syntax.SortKey) -> Closure:
    if key.direction is None:
        return lambda _frame: False
    if isinstance(key.direction, syntax.Literal):
        is_descending = bool(key.direction.value)
        return lambda _frame: is_descending
    bound = compiler.expression(key.direction, Scope())

    def read(frame: Frame) -> bool:
        value = bound(frame)
        if type(value) is bool:
            return not value
        if type(value) is str and value.lower() in ("asc", "desc"):
            return value.lower() == "desc"
        raise ArangoError(1501, "AQL: syntax error, invalid sort direction")

    return read


def limit(compiler: Compiler, clause: syntax.Limit, scope: Scope, is_counted: bool) -> Step:
    """`LIMIT offset, count`.

    With `is_counted` (the last LIMIT of the main query) it counts what `fullCount` reports.
    """
    for part in (clause.offset, clause.count):
        if any(scope.find(name) is not None for name in names(part)):
            raise ArangoError(1501, "AQL: syntax error, LIMIT must be constant")
    offset = compiler.expression(clause.offset, Scope())
    count = compiler.expression(clause.count, Scope())

    def step(upstream: Iterator[Frame], _origin: Frame) -> Iterator[Frame]:
        first = next(upstream, None)
        if first is None:
            return
        run: Run = first[0]
        skip = _whole(offset(first)) or 0
        left = _whole(count(first))
        seen = 0
        frame: Frame | None = first
        while frame is not None:
            seen += 1
            if seen > skip and (left is None or seen <= skip + left):
                yield frame
            if left is not None and seen >= skip + left:
                break
            frame = next(upstream, None)
        if is_counted and run.options.full_count:
            run.statistics.full_count = seen + sum(1 for _ in upstream)

    return step


def _whole(value: Any) -> int | None:
    if value is None:
        return None
    if type(value) is bool or not isinstance(value, int | float) or value < 0:
        raise ArangoError(1504, "AQL: LIMIT needs numbers that are not negative")
    return int(value)


def return_(
    compiler: Compiler, clause: syntax.Return, scope: Scope
) -> Callable[[Iterator[Frame]], Iterator[Any]]:
    """`RETURN [DISTINCT] value`: the end of a query."""
    value = compiler.expression(clause.value, scope)
    if not clause.is_distinct:

        def results(upstream: Iterator[Frame]) -> Iterator[Any]:
            for frame in upstream:
                yield value(frame)

        return results

    def distinct(upstream: Iterator[Frame]) -> Iterator[Any]:
        seen: set[Any] = set()
        for frame in upstream:
            result = value(frame)
            key = equal_key(result)
            if key not in seen:
                seen.add(key)
                yield result

    return distinct
