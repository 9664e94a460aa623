"""`FOR v, e, p IN min..max …`: depth first, breadth first, or lightest path first.

No walk recurses: a path is a chain of hops, each pointing to the one before.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.convert import is_number, truthy
from region_scheduler.embedded.arango.aql.expressions import Compiler
from region_scheduler.embedded.arango.aql.graph import (
    Expand,
    check_start,
    constant_options,
    graph_of,
    restricted,
    vertex_id,
    weight_of,
)
from region_scheduler.embedded.arango.aql.run import Run
from region_scheduler.embedded.arango.aql.scope import Closure, Frame, Scope, Step
from region_scheduler.embedded.arango.aql.walk import nodes
from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import Document

_OPTIONS: Final = frozenset(
    {
        *("order", "bfs", "uniqueVertices", "uniqueEdges", "edgeCollections", "vertexCollections"),
        *("parallelism", "maxProjections", "indexHint", "weightAttribute", "defaultWeight"),
        "useCache",
    }
)


class Hop:
    """One vertex of a path, and the edge and hop that led to it."""

    __slots__ = ("depth", "edge", "parent", "vertex_id", "weight")

    def __init__(
        self, vertex: str, edge: Document | None, parent: Hop | None, weight: float = 0.0
    ) -> None:
        self.vertex_id = vertex
        self.edge = edge
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.weight = weight

    def chain(self) -> list[Hop]:
        """Return the hops from the start to this one."""
        hops: list[Hop] = []
        hop: Hop | None = self
        while hop is not None:
            hops.append(hop)
            hop = hop.parent
        hops.reverse()
        return hops


@dataclass(frozen=True, slots=True)
class Rules:
    """What a walk must keep to.

    Attributes:
        order: dfs, bfs or weighted.
        vertices: none, path or global: where a vertex may not come twice.
        edges: none or path.
        options: As they were given.
    """

    low: int
    high: int
    order: str
    vertices: str
    edges: str
    weight: Callable[[Document], float]
    options: dict[str, Any]


Prune = Callable[[Hop], bool]


def traverse(compiler: Compiler, clause: syntax.Traverse, scope: Scope) -> Step:
    """Return the step of a traversal."""
    check_start(clause.start)
    rules_of = _rules_of(compiler, clause, scope)
    start = compiler.expression(clause.start, scope)
    edges_of = graph_of(compiler, clause.graph, clause.direction)
    scope.enter_loop()
    fill = _filler(compiler, clause, scope)
    prune = compiler.expression(clause.prune, scope) if clause.prune is not None else None
    pruned_slot = (
        compiler.layout.declare(scope, clause.prune_name) if clause.prune_name is not None else None
    )

    def step(upstream: Iterator[Frame], _origin: Frame) -> Iterator[Frame]:
        for frame in upstream:
            run: Run = frame[0]
            rules = rules_of(frame)
            expand = restricted(edges_of(frame), rules.options)
            origin = vertex_id(run, start(frame))
            if origin is None:
                continue
            run.require_declared(origin)
            cut = _pruner(prune, pruned_slot, fill, frame)
            walk = _WALKS[rules.order] if rules.high != 1 or cut is not None else _single_step
            for hop in walk(run, origin, expand, rules, cut):
                fill(frame, hop)
                yield frame

    return step


def _rules_of(
    compiler: Compiler, clause: syntax.Traverse, scope: Scope
) -> Callable[[Frame], Rules]:
    """Return what gives a frame's rules; they are worked out once if nothing in them varies."""
    low = compiler.expression(clause.low, scope)
    high = compiler.expression(clause.high, scope)
    options_of = constant_options(compiler, clause.options, scope, _OPTIONS)
    fixed = (syntax.Literal, syntax.ObjectLiteral)
    parts = (clause.low, clause.high, clause.options)
    if not all(isinstance(found, fixed) for found in nodes(parts)):
        return lambda frame: _rules(low(frame), high(frame), options_of(frame))
    nothing: Frame = []
    rules = _rules(low(nothing), high(nothing), options_of(nothing))
    return lambda _frame: rules


def _filler(
    compiler: Compiler, clause: syntax.Traverse, scope: Scope
) -> Callable[[Frame, Hop], None]:
    slots = [compiler.layout.declare(scope, name) for name in clause.variables]
    vertex_slot = slots[0]
    edge_slot = slots[1] if len(slots) > 1 else 0
    # A path takes as long to build as it is: not for a variable that nobody reads.
    has_path = len(slots) > 2 and compiler.layout.is_used(clause.variables[2])
    path_slot = slots[2] if has_path else 0

    def fill(frame: Frame, hop: Hop) -> None:
        run: Run = frame[0]
        frame[vertex_slot] = run.vertex(hop.vertex_id)
        if edge_slot:
            frame[edge_slot] = hop.edge
        if path_slot:
            frame[path_slot] = path_value(run, hop)

    return fill


def path_value(run: Run, hop: Hop) -> dict[str, Any]:
    """Return a path as AQL shows it."""
    chain = hop.chain()
    return {
        "vertices": [run.vertex(part.vertex_id) for part in chain],
        "edges": [part.edge for part in chain[1:]],
        "weights": [part.weight for part in chain],
    }


def _pruner(
    prune: Closure | None, slot: int | None, fill: Callable[[Frame, Hop], None], frame: Frame
) -> Prune | None:
    if prune is None:
        return None

    def cut(hop: Hop) -> bool:
        fill(frame, hop)
        value = prune(frame)
        if slot is not None:
            frame[slot] = value
        return truthy(value)

    return cut


