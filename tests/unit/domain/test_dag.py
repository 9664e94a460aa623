"""Graphs against networkx, which knows no more than we do but came to it by itself."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from region_scheduler.domain.dag import Dag, Edge
from region_scheduler.errors import CyclicGraph, InvalidGraph

Graph = tuple[list[str], list[Edge]]


@st.composite
def graphs(draw: st.DrawFn, is_acyclic: bool) -> Graph:
    names = draw(st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=12, unique=True))
    index = st.integers(0, len(names) - 1)
    pairs = draw(st.lists(st.tuples(index, index), max_size=40))
    order = draw(st.permutations(names))
    if is_acyclic:
        pairs = [(min(a, b), max(a, b)) for a, b in pairs]
    return names, [(order[a], order[b]) for a, b in pairs if a != b]


def oracle(graph: Graph) -> nx.DiGraph[str]:
    made: nx.DiGraph[str] = nx.DiGraph()
    made.add_nodes_from(graph[0])
    made.add_edges_from(graph[1])
    return made


def girth(graph: nx.DiGraph[str]) -> int:
    ways = dict(nx.all_pairs_shortest_path_length(graph))
    lengths: list[int] = [1 + ways[b][a] for a, b in graph.edges if a in ways[b]]
    return min(lengths)


@given(graphs(is_acyclic=True))
def test_an_order_has_every_name_after_its_predecessors(graph: Graph) -> None:
    dag = Dag.checked(*graph)
    place = {name: n for n, name in enumerate(dag.order)}

    assert sorted(dag.order) == sorted(graph[0])
    assert all(place[before] < place[after] for before, after in graph[1])
    assert dag.repeated_edges == len(graph[1]) - len(set(graph[1]))


@given(graphs(is_acyclic=True))
def test_waves_are_the_topological_generations(graph: Graph) -> None:
    expected = [sorted(wave) for wave in nx.topological_generations(oracle(graph))]

    assert [sorted(wave) for wave in Dag.checked(*graph).waves] == expected


@given(graphs(is_acyclic=True))
def test_a_closure_is_the_descendants_nearest_first(graph: Graph) -> None:
    dag, other = Dag.checked(*graph), oracle(graph)
    for name in graph[0]:
        distances = nx.single_source_shortest_path_length(other, name)
        closure = dag.closure(name)
        assert set(closure) == nx.descendants(other, name)
        assert len(closure) == len(set(closure))
        steps = [distances[found] for found in closure]
        assert steps == sorted(steps)


@given(graphs(is_acyclic=True), st.data())
def test_the_critical_path_is_a_heaviest_one(graph: Graph, data: st.DataObject) -> None:
    weight = {name: float(data.draw(st.integers(0, 9))) for name in graph[0]}
    dag, other = Dag.checked(*graph), oracle(graph)
    path = dag.critical_path(weight)

    # networkx weighs edges: each carries the weight of the node that it leads to, from one start.
    weighed: nx.DiGraph[str] = nx.DiGraph()
    start = "\0start"
    weighed.add_weighted_edges_from((start, n, weight[n]) for n in graph[0])
    weighed.add_weighted_edges_from((a, b, weight[b]) for a, b in graph[1])
    heaviest = nx.dag_longest_path_length(weighed)

    assert sum(weight[name] for name in path) == heaviest
    assert all(other.has_edge(a, b) for a, b in itertools.pairwise(path))
    assert not dag.before[path[0]]
    assert not dag.after[path[-1]]
    assert max(dag.remaining(weight).values()) == heaviest


@settings(max_examples=300)
@given(graphs(is_acyclic=False))
def test_a_cycle_is_refused_and_a_shortest_one_named(graph: Graph) -> None:
    other = oracle(graph)
    if nx.is_directed_acyclic_graph(other):
        Dag.checked(*graph)
        return
    with pytest.raises(CyclicGraph) as refused:
        Dag.checked(*graph)
    cycle = list(refused.value.cycle)

    assert all(other.has_edge(a, b) for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    assert len(cycle) == len(set(cycle)) == girth(other)


def test_both_members_of_a_cycle_are_named_in_the_text() -> None:
    with pytest.raises(CyclicGraph, match=r"a -> b -> a|b -> a -> b"):
        Dag.checked("abc", [("a", "b"), ("b", "a"), ("b", "c")])


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(InvalidGraph) as refused:
        Dag.checked(["a", "a", "b"], [("a", "x"), ("b", "b"), ("y", "a")])

    assert refused.value.problems == [
        "id 'a' occurs twice",
        "edge 'a' -> 'x' names 'x', which is no node",
        "'b' depends on itself",
        "edge 'y' -> 'a' names 'y', which is no node",
    ]


def test_many_problems_are_cut_short() -> None:
    with pytest.raises(InvalidGraph) as refused:
        Dag.checked(["a"], [("a", f"x{n}") for n in range(50)])

    assert len(refused.value.problems) == 21
    assert refused.value.problems[-1] == "and 30 more"


def test_an_empty_graph_is_one() -> None:
    dag = Dag.checked([], [])

    assert (dag.order, dag.waves, dag.critical_path({})) == ((), (), ())


def test_depth_is_no_limit() -> None:
    names = [f"n{n:05}" for n in range(20_000)]
    dag = Dag.checked(names, itertools.pairwise(names))

    assert len(dag.waves) == 20_000
    assert dag.closure(names[0]) == tuple(names[1:])
    assert dag.critical_path(dict.fromkeys(names, 1.0)) == tuple(names)


def test_equal_paths_are_settled_by_name() -> None:
    assert Dag.checked("bac", [("b", "c"), ("a", "c")]).critical_path({}) == ("a", "c")


def test_a_long_cycle_in_a_big_graph_is_named_too() -> None:
    names = [f"n{n:05}" for n in range(5_000)]
    with pytest.raises(CyclicGraph) as refused:
        Dag.checked(names, zip(names, [*names[1:], names[0]], strict=True))

    assert sorted(refused.value.cycle) == names
