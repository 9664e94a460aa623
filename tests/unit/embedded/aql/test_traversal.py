"""Traversals and path searches against plain searches over the same small graphs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from region_scheduler.embedded.arango.session import EdgeDefinition
from tests.unit.embedded.aql.asking import error, rows, run
from tests.unit.embedded.aql.memory import MemorySession

SIZE = 5
EDGES = st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), max_size=8)
Pairs = list[tuple[int, int]]


def graph(pairs: Pairs) -> MemorySession:
    session = MemorySession(is_cluster=True)
    session.create("v", [{"_key": str(n), "n": n} for n in range(SIZE)])
    session.create(
        "e",
        [{"_key": str(i), "_from": f"v/{a}", "_to": f"v/{b}"} for i, (a, b) in enumerate(pairs)],
        is_edge=True,
    )
    session.create_graph("g", [EdgeDefinition("e", ("v",), ("v",))])
    return session


def walks(
    pairs: Pairs, most: int, *, once_vertex: bool, once_edge: bool, direction: str = "OUTBOUND"
) -> Iterator[tuple[int, ...]]:
    """Yield the vertices of every walk from 0 that keeps to the rules."""
    pending: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((0,), ())]
    while pending:
        vertices, edges = pending.pop()
        yield vertices
        if len(edges) == most:
            continue
        for number, (a, b) in enumerate(pairs):
            ends = [b] if direction != "INBOUND" and a == vertices[-1] else []
            if direction != "OUTBOUND" and b == vertices[-1] and not (ends and a == b):
                ends.append(a)
            for end in ends:
                if (once_vertex and end in vertices) or (once_edge and number in edges):
                    continue
                pending.append(((*vertices, end), (*edges, number)))


@settings(deadline=None)
@given(
    EDGES,
    st.sampled_from(["dfs", "bfs", "weighted"]),
    st.sampled_from(["none", "path"]),
    st.sampled_from(["none", "path"]),
    st.sampled_from(["OUTBOUND", "INBOUND", "ANY"]),
)
def test_every_order_finds_every_walk(
    pairs: Pairs, order: str, vertices: str, edges: str, direction: str
) -> None:
    found = rows(
        f"WITH v FOR x, y, p IN 1..3 {direction} 'v/0' e"
        f" OPTIONS {{order: '{order}', uniqueVertices: '{vertices}', uniqueEdges: '{edges}'}}"
        " RETURN p.vertices[*].n",
        graph(pairs),
    )

    wanted = walks(
        pairs,
        3,
        once_vertex=vertices == "path",
        once_edge=edges == "path",
        direction=direction,
    )
    assert sorted(found) == sorted(list(walk) for walk in wanted if len(walk) > 1)


@settings(deadline=None)
@given(EDGES)
def test_a_global_search_reaches_each_vertex_once(pairs: Pairs) -> None:
    found = rows(
        "WITH v FOR x IN 0..9 OUTBOUND 'v/0' e OPTIONS {order: 'bfs', uniqueVertices: 'global'}"
        " RETURN x.n",
        graph(pairs),
    )

    reached = {walk[-1] for walk in walks(pairs, SIZE, once_vertex=True, once_edge=True)}
    assert sorted(found) == sorted(reached)


@settings(deadline=None)
@given(EDGES)
def test_path_searches_agree_with_all_simple_paths(pairs: Pairs) -> None:
    session = graph(pairs)
    simple = [
        list(walk)
        for walk in walks(pairs, SIZE, once_vertex=True, once_edge=True)
        if walk[-1] == SIZE - 1
    ]
    shortest = min(map(len, simple), default=0)
    ask = "WITH v FOR p IN {} 'v/0' TO 'v/4' GRAPH 'g' RETURN p.vertices[*].n"

    k_paths = rows(ask.format("1..9 OUTBOUND K_PATHS"), session)
    all_shortest = rows(ask.format("OUTBOUND ALL_SHORTEST_PATHS"), session)
    in_order = rows(ask.format("OUTBOUND K_SHORTEST_PATHS"), session)
    one = rows("WITH v FOR x IN OUTBOUND SHORTEST_PATH 'v/0' TO 'v/4' e RETURN x.n", session)

    assert sorted(k_paths) == sorted(simple)
    assert sorted(in_order) == sorted(simple)
    assert all(len(a) <= len(b) for a, b in pairwise(in_order))
    assert sorted(all_shortest) == sorted(path for path in simple if len(path) == shortest)
    assert one in simple if simple else one == []


def test_weights_decide_the_path() -> None:
    session = graph([])
    session.create(
        "w",
        [
            {"_from": "v/0", "_to": "v/4", "cost": 10},
            {"_from": "v/0", "_to": "v/1", "cost": 2},
            {"_from": "v/1", "_to": "v/4"},
        ],
        is_edge=True,
    )
    options = "OPTIONS {weightAttribute: 'cost', defaultWeight: 3}"

    assert rows(
        f"WITH v FOR x IN OUTBOUND SHORTEST_PATH 'v/0' TO 'v/4' w {options} RETURN x.n", session
    ) == [0, 1, 4]
    assert rows(
        f"WITH v FOR p IN OUTBOUND K_SHORTEST_PATHS 'v/0' TO 'v/4' w {options} RETURN p.weight",
        session,
    ) == [5, 10]


def test_pruning_keeps_the_vertex_it_stops_at() -> None:
    session = graph([(0, 1), (1, 2), (2, 3)])

    assert rows(
        "WITH v FOR x, y, p IN 1..9 OUTBOUND 'v/0' e PRUNE stop = x.n == 2 RETURN [x.n, stop]",
        session,
    ) == [[1, False], [2, True]]


def test_directions_can_be_mixed() -> None:
    session = graph([(0, 1)])
    session.create("back", [{"_from": "v/2", "_to": "v/0"}], is_edge=True)

    assert sorted(rows("WITH v FOR x IN 1..1 ANY 'v/0' e, OUTBOUND back RETURN x.n", session)) == [
        1
    ]
    assert sorted(
        rows("WITH v FOR x IN 1..1 OUTBOUND 'v/0' e, INBOUND back RETURN x.n", session)
    ) == [
        1,
        2,
    ]


def test_an_edge_that_leads_nowhere_gives_null() -> None:
    session = graph([])
    session.create("loose", [{"_from": "v/0", "_to": "v/missing"}], is_edge=True)

    assert rows("WITH v FOR x IN 1..1 OUTBOUND 'v/0' loose RETURN x", session) == [None]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("FOR x IN 1..1 OUTBOUND 'v/0' e RETURN x", 1521),
        ("WITH v FOR x IN 1..1 OUTBOUND 5 e RETURN x", 1501),
        ("WITH v FOR x IN 3..1 OUTBOUND 'v/0' e RETURN x", 1501),
        ("WITH v FOR x IN 1..1 OUTBOUND 'v/0' v RETURN x", 1218),
        ("WITH v FOR x IN 1..1 OUTBOUND 'v/0' GRAPH 'none' RETURN x", 1924),
        ("WITH v FOR x IN 1..1 OUTBOUND 'v/0' e OPTIONS {uniqueVertices: 'global'} RETURN x", 1501),
        ("WITH v FOR x, y, p, q IN 1..1 OUTBOUND 'v/0' e RETURN x", 1501),
    ],
)
def test_a_walk_that_cannot_be(text: str, number: int) -> None:
    assert error(text, graph([(0, 1)])) == number


def test_a_start_that_is_no_vertex_is_warned_of() -> None:
    result = run("WITH v FOR x IN 1..1 OUTBOUND '' e RETURN x", graph([(0, 1)]))

    assert result.rows == []
    assert [number for number, _ in result.warnings] == [10]