def _rules(low: Any, high: Any, options: dict[str, Any]) -> Rules:
    if not is_number(low) or not is_number(high) or low < 0 or high < low:
        raise ArangoError(1501, "AQL: invalid traversal depth")
    order = options.get("order") or ("bfs" if options.get("bfs") is True else "dfs")
    vertices = options.get("uniqueVertices", "none")
    edges = options.get("uniqueEdges", "path")
    if order not in _WALKS or vertices not in ("none", "path", "global"):
        raise ArangoError(1501, "AQL: invalid traversal option")
    if edges not in ("none", "path"):
        raise ArangoError(1501, "AQL: invalid value for uniqueEdges")
    if vertices == "global" and order == "dfs":
        raise ArangoError(
            1501, "AQL: uniqueVertices: 'global' is only supported with order 'bfs' or 'weighted'"
        )
    return Rules(int(low), int(high), order, vertices, edges, weight_of(options), options)


# --- the walks


def _single_step(
    run: Run, origin: str, expand: Expand, rules: Rules, _cut: Prune | None
) -> Iterator[Hop]:
    """Walk one edge, where no order and no repetition is to be minded but in `global`."""
    root = Hop(origin, None, None)
    if rules.low == 0:
        yield root
    hops = list(expand(origin))
    if rules.order == "dfs":
        hops.reverse()
    if rules.order == "weighted":
        hops.sort(key=lambda found: rules.weight(found[0]))
    seen = {origin} if rules.vertices != "none" else None
    for edge, target in hops:
        run.tick()
        if seen is not None:
            if target in seen:
                continue
            if rules.vertices == "global":
                seen.add(target)
        yield Hop(target, edge, root, rules.weight(edge))


def _depth_first(
    run: Run, origin: str, expand: Expand, rules: Rules, cut: Prune | None
) -> Iterator[Hop]:
    """Walk with one open iterator a level; what is on the path is kept in two sets.

    Of the edges at a vertex the last comes first: the server keeps open edges on a stack.
    """
    root = Hop(origin, None, None)
    is_cut = cut is not None and cut(root)
    if rules.low == 0:
        yield root
    if is_cut or rules.high == 0:
        return
    on_path_vertices = {origin} if rules.vertices == "path" else None
    on_path_edges: set[str] | None = set() if rules.edges == "path" else None
    stack = [(root, reversed(list(expand(origin))))]
    while stack:
        parent, hops = stack[-1]
        found = next(hops, None)
        if found is None:
            stack.pop()
            if on_path_vertices is not None:
                on_path_vertices.discard(parent.vertex_id)
            if on_path_edges is not None and parent.edge is not None:
                on_path_edges.discard(parent.edge["_id"])
            continue
        edge, target = found
        if on_path_edges is not None and edge["_id"] in on_path_edges:
            continue
        if on_path_vertices is not None and target in on_path_vertices:
            continue
        run.tick()
        hop = Hop(target, edge, parent)
        is_cut = cut is not None and cut(hop)
        if hop.depth >= rules.low:
            yield hop
        if is_cut or hop.depth >= rules.high:
            continue
        stack.append((hop, reversed(list(expand(target)))))
        if on_path_vertices is not None:
            on_path_vertices.add(target)
        if on_path_edges is not None:
            on_path_edges.add(edge["_id"])


def _breadth_first(
    run: Run, origin: str, expand: Expand, rules: Rules, cut: Prune | None
) -> Iterator[Hop]:
    queue = deque([Hop(origin, None, None)])
    seen = {origin} if rules.vertices == "global" else None
    while queue:
        hop = queue.popleft()
        is_cut = cut is not None and cut(hop)
        if hop.depth >= rules.low:
            yield hop
        if is_cut or hop.depth >= rules.high:
            continue
        for edge, target in expand(hop.vertex_id):
            if seen is not None:
                if target in seen:
                    continue
                seen.add(target)
            elif not _is_new_on_path(hop, edge, target, rules):
                continue
            run.tick()
            queue.append(Hop(target, edge, hop))


def _is_new_on_path(hop: Hop, edge: Document, target: str, rules: Rules) -> bool:
    checks_vertices = rules.vertices == "path"
    if not checks_vertices and rules.edges == "none":
        return True
    part: Hop | None = hop
    edge_id = edge["_id"]
    while part is not None:
        if checks_vertices and part.vertex_id == target:
            return False
        if rules.edges == "path" and part.edge is not None and part.edge["_id"] == edge_id:
            return False
        part = part.parent
    return True


def _lightest_first(
    run: Run, origin: str, expand: Expand, rules: Rules, cut: Prune | None
) -> Iterator[Hop]:
    count = 0
    heap = [(0.0, count, Hop(origin, None, None))]
    seen: set[str] | None = set() if rules.vertices == "global" else None
    while heap:
        _, _, hop = heapq.heappop(heap)
        if seen is not None:
            if hop.vertex_id in seen:
                continue
            seen.add(hop.vertex_id)
        is_cut = cut is not None and cut(hop)
        if hop.depth >= rules.low:
            yield hop
        if is_cut or hop.depth >= rules.high:
            continue
        for edge, target in expand(hop.vertex_id):
            if seen is not None:
                if target in seen:
                    continue
            elif not _is_new_on_path(hop, edge, target, rules):
                continue
            run.tick()
            count += 1
            further = Hop(target, edge, hop, hop.weight + rules.weight(edge))
            heapq.heappush(heap, (further.weight, count, further))


_WALKS: Final = {"dfs": _depth_first, "bfs": _breadth_first, "weighted": _lightest_first}
