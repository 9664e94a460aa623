"""What a traversal walks on: the edge collections of a clause, in the direction each has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.convert import is_number
from region_scheduler.embedded.arango.aql.expressions import Compiler
from region_scheduler.embedded.arango.aql.run import Run
from region_scheduler.embedded.arango.aql.scope import Closure, Frame, Scope, collection_of
from region_scheduler.embedded.arango.aql.walk import names
from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import CollectionView, Document

# An edge and the id of the vertex at its other end.
Hop: TypeAlias = tuple[Document, str]
Expand: TypeAlias = Callable[[str], Iterator[Hop]]

REVERSED: Final = {"outbound": "inbound", "inbound": "outbound", "any": "any"}


@dataclass(frozen=True, slots=True)
class Edges:
    """One edge collection to walk on."""

    view: CollectionView
    direction: str

    def hops(self, vertex_id: str) -> Iterator[Hop]:
        """Yield the edges at a vertex with the vertex they lead to."""
        if self.direction != "inbound":
            for edge in self.view.edges(vertex_id, "outbound"):
                yield edge, edge["_to"]
        if self.direction != "outbound":
            is_any = self.direction == "any"
            for edge in self.view.edges(vertex_id, "inbound"):
                # A loop has been seen on its way out.
                if not (is_any and edge["_from"] == vertex_id):
                    yield edge, edge["_from"]


def graph_of(
    compiler: Compiler, source: syntax.GraphSource, direction: str
) -> Callable[[Frame], list[Edges]]:
    """Return a function that gives the edge collections to walk on in a run."""
    compiler.layout.has_traversal = True
    if source.graph is not None:
        return _named(compiler, source.graph, direction)
    parts = []
    for own_direction, collection in source.edges:
        compiler.layout.touch("read", collection)
        parts.append((collection_of(collection), own_direction or direction))
    compiler.layout.touch("traverse", None)

    def edges(frame: Frame) -> list[Edges]:
        run: Run = frame[0]
        found = []
        for name_of, way in parts:
            view = run.view(name_of(run))
            if not view.is_edge:
                raise ArangoError(1218, f"AQL: collection '{view.name}' is not an edge collection")
            found.append(Edges(view, way))
        return found

    return edges


def _named(
    compiler: Compiler, graph: syntax.Expression, direction: str
) -> Callable[[Frame], list[Edges]]:
    name = compiler.expression(graph, Scope())
    compiler.layout.touch("traverse", None)

    def edges(frame: Frame) -> list[Edges]:
        run: Run = frame[0]
        value = name(frame)
        if type(value) is not str:
            raise ArangoError(1501, "AQL: invalid graph name")
        found: dict[str, Edges] = {}
        for definition in run.session.graph(value):
            found[definition.collection] = Edges(run.view(definition.collection), direction)
            run.declared.update(definition.from_collections, definition.to_collections)
        return list(found.values())

    return edges


def expansion(edges: list[Edges]) -> Expand:
    """Return one function that yields the hops from a vertex over all edge collections."""
    if len(edges) == 1:
        return edges[0].hops

    def hops(vertex_id: str) -> Iterator[Hop]:
        for part in edges:
            yield from part.hops(vertex_id)

    return hops


def restricted(edges: list[Edges], options: dict[str, Any]) -> Expand:
    """Return an `expansion` that keeps to `edgeCollections` and `vertexCollections`.

    What they leave out is neither seen nor passed through.
    """
    walkable, reachable = _only(options, "edgeCollections"), _only(options, "vertexCollections")
    hops = expansion([part for part in edges if not walkable or part.view.name in walkable])
    if not reachable:
        return hops
    return lambda vertex_id: (hop for hop in hops(vertex_id) if _collection(hop[1]) in reachable)


def _collection(vertex_id: str) -> str:
    return vertex_id.partition("/")[0]


def _only(options: dict[str, Any], name: str) -> frozenset[str]:
    """Return the collections that an option names, one or several; none means all."""
    given = options.get(name) or ()
    return frozenset((given,) if isinstance(given, str) else given)


def vertex_id(run: Run, value: Any) -> str | None:
    """Return the id that a start vertex stands for; None (and a warning) if it is none.

    Raises:
        ArangoError: 1501 for a constant that can never be a vertex.
    """
    if type(value) is dict:
        value = value.get("_id")
    if type(value) is str and "/" in value:
        return value
    run.warn(10, "Invalid input for traversal: Only id strings or objects with _id are allowed")
    return None


def check_start(node: syntax.Expression) -> None:
    """Refuse a start vertex that is no vertex whatever the data.

    Raises:
        ArangoError: 1501.
    """
    if isinstance(node, syntax.Literal) and not isinstance(node.value, str):
        raise ArangoError(1501, "AQL: invalid start vertex. Must be a string or an object with _id")


def constant_options(
    compiler: Compiler, node: syntax.Expression | None, scope: Scope, known: frozenset[str]
) -> Callable[[Frame], dict[str, Any]]:
    """Return a function that gives an OPTIONS object, which may not use variables.

    Args:
        compiler: Told of options that are not `known`.
        node: The object, if there is one.
        scope: Where the clause stands.
        known: What the clause's options are called.

    Raises:
        ArangoError: 1575.
    """
    if isinstance(node, syntax.ObjectLiteral):
        keys = (key.value for key, _ in node.items if isinstance(key, syntax.Literal))
        compiler.layout.unknown_options += [key for key in keys if key not in known]
    if node is None:
        return lambda _frame: {}
    if any(scope.find(name) is not None for name in names(node)):
        raise ArangoError(1575, "AQL: query options must be readable at query compile time")
    options: Closure = compiler.expression(node, Scope())
    return lambda frame: dict(options(frame))


def weight_of(options: dict[str, Any]) -> Callable[[Document], float]:
    """Return how heavy an edge is.

    Raises:
        ArangoError: 1948 on a negative weight, at the time it is met.
    """
    attribute = options.get("weightAttribute")
    default = options.get("defaultWeight", 1)
    fallback = float(default) if is_number(default) else 1.0
    if type(attribute) is not str or not attribute:
        return lambda _edge: 1.0
    path = attribute.split(".")

    def weight(edge: Document) -> float:
        value: Any = edge
        for part in path:
            value = value.get(part) if type(value) is dict else None
        number = float(value) if is_number(value) else fallback
        if number < 0:
            raise ArangoError(1948, "negative edge weight found")
        return number

    return weight
