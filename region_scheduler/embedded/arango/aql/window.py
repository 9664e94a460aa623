"""WINDOW: an aggregate for each row over the rows around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.collect import AggregateCall, aggregate_calls
from region_scheduler.embedded.arango.aql.convert import is_number
from region_scheduler.embedded.arango.aql.dates import Duration, parse_date
from region_scheduler.embedded.arango.aql.expressions import Compiler
from region_scheduler.embedded.arango.aql.order import sort_key
from region_scheduler.embedded.arango.aql.scope import Closure, Frame, Scope, Step
from region_scheduler.embedded.arango.aql.walk import names
from region_scheduler.embedded.arango.errors import ArangoError

# From a row's position to the rows that its window holds: [first, end).
Reach = Callable[[int], tuple[int, int]]


def window(compiler: Compiler, clause: syntax.Window, scope: Scope) -> Step:
    """Return the step of a WINDOW."""
    if any(scope.find(name) is not None for name in names(clause.frame)):
        raise ArangoError(1575, "AQL: WINDOW bounds must be readable at query compile time")
    bounds = compiler.expression(clause.frame, Scope())
    by = None if clause.range_value is None else compiler.expression(clause.range_value, scope)
    calls = aggregate_calls(compiler, clause.aggregates, scope)
    slots = [compiler.layout.declare(scope, name) for name, _ in clause.aggregates]

    def step(upstream: Iterator[Frame], _origin: Frame) -> Iterator[Frame]:
        rows = [frame[:] for frame in upstream]
        if not rows:
            return
        given = bounds(rows[0])
        before, after = _bound(given, "preceding"), _bound(given, "following")
        if by is None:
            reach = _rows_around(len(rows), before, after)
        else:
            rows.sort(key=lambda frame: sort_key(by(frame)))
            reach = _values_around(rows, by, before, after)
        arguments = [[call.argument(row) for row in rows] for call in calls]
        for position, row in enumerate(rows):
            first, end = reach(position)
            for slot, call, values in zip(slots, calls, arguments, strict=True):
                row[slot] = _aggregate(call, values[first:end])
            yield row

    return step


def _aggregate(call: AggregateCall, values: list[Any]) -> Any:
    state = call.start()
    for value in values:
        state.add(value)
    return state.result()


def _bound(given: Any, name: str) -> Any:
    if type(given) is not dict:
        raise ArangoError(1575, "AQL: WINDOW bounds must be an object")
    return given.get(name, 0)


def _rows_around(total: int, before: Any, after: Any) -> Reach:
    back, ahead = _row_count(before, total), _row_count(after, total)
    return lambda position: (max(0, position - back), min(total, position + ahead + 1))


def _row_count(bound: Any, total: int) -> int:
    if bound == "unbounded":
        return total
    if not is_number(bound) or bound < 0 or bound != int(bound):
        raise ArangoError(1501, "AQL: WINDOW row bounds must be positive integers or 'unbounded'")
    return int(bound)


def _values_around(rows: list[Frame], by: Closure, before: Any, after: Any) -> Reach:
    """Return the reach of a range window: numbers, or dates if the bounds are durations."""
    is_date = any(type(bound) is str and bound != "unbounded" for bound in (before, after))
    points = [_point(rows[0][0], by(row), is_date) for row in rows]
    total = len(rows)

    def reach(position: int) -> tuple[int, int]:
        point = points[position]
        if point is None:
            return position, position
        low = _shifted(point, before, -1)
        high = _shifted(point, after, 1)
        inside = [
            place
            for place, other in enumerate(points)
            if other is not None and low <= other <= high
        ]
        return (inside[0], inside[-1] + 1) if inside else (total, total)

    return reach


def _point(run: Any, value: Any, is_date: bool) -> float | None:
    if is_date:
        instant = parse_date(value)
        if instant is not None:
            return instant
    elif is_number(value):
        return float(value)
    run.warn(1542, "WINDOW")
    return None


def _shifted(point: float, bound: Any, sign: int) -> float:
    if bound == "unbounded":
        return sign * float("inf")
    if type(bound) is str:
        duration = Duration.parse(bound)
        if duration is None:
            raise ArangoError(1501, "AQL: WINDOW range bound is no duration")
        return duration.added_to(point, sign)
    if not is_number(bound) or bound < 0:
        raise ArangoError(1501, "AQL: WINDOW range bounds must be positive numbers or durations")
    return point + sign * float(bound)
