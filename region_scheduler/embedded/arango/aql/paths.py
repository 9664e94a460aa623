"""SHORTEST_PATH, K_SHORTEST_PATHS, ALL_SHORTEST_PATHS and K_PATHS as clauses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.convert import is_number, narrow
from region_scheduler.embedded.arango.aql.expressions import Compiler
from region_scheduler.embedded.arango.aql.graph import (
    check_start,
    constant_options,
    graph_of,
    vertex_id,
    weight_of,
)
from region_scheduler.embedded.arango.aql.routes import (
    Network,
    Route,
    all_shortest,
    lightest,
    lightest_in_order,
    simple_routes,
)
from region_scheduler.embedded.arango.aql.run import Run
from region_scheduler.embedded.arango.aql.scope import Frame, Scope, Step
from region_scheduler.embedded.arango.errors import ArangoError

Search: TypeAlias = Callable[[Network, str, str, int, int], Iterator[Route]]


def _one(network: Network, start: str, goal: str, _low: int, _high: int) -> Iterator[Route]:
    route = lightest(network, start, goal)
    return iter(()) if route is None else iter((route,))


_OPTIONS: Final = frozenset({"weightAttribute", "defaultWeight", "useCache"})
_SEARCHES: Final[dict[str, Search]] = {
    "shortest_path": _one,
    "k_shortest_paths": lambda network, start, goal, _low, _high: lightest_in_order(
        network, start, goal
    ),
    "all_shortest_paths": lambda network, start, goal, _low, _high: all_shortest(
        network, start, goal
    ),
    "k_paths": simple_routes,
}


def paths(compiler: Compiler, clause: syntax.Paths, scope: Scope) -> Step:
    """Return the step of a path search."""
    check_start(clause.start)
    check_start(clause.goal)
    low = compiler.expression(clause.low, scope)
    high = compiler.expression(clause.high, scope)
    start = compiler.expression(clause.start, scope)
    goal = compiler.expression(clause.goal, scope)
    edges_of = graph_of(compiler, clause.graph, clause.direction)
    options_of = constant_options(compiler, clause.options, scope, _OPTIONS)
    search = _SEARCHES[clause.kind]
    scope.enter_loop()
    slots = [compiler.layout.declare(scope, name) for name in clause.variables]
    emit = _emit_steps if clause.kind == "shortest_path" else _emit_whole

    def step(upstream: Iterator[Frame], _origin: Frame) -> Iterator[Frame]:
        for frame in upstream:
            run: Run = frame[0]
            least, most = _depths(low(frame), high(frame))
            network = Network(run, edges_of(frame), weight_of(options_of(frame)))
            first, last = vertex_id(run, start(frame)), vertex_id(run, goal(frame))
            if first is None or last is None:
                continue
            for route in search(network, first, last, least, most):
                run.tick()
                yield from emit(frame, slots, route)

    return step


def _depths(low: Any, high: Any) -> tuple[int, int]:
    if not is_number(low) or not is_number(high) or low < 0 or high < low:
        raise ArangoError(1501, "AQL: invalid path depth")
    return int(low), int(high)


def _emit_steps(frame: Frame, slots: list[int], route: Route) -> Iterator[Frame]:
    """Yield one frame a vertex of the path, with the edge that leads to it."""
    run: Run = frame[0]
    for place, name in enumerate(route.vertices):
        frame[slots[0]] = run.vertex(name)
        if len(slots) > 1:
            frame[slots[1]] = route.edges[place - 1] if place else None
        yield frame


def _emit_whole(frame: Frame, slots: list[int], route: Route) -> Iterator[Frame]:
    run: Run = frame[0]
    frame[slots[0]] = {
        "edges": list(route.edges),
        "vertices": [run.vertex(name) for name in route.vertices],
        "weight": narrow(route.weight),
    }
    yield frame
