"""COLLECT: group rows, count them, aggregate them, keep them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.aggregates import AGGREGATES, Aggregate
from region_scheduler.embedded.arango.aql.expressions import Compiler
from region_scheduler.embedded.arango.aql.order import equal_key, sort_key
from region_scheduler.embedded.arango.aql.scope import Closure, Frame, Scope, Step
from region_scheduler.embedded.arango.errors import ArangoError


@dataclass(slots=True)
class _Group:
    """One group in the making."""

    keys: list[Any]
    aggregates: list[Aggregate]
    rows: list[Any]
    count: int = 0


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One assignment behind AGGREGATE, without its variable."""

    start: Callable[[], Aggregate]
    argument: Closure


def aggregate_calls(
    compiler: Compiler, aggregates: tuple[tuple[str, syntax.Call], ...], scope: Scope
) -> list[AggregateCall]:
    """Compile what stands behind AGGREGATE.

    Raises:
        ArangoError: 1574 for a function that does not aggregate, 1541 for wrong arguments.
    """
    calls = []
    for _, call in aggregates:
        start = AGGREGATES.get(call.name)
        if start is None:
            raise ArangoError(1574, f"AQL: invalid aggregate expression '{call.name}()'")
        is_count = call.name in ("LENGTH", "COUNT")
        if len(call.arguments) > 1 or not (call.arguments or is_count):
            raise ArangoError(
                1541,
                f"AQL: invalid number of arguments for function '{call.name}()', expected number"
                " of arguments: minimum: 1, maximum: 1",
            )
        argument: syntax.Expression = call.arguments[0] if call.arguments else syntax.Literal(None)
        calls.append(AggregateCall(start, compiler.expression(argument, scope)))
    return calls


def collect(compiler: Compiler, clause: syntax.Collect, scope: Scope) -> Step:
    """Return the step of a COLLECT, whose groups come sorted by their keys."""
    keys = [compiler.expression(value, scope) for _, value in clause.groups]
    calls = aggregate_calls(compiler, clause.aggregates, scope)
    keep_row = _keeper(compiler, clause, scope)
    scope.regroup()
    layout = compiler.layout
    key_slots = [layout.declare(scope, name) for name, _ in clause.groups]
    aggregate_slots = [layout.declare(scope, name) for name, _ in clause.aggregates]
    into_slot = layout.declare(scope, clause.into) if clause.into is not None else None
    is_count = clause.is_count

    def step(upstream: Iterator[Frame], origin: Frame) -> Iterator[Frame]:
        groups: dict[Any, _Group] = {}
        for frame in upstream:
            values = [key(frame) for key in keys]
            group = _group_of(groups, values, calls)
            group.count += 1
            if calls:
                for call, state in zip(calls, group.aggregates, strict=True):
                    state.add(call.argument(frame))
            if keep_row is not None:
                row = keep_row(frame)
                frame[0].account(row)
                group.rows.append(row)
        if not keys and not groups:
            _group_of(groups, [], calls)
        found = list(groups.values())
        if keys:
            found.sort(key=lambda group: [sort_key(value) for value in group.keys])
        for group in found:
            frame = origin[:]
            for slot, value in zip(key_slots, group.keys, strict=True):
                frame[slot] = value
            for slot, state in zip(aggregate_slots, group.aggregates, strict=True):
                frame[slot] = state.result()
            if into_slot is not None:
                frame[into_slot] = group.count if is_count else group.rows
            yield frame

    return step


def _group_of(groups: dict[Any, _Group], values: list[Any], calls: list[AggregateCall]) -> _Group:
    key: Any = equal_key(values[0]) if len(values) == 1 else tuple(map(equal_key, values))
    group = groups.get(key)
    if group is None:
        group = groups[key] = _Group(values, [call.start() for call in calls], [])
    return group


def _keeper(compiler: Compiler, clause: syntax.Collect, scope: Scope) -> Closure | None:
    """Return what INTO keeps of a row; None if there is no INTO."""
    if clause.into is None or clause.is_count:
        return None
    if clause.into_value is not None:
        return compiler.expression(clause.into_value, scope)
    kept = scope.collected()
    if clause.keep:
        slots: dict[str, int] = {}
        for name in clause.keep:
            slot = scope.find(name)
            if slot is None:
                raise ArangoError(1512, f"AQL: use of unknown variable '{name}' for KEEP")
            slots[name] = slot
        kept = slots
    pairs = list(kept.items())
    return lambda frame: {name: frame[slot] for name, slot in pairs}
