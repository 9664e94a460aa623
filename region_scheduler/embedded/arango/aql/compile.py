"""From text to something that runs: parsed and compiled once, executed many times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from region_scheduler.embedded.arango.aql import expressions, operators, syntax
from region_scheduler.embedded.arango.aql.arrange import arrange
from region_scheduler.embedded.arango.aql.calls import call
from region_scheduler.embedded.arango.aql.clauses import (
    filter_,
    for_values,
    let,
    limit,
    return_,
    sort,
)
from region_scheduler.embedded.arango.aql.collect import collect
from region_scheduler.embedded.arango.aql.collections import CollectionLoop
from region_scheduler.embedded.arango.aql.explain import PlanNote, marker, note_of
from region_scheduler.embedded.arango.aql.modification import modification
from region_scheduler.embedded.arango.aql.paths import paths
from region_scheduler.embedded.arango.aql.run import Run
from region_scheduler.embedded.arango.aql.scope import Closure, Frame, Layout, Scope, Step
from region_scheduler.embedded.arango.aql.traversal import traverse
from region_scheduler.embedded.arango.aql.walk import has_modification, is_unseen
from region_scheduler.embedded.arango.aql.window import window

Pipeline: TypeAlias = Callable[[Frame], Iterator[Any]]

_EXPRESSIONS: Final[dict[type, Callable[..., Closure]]] = {
    syntax.Literal: expressions.literal,
    syntax.Bind: expressions.bind,
    syntax.CollectionBind: expressions.collection,
    syntax.Name: expressions.name,
    syntax.Attribute: expressions.attribute,
    syntax.BoundAttribute: expressions.bound_attribute,
    syntax.Index: expressions.index,
    syntax.Expansion: expressions.expansion,
    syntax.Question: expressions.question,
    syntax.ArrayLiteral: expressions.array,
    syntax.ObjectLiteral: expressions.object_,
    syntax.Ternary: expressions.ternary,
    syntax.Subquery: expressions.subquery,
    syntax.Unary: operators.unary,
    syntax.Binary: operators.binary,
    syntax.Quantified: operators.quantified,
    syntax.Call: call,
}
_STEPS: Final[dict[type, Callable[..., Step]]] = {
    syntax.For: for_values,
    syntax.Let: let,
    syntax.Filter: filter_,
    syntax.Traverse: traverse,
    syntax.Paths: paths,
    syntax.Collect: collect,
    syntax.Window: window,
    syntax.Insert: modification,
    syntax.Update: modification,
    syntax.Remove: modification,
    syntax.Upsert: modification,
}


class QueryCompiler:
    """Turns one syntax tree into closures."""

    def __init__(self) -> None:
        self.layout = Layout()

    def expression(self, node: syntax.Expression, scope: Scope) -> Closure:
        """Return a closure that computes an expression from a frame."""
        self.layout.enter()
        try:
            return _EXPRESSIONS[type(node)](self, node, scope)
        finally:
            self.layout.leave()

    def subquery(self, node: syntax.Subquery, scope: Scope) -> Closure:
        """Return a closure that computes the array of a subquery's results."""
        plan = self.layout.plan
        plan.append(marker("SubqueryStartNode"))
        pipeline = self.pipeline(node.query.clauses, Scope(parent=scope))
        plan.append(marker("SubqueryEndNode"))
        return lambda frame: list(pipeline(frame))

    def pipeline(
        self, clauses: Sequence[syntax.Clause], scope: Scope, is_main: bool = False
    ) -> Pipeline:
        """Return a function that yields the query's results for one outer frame."""
        arranged = arrange(tuple(clauses))
        steps: list[Step] = []
        results: Callable[[Iterator[Frame]], Iterator[Any]] = _nothing
        last_limit = max(
            (i for i, clause in enumerate(arranged) if isinstance(clause, syntax.Limit)),
            default=-1,
        )
        sorted_by: Callable[[Run], bool] | None = None
        is_one_row = True
        position = 0
        while position < len(arranged):
            clause = arranged[position]
            position += 1
            if isinstance(clause, syntax.For) and _is_collection(clause.source, scope):
                position, filters, order = _gather(arranged, position)
                rest = arranged[position:]
                loop = CollectionLoop(
                    self,
                    clause,
                    scope,
                    filters,
                    order if is_one_row else None,
                    is_bare=is_unseen(clause.target, rest),
                )
                steps.append(loop.step())
                self.layout.plan.append(PlanNote(loop.describe))
                sorted_by = loop.is_sorted if order is not None and is_one_row else None
                is_one_row = False
                continue
            if isinstance(clause, syntax.Return):
                results = return_(self, clause, scope)
            elif isinstance(clause, syntax.Sort):
                steps.append(sort(self, clause, scope, sorted_by))
            elif isinstance(clause, syntax.Limit):
                steps.append(limit(self, clause, scope, is_main and position - 1 == last_limit))
            else:
                steps.append(_STEPS[type(clause)](self, clause, scope))
            is_sort_saved = isinstance(clause, syntax.Sort) and sorted_by is not None
            self.layout.plan.append(_sort_note(sorted_by) if is_sort_saved else note_of(clause))
            if not isinstance(clause, syntax.Let | syntax.Filter):
                sorted_by = None
                is_one_row = False
        return _chain(steps, results)


def _sort_note(sorted_by: Callable[[Run], bool] | None) -> PlanNote:
    """Return the note of a SORT that an index may save."""

    def describe(run: Run) -> Sequence[dict[str, Any]]:
        if sorted_by is not None and sorted_by(run):
            return ()
        return ({"type": "SortNode"},)

    return PlanNote(describe)


def _is_collection(source: syntax.Expression, scope: Scope) -> bool:
    if isinstance(source, syntax.CollectionBind):
        return True
    return isinstance(source, syntax.Name) and scope.find(source.name) is None


def _gather(
    clauses: Sequence[syntax.Clause], position: int
) -> tuple[int, list[syntax.Filter], syntax.Sort | None]:
    """Return the place behind a FOR's filters, the filters, and a SORT that may follow."""
    filters: list[syntax.Filter] = []
    while position < len(clauses):
        clause = clauses[position]
        if not isinstance(clause, syntax.Filter):
            break
        filters.append(clause)
        position += 1
    for clause in clauses[position:]:
        if isinstance(clause, syntax.Sort):
            return position, filters, clause
        if not isinstance(clause, syntax.Filter | syntax.Let) or has_modification(clause):
            break
    return position, filters, None


def _nothing(upstream: Iterator[Frame]) -> Iterator[Any]:
    """End a query that returns nothing: drain it for its effects."""
    for _ in upstream:
        pass
    return iter(())


def _chain(steps: Sequence[Step], results: Callable[[Iterator[Frame]], Iterator[Any]]) -> Pipeline:
    if len(steps) == 1:
        (only,) = steps
        return lambda frame: results(only(iter((frame,)), frame))

    def pipeline(frame: Frame) -> Iterator[Any]:
        stream: Iterator[Frame] = iter((frame,))
        for step in steps:
            stream = step(stream, frame)
        return results(stream)

    return pipeline
