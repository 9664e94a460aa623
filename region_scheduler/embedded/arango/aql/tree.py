"""Lark's reductions of clauses, each turned at once into a piece of the syntax tree."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from lark import Token, v_args

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.tree_expressions import ZERO, ExpressionTree
from region_scheduler.embedded.arango.errors import ArangoError

_ONE: Final = syntax.Literal(1)


class _Counter(NamedTuple):
    name: str


@v_args(inline=True)
class TreeBuilder(ExpressionTree):
    """One method a grammar rule of clauses."""

    # Lark calls these by the rule's name; their arguments are the rule's parts in order.

    def start(self, declared: Any, query: syntax.Query) -> Any:
        return syntax.Query(query.clauses, declared or ())

    def with_(self, *collections: Any) -> Any:
        return collections

    def query(self, *clauses: Any) -> Any:
        for clause in clauses[:-1]:
            if isinstance(clause, syntax.Return):
                raise ArangoError(1501, "AQL: syntax error, unexpected clause after RETURN")
        flat: list[Any] = []
        for clause in clauses:
            flat.extend(clause) if isinstance(clause, tuple) else flat.append(clause)
        if isinstance(flat[-1], syntax.Return) and flat[-1].is_distinct and not _loops(flat):
            raise ArangoError(
                1501, "AQL: syntax error, cannot use DISTINCT modifier on top-level query element"
            )
        return syntax.Query(tuple(flat))

    # --- reading

    def targets(self, *patterns: Any) -> Any:
        return patterns

    def for_(self, targets: Any, source: Any, options: Any) -> Any:
        if len(targets) != 1:
            raise ArangoError(1501, "AQL: syntax error, unexpected ',' in FOR over a collection")
        return syntax.For(targets[0], source, options)

    def traverse(
        self,
        targets: Any,
        steps: Any,
        direction: str,
        start: Any,
        graph: Any,
        prune: Any,
        options: Any,
    ) -> Any:
        low, high = _steps(steps, _ONE)
        name, condition = prune or (None, None)
        return syntax.Traverse(
            _variables(targets, 3),
            low,
            high,
            direction,
            start,
            graph,
            name,
            condition,
            options,
        )

    def paths(
        self,
        targets: Any,
        steps: Any,
        direction: str,
        kind: str,
        start: Any,
        goal: Any,
        graph: Any,
        options: Any,
    ) -> Any:
        if steps is not None and kind != "k_paths":
            raise ArangoError(1501, f"AQL: syntax error, unexpected depth for {kind.upper()}")
        low, high = _steps(steps, _ONE)
        names = _variables(targets, 2 if kind == "shortest_path" else 1)
        return syntax.Paths(kind, names, low, high, direction, start, goal, graph, options)

    def outbound(self) -> Any:
        return "outbound"

    def inbound(self) -> Any:
        return "inbound"

    def any(self) -> Any:
        return "any"

    def path_kind(self, token: Token) -> Any:
        return token.type[1:].lower()

    def named_graph(self, name: Any) -> Any:
        return syntax.GraphSource(graph=name)

    def edge_collections(self, *edges: Any) -> Any:
        return syntax.GraphSource(edges=edges)

    def edges(self, direction: Any, collection: Any) -> Any:
        return direction, collection

    def prune(self, condition: Any) -> Any:
        return None, condition

    def named_prune(self, name: str, condition: Any) -> Any:
        return name, condition

    def options(self, value: Any) -> Any:
        return value

    def let(self, *assignments: Any) -> Any:
        return assignments

    def assignment(self, pattern: Any, value: Any) -> Any:
        return syntax.Let(pattern, value)

    def array_pattern(self, *items: Any) -> Any:
        return syntax.ArrayPattern(items)

    def object_pattern(self, *members: Any) -> Any:
        return syntax.ObjectPattern(members)

    def member(self, name: Any, pattern: Any) -> Any:
        return str(name), str(name) if pattern is None else pattern

    def filter(self, condition: Any) -> Any:
        return syntax.Filter(condition)

    def sort(self, *keys: Any) -> Any:
        return syntax.Sort(keys)

    def sort_key(self, value: Any, direction: Any) -> Any:
        return syntax.SortKey(value, direction)

    def ascending(self) -> Any:
        return syntax.Literal(value=False)

    def descending(self) -> Any:
        return syntax.Literal(value=True)

    def limit(self, first: Any, second: Any) -> Any:
        return syntax.Limit(ZERO, first) if second is None else syntax.Limit(first, second)

    def return_(self, distinct: Any, value: Any) -> Any:
        return syntax.Return(value, is_distinct=distinct is not None)

    def collect(self, groups: Any, aggregate: Any, into: Any, keep: Any, options: Any) -> Any:
        is_count = isinstance(into, _Counter)
        if (is_count and (aggregate or keep)) or (keep and into is None):
            raise ArangoError(1501, "AQL: syntax error, COLLECT parts that exclude each other")
        if groups is None and aggregate is None and into is None:
            raise ArangoError(1501, "AQL: syntax error, COLLECT without anything to collect")
        name, value = (into.name, None) if isinstance(into, _Counter) else into or (None, None)
        return syntax.Collect(
            groups or (), aggregate or (), name, value, keep or (), is_count, options
        )

    def groups(self, *groups: Any) -> Any:
        return groups

    def group(self, name: str, value: Any) -> Any:
        return name, value

    def aggregate(self, *groups: Any) -> Any:
        for _, value in groups:
            if not isinstance(value, syntax.Call):
                raise ArangoError(1501, "AQL: syntax error, aggregate expression must be a call")
        return groups

    def into(self, name: str, value: Any = None) -> Any:
        return name, value

    def counter(self, name: str) -> Any:
        return _Counter(name)

    def keep(self, *names: str) -> Any:
        return names

    def window(self, first: Any, frame: Any, aggregates: Any) -> Any:
        if frame is None:
            return syntax.Window(None, first, aggregates)
        return syntax.Window(first, frame, aggregates)

    # --- writing

    def insert(self, document: Any, collection: Any, options: Any) -> Any:
        return syntax.Insert(document, collection, options)

    def update(self, selector: Any, patch: Any, collection: Any, options: Any) -> Any:
        return syntax.Update(selector, patch, collection, False, options)

    def replace(self, selector: Any, patch: Any, collection: Any, options: Any) -> Any:
        return syntax.Update(selector, patch, collection, True, options)

    def remove(self, selector: Any, collection: Any, options: Any) -> Any:
        return syntax.Remove(selector, collection, options)

    def upsert_filter(self, condition: Any) -> Any:
        return syntax.Filter(condition)

    def upsert_verb(self, token: Token) -> Any:
        return token.type == "_REPLACE"

    def upsert(
        self,
        search: Any,
        insert: Any,
        is_replace: bool,
        patch: Any,
        collection: Any,
        options: Any,
    ) -> Any:
        is_filter = isinstance(search, syntax.Filter)
        search = search.condition if isinstance(search, syntax.Filter) else search
        return syntax.Upsert(search, insert, patch, collection, is_replace, options, is_filter)


def _loops(clauses: list[Any]) -> bool:
    loops = syntax.For | syntax.Traverse | syntax.Paths | syntax.Collect
    return any(isinstance(clause, loops) for clause in clauses)


def _variables(targets: tuple[Any, ...], most: int) -> tuple[str, ...]:
    if len(targets) > most or not all(isinstance(name, str) for name in targets):
        raise ArangoError(1501, "AQL: syntax error, unexpected variable list in a graph FOR")
    return targets


def _steps(steps: Any, default: Any) -> tuple[Any, Any]:
    if steps is None:
        return default, default
    if isinstance(steps, syntax.Binary) and steps.operator == "..":
        return steps.left, steps.right
    return steps, steps
