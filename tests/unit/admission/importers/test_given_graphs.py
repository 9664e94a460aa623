"""The 44 graphs of real projects: counted right, and taken or refused for the right reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from region_scheduler.admission.importers.graph import (
    found_in,
    parsed,
    plan_of_graph,
    with_runners,
)
from region_scheduler.admission.importers.model import FoundGraph, Leniency, settled
from region_scheduler.admission.importers.report import report_of
from region_scheduler.admission.rules import checked
from region_scheduler.domain.dag import Dag
from region_scheduler.errors import CyclicGraph, InvalidGraph
from tests.unit.admission.importers.forms import DATA, GRAPHS, OPTIONS

EXPECTED: dict[str, dict[str, Any]] = json.loads((DATA / "graphs_expected.json").read_text())
CYCLIC = [name for name, known in EXPECTED.items() if known["knots"]]


def found(name: str) -> FoundGraph:
    return with_runners(found_in(parsed((GRAPHS / f"{name}.json").read_bytes(), name)))[0]


def admit(graph: FoundGraph) -> Dag:
    return checked(plan_of_graph(graph.document(), OPTIONS, graph.places), places=graph.places)


def test_there_are_44() -> None:
    assert len(EXPECTED) == len(list(GRAPHS.glob("*.json"))) == 44
    assert len(CYCLIC) == 6


@pytest.mark.parametrize("name", EXPECTED)
def test_a_graph_is_counted_as_its_index_says(name: str) -> None:
    report, known = report_of(found(name)), EXPECTED[name]

    for key in ("nodes", "edges_found", "edges", "depth", "width", "isolated", "self_loops"):
        assert getattr(report, key) == known[key], key
    assert len(report.dangling) == known["dangling"]
    assert len(report.regions) == known["regions"]
    assert report.total_s == pytest.approx(known["total_s"], abs=0.06)
    assert report.critical_path_s == pytest.approx(known["critical_path_s"], abs=0.06)
    assert len(report.cycles) == known["knots"]
    assert max([cycle.members for cycle in report.cycles], default=0) == known["largest_knot"]
    assert report.is_condensed is bool(known["knots"])


@pytest.mark.parametrize("name", [name for name in EXPECTED if name not in CYCLIC])
def test_a_graph_without_a_cycle_is_taken(name: str) -> None:
    dag = admit(found(name))

    assert (len(dag.before), dag.depth) == (EXPECTED[name]["nodes"], EXPECTED[name]["depth"])


@pytest.mark.parametrize("name", CYCLIC)
def test_a_graph_with_a_cycle_is_refused_by_naming_it(name: str) -> None:
    graph = settled(found(name), Leniency(drops_self_loops=True)).graph

    with pytest.raises(CyclicGraph) as refused:
        admit(graph)

    edges = list(graph.edges)
    cycle = list(refused.value.cycle)
    for before, after, place in zip(
        cycle, [*cycle[1:], cycle[0]], refused.value.places, strict=True
    ):
        assert place == f"edges[{found(name).edges.index((before, after))}]"
        assert (before, after) in edges
    assert refused.value.is_shortest
    shortest = {cycle.members for cycle in report_of(graph).cycles}
    assert len(cycle) <= max(shortest)


def test_loops_are_refused_unless_they_are_dropped() -> None:
    graph = found("dbt-like-mozilla-bq-tables")

    with pytest.raises(InvalidGraph, match="depends on itself") as refused:
        admit(graph)

    distinct = len({edge for edge in graph.edges if edge[0] == edge[1]})
    assert refused.value.problems[-1] == f"and {distinct - 20} more"
    assert settled(graph, Leniency(drops_self_loops=True)).self_loops_dropped == 259


@pytest.mark.parametrize("name", [name for name, known in EXPECTED.items() if known["dangling"]])
def test_what_dangles_is_refused_when_strict_and_counted_when_ignored(name: str) -> None:
    graph, count = found(name), EXPECTED[name]["dangling"]
    with pytest.raises(InvalidGraph, match=r"which is no node|does not resolve"):
        admit(settled(graph, Leniency(is_strict=True)).graph)

    loose = FoundGraph(name=graph.name, nodes=graph.nodes, edges=(*graph.edges, *graph.dangling))
    result = settled(loose, Leniency(ignores_dangling=True))
    assert result.dangling_ignored == count
    assert result.graph.edges == graph.edges
    assert len(result.graph.document()["dangling_edges"]) == count


def test_what_was_not_resolved_is_named_when_strict() -> None:
    with pytest.raises(InvalidGraph, match=r"local\.vpc_network_path") as refused:
        settled(found("tg-gcp-org-automation"), Leniency(is_strict=True))

    assert len(refused.value.problems) == 2


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_written_says_the_same_when_read_again(name: str) -> None:
    graph = found(name)

    again = found_in(json.loads(json.dumps(graph.document())))

    assert again.nodes == graph.nodes
    assert again.edges == tuple(dict.fromkeys(graph.edges))
    assert (again.dangling, again.unresolved) == (graph.dangling, graph.unresolved)
