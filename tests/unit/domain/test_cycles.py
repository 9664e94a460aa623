"""Cycles against networkx, and bounds that keep a refusal quick."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.domain.cycles import components, cycle_in, cyclic_components, named_cycle
from region_scheduler.domain.dag import Dag
from region_scheduler.errors import CyclicGraph


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, list[str]]:
    names = [str(n) for n in range(draw(st.integers(1, 14)))]
    return {name: draw(st.lists(st.sampled_from(names), max_size=4, unique=True)) for name in names}


@given(graphs())
def test_components_are_those_of_networkx(after: dict[str, list[str]]) -> None:
    found = components(after)

    whole: nx.DiGraph[str] = nx.DiGraph(after)
    expected = nx.strongly_connected_components(whole)
    assert {frozenset(group) for group in found} == {frozenset(group) for group in expected}
    at = {name: n for n, group in enumerate(found) for name in group}
    assert all(at[then] <= at[name] for name, nexts in after.items() for then in nexts)


@given(graphs())
def test_the_cycle_of_a_component_is_a_shortest_one(after: dict[str, list[str]]) -> None:
    after = {name: [then for then in nexts if then != name] for name, nexts in after.items()}
    for group in cyclic_components(after):
        whole: nx.DiGraph[str] = nx.DiGraph(after)
        inside = whole.subgraph(group)
        ways = dict(nx.all_pairs_shortest_path_length(inside))

        cycle = cycle_in(group, after)

        assert cycle.is_shortest
        assert len(cycle.names) == min(1 + ways[b][a] for a, b in inside.edges)
        assert all(inside.has_edge(*edge) for edge in cycle.edges)


def layers(count: int, width: int) -> dict[str, list[str]]:
    """Return rings through every node of each layer: all cycles are as long as there are layers."""
    return {
        f"{layer}.{n}": [f"{(layer + 1) % count}.{m}" for m in range(width)]
        for layer in range(count)
        for n in range(width)
    }


@pytest.mark.parametrize(("count", "width"), [(2_000, 1), (20, 100), (2, 1_000)])
def test_a_shortest_cycle_of_two_thousand_nodes_is_found(count: int, width: int) -> None:
    after = layers(count, width)

    cycle = cycle_in(list(after), after)

    assert (len(cycle.names), cycle.is_shortest) == (count, True)


def test_in_a_bigger_component_a_short_one_is_named_and_said_to_be_one() -> None:
    names = [f"n{n}" for n in range(2_001)]
    edges = [*itertools.pairwise(names), (names[-1], names[0]), (names[9], names[5])]

    with pytest.raises(CyclicGraph, match="a short one") as refused:
        Dag.checked(names, edges)

    assert not refused.value.is_shortest
    cycle = list(refused.value.cycle)
    assert set(zip(cycle, [*cycle[1:], cycle[0]], strict=True)) <= set(edges)


def test_of_several_components_the_shortest_cycle_is_named() -> None:
    after = {
        "a": ["b"],
        "b": ["c"],
        "c": ["d", "a"],
        "d": ["c"],
        "x": ["y"],
        "y": ["z"],
        "z": ["x"],
    }

    cycle = named_cycle(cyclic_components(after), after)

    assert set(cycle.names) == {"c", "d"}


def test_places_of_edges_are_told() -> None:
    places = {("a", "b"): "a.hcl:3", ("b", "a"): "b.hcl:9", ("a", "a"): "a.hcl:4"}

    with pytest.raises(CyclicGraph, match=r"edges: (a.hcl:3, b.hcl:9|b.hcl:9, a.hcl:3)"):
        Dag.checked("ab", [("a", "b"), ("b", "a")], places)
    with pytest.raises(Exception, match=r"'a' depends on itself \(a.hcl:4\)"):
        Dag.checked("ab", [("a", "a")], places)


def test_components_of_a_deep_chain_need_no_recursion() -> None:
    names = [str(n) for n in range(50_000)]
    after = {a: [b] for a, b in itertools.pairwise(names)} | {names[-1]: []}

    assert len(components(after)) == 50_000
