"""Path searches on a network of edge collections, none of them recursive."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from region_scheduler.embedded.arango.aql.graph import REVERSED, Edges, Hop, expansion
from region_scheduler.embedded.arango.aql.run import Run
from region_scheduler.embedded.arango.session import Document


@dataclass(frozen=True, slots=True)
class Route:
    """One path: a vertex more than edges."""

    vertices: tuple[str, ...]
    edges: tuple[Document, ...]
    weight: float


class Network:
    """What a search walks on, forwards and backwards."""

    def __init__(self, run: Run, edges: list[Edges], weight: Callable[[Document], float]) -> None:
        self.run = run
        self.weight = weight
        self._forward = expansion(edges)
        self._backward = expansion([Edges(e.view, REVERSED[e.direction]) for e in edges])

    def after(self, vertex: str) -> Iterator[Hop]:
        """Yield the edges that leave a vertex, with where they lead."""
        for hop in self._forward(vertex):
            self.run.tick()
            yield hop

    def before(self, vertex: str) -> Iterator[Hop]:
        """Yield the edges that enter a vertex, with where they come from."""
        for hop in self._backward(vertex):
            self.run.tick()
            yield hop


def lightest(
    network: Network,
    start: str,
    goal: str,
    closed: frozenset[str] = frozenset(),
    banned: frozenset[str] = frozenset(),
) -> Route | None:
    """Return the lightest path (Dijkstra), or None.

    Args:
        network: Where to search.
        start: Id of the first vertex.
        goal: Id of the last vertex.
        closed: Vertices that may not be used.
        banned: Ids of edges that may not be used.
    """
    best = {start: 0.0}
    origin: dict[str, tuple[str, Document]] = {}
    done: set[str] = set()
    heap = [(0.0, 0, start)]
    count = 0
    while heap:
        weight, _, vertex = heapq.heappop(heap)
        if vertex == goal:
            return _traced(start, goal, origin, weight)
        if vertex in done:
            continue
        done.add(vertex)
        for edge, target in network.after(vertex):
            if target in done or target in closed or edge["_id"] in banned:
                continue
            total = weight + network.weight(edge)
            if target not in best or total < best[target]:
                best[target] = total
                origin[target] = (vertex, edge)
                count += 1
                heapq.heappush(heap, (total, count, target))
    return None


def _traced(start: str, goal: str, origin: dict[str, tuple[str, Document]], weight: float) -> Route:
    vertices, edges = [goal], []
    while vertices[-1] != start:
        vertex, edge = origin[vertices[-1]]
        vertices.append(vertex)
        edges.append(edge)
    return Route(tuple(reversed(vertices)), tuple(reversed(edges)), weight)


def lightest_in_order(network: Network, start: str, goal: str) -> Iterator[Route]:
    """Yield paths without loops from the lightest on (Yen's algorithm)."""
    first = lightest(network, start, goal)
    if first is None:
        return
    found: list[Route] = []
    heap: list[tuple[float, int, Route]] = [(first.weight, 0, first)]
    known = {_identity(first)}
    count = 0
    while heap:
        _, _, route = heapq.heappop(heap)
        found.append(route)
        yield route
        for place in range(len(route.edges)):
            deviation = _deviation(network, route, place, found, goal)
            if deviation is not None and _identity(deviation) not in known:
                known.add(_identity(deviation))
                count += 1
                heapq.heappush(heap, (deviation.weight, count, deviation))


def _identity(route: Route) -> tuple[str, ...]:
    return tuple(edge["_id"] for edge in route.edges)


def _deviation(
    network: Network, route: Route, place: int, found: list[Route], goal: str
) -> Route | None:
    """Return the lightest path that shares `place` edges with `route` and then leaves all known."""
    root = _identity(route)[:place]
    banned = frozenset(
        other.edges[place]["_id"]
        for other in found
        if len(other.edges) > place and _identity(other)[:place] == root
    )
    closed = frozenset(route.vertices[:place])
    rest = lightest(network, route.vertices[place], goal, closed, banned)
    if rest is None:
        return None
    head = route.edges[:place]
    weight = sum(network.weight(edge) for edge in head) + rest.weight
    return Route(route.vertices[:place] + rest.vertices, head + rest.edges, weight)


def all_shortest(network: Network, start: str, goal: str) -> Iterator[Route]:
    """Yield every path of the smallest number of edges."""
    origins: dict[str, list[tuple[str, Document]]] = {start: []}
    level = [start]
    while level and goal not in origins:
        following: dict[str, list[tuple[str, Document]]] = {}
        for vertex in level:
            for edge, target in network.after(vertex):
                if target not in origins:
                    following.setdefault(target, []).append((vertex, edge))
        origins |= following
        level = list(following)
    if goal not in origins:
        return
    # Walk back from the goal; each entry is the part of a path that is known so far.
    pending: list[tuple[tuple[str, ...], tuple[Document, ...]]] = [((goal,), ())]
    while pending:
        vertices, edges = pending.pop()
        if vertices[0] == start:
            yield Route(vertices, edges, float(len(edges)))
            continue
        for vertex, edge in reversed(origins[vertices[0]]):
            pending.append(((vertex, *vertices), (edge, *edges)))


def simple_routes(network: Network, start: str, goal: str, low: int, high: int) -> Iterator[Route]:
    """Yield every path without a repeated vertex and of `low` to `high` edges."""
    distance = _distances_to(network, goal, high)
    if start not in distance:
        return
    if start == goal:
        if low == 0:
            yield Route((start,), (), 0.0)
        return
    vertices, edges = [start], list[Document]()
    on_path = {start}
    stack = [network.after(start)]
    while stack:
        hop = next(stack[-1], None)
        if hop is None:
            stack.pop()
            on_path.discard(vertices.pop())
            if edges:
                edges.pop()
            continue
        edge, target = hop
        left = high - len(edges) - 1
        if target in on_path or distance.get(target, high + 1) > left:
            continue
        if target == goal:
            if len(edges) + 1 >= low:
                weight = sum(map(network.weight, (*edges, edge)))
                yield Route((*vertices, target), (*edges, edge), weight)
            continue
        vertices.append(target)
        edges.append(edge)
        on_path.add(target)
        stack.append(network.after(target))


def _distances_to(network: Network, goal: str, most: int) -> dict[str, int]:
    """Return the number of edges from each vertex to the goal, as far as `most`."""
    distance = {goal: 0}
    queue = deque([goal])
    while queue:
        vertex = queue.popleft()
        if distance[vertex] >= most:
            continue
        for _, source in network.before(vertex):
            if source not in distance:
                distance[source] = distance[vertex] + 1
                queue.append(source)
    return distance
