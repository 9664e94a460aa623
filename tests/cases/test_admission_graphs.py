"""The handed cases about what a submission may be, each named by its id.

"422" is a refusal by `Rejected` (exit code 2) before any write, which every test looks for.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.admission.importers.graph import GraphOptions, parsed, plan_of_graph
from region_scheduler.admission.rules import checked
from region_scheduler.domain.ids import RunId
from region_scheduler.errors import CyclicGraph, InvalidGraph, InvalidInput, Rejected
from region_scheduler.simulation.world import World
from tests.simulation.scenarios import HOME, graph_of

DATA = Path(__file__).parent / "data"
REGIONS = (HOME, "us-east")
OPTIONS = GraphOptions(
    tenant="acme", home_region=HOME, regions=REGIONS, serves={name: name for name in REGIONS}
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, REGIONS)


def a_graph(names: list[str], edges: list[tuple[str, str]], **more: Any) -> dict[str, Any]:
    nodes = [{"id": name, "runner": "simulate", **more} for name in names]
    return {"name": "case", "nodes": nodes, "edges": [list(edge) for edge in edges]}


def submit(world: World, document: Any) -> str:
    """Submit a document as the API and the CLI do; return the id of its run."""
    body = json.dumps(document).encode()
    plan = plan_of_graph(parsed(body, "body"), OPTIONS)
    return world.regions[HOME].services.intake.admit(plan, "key").run.id


def is_untouched(world: World) -> bool:
    graph = graph_of(world)
    return not graph.runs.recent(10) and not graph.admissions.unfinished()


def refusal(world: World, document: Any, kind: type[Rejected] = Rejected) -> str:
    with pytest.raises(kind) as refused:
        submit(world, document)
    assert refused.value.exit_code == 2
    assert is_untouched(world)
    return str(refused.value)


def test_ADM_003_what_one_store_could_not_keep_is_refused_before_any_write(world: World) -> None:
    told = refusal(world, a_graph(["x" * 2_000], []))
    assert "takes 2000 bytes, at most 1024" in told
    told = refusal(world, a_graph(["a"], [], labels={"note": "a\0b"}))
    assert "nodes[0].labels" in told
    assert "the character NUL in .'note'" in told

    name = "👩‍🚀 naïve"
    run = submit(world, a_graph([name], []))

    assert [task.spec.name for task in graph_of(world).tasks.of_run(RunId(run))] == [name]


MISSPELT = [
    ([], "edgse"),
    ([], "limit"),
    (["nodes", 0], "lables"),
    (["nodes", 0], "parallelism"),
    (["nodes", 0, "retry"], "limits"),
    (["nodes", 0, "locks", 0], "capcity"),
    (["nodes", 0, "condition", 0], "pth"),
]


@pytest.mark.parametrize(("path", "key"), MISSPELT, ids=[key for _, key in MISSPELT])
def test_BAD_002_a_misspelt_field_at_any_level_is_named(
    world: World, path: list[Any], key: str
) -> None:
    document = parsed((DATA / "bad_002_full.json").read_bytes(), "full")
    at = broken = copy.deepcopy(document)
    for step in path:
        at = at[step]
    at[key] = 1

    told = refusal(world, broken, InvalidInput)

    assert f".{key}: '1' is not accepted" in told
    assert "known keys are" in told
    assert submit(world, document)


@pytest.mark.parametrize("key", ["for_each", "expand", "with_items", "matrix", "fan_out", "nodes"])
@pytest.mark.parametrize("items", [[], ["x"]])
def test_BAD_003_fan_out_over_a_list_is_no_part_of_the_form_and_refused_by_name(
    world: World, key: str, items: list[str]
) -> None:
    document = a_graph(["map", "join"], [("map", "join")])
    document["nodes"][0][key] = items

    assert f"nodes[0].{key}" in refusal(world, document, InvalidInput)


def test_BAD_006_the_answer_names_one_shortest_cycle(world: World) -> None:
    edges = [("c", "a"), ("a", "b"), ("b", "c")]
    told = refusal(world, a_graph(["a", "b", "c"], edges), CyclicGraph)
    assert any(f"{x} -> {y} -> {z} -> {x}" in told for x, y, z in ("abc", "bca", "cab"))
    assert "edges[0]" in told

    longer = [*edges, ("b", "d"), ("d", "e"), ("e", "a"), ("e", "d")]
    with pytest.raises(CyclicGraph) as refused:
        submit(world, a_graph(list("abcde"), longer))
    assert set(refused.value.cycle) == {"d", "e"}
    assert is_untouched(world)


def test_BAD_006_a_self_edge_is_named(world: World) -> None:
    told = refusal(world, a_graph(["a", "b"], [("a", "b"), ("b", "b")]), InvalidGraph)

    assert "'b' depends on itself (edges[1])" in told


def test_BAD_006_a_cycle_through_two_regions_is_one(world: World) -> None:
    document = a_graph(["a", "b"], [("a", "b"), ("b", "a")])
    document["nodes"][0]["regions"] = [HOME]
    document["nodes"][1]["regions"] = ["us-east"]

    told = refusal(world, document, CyclicGraph)

    assert "a -> b" in told
    assert "b -> a" in told


def numbered(count: int) -> list[str]:
    return [f"n{n}" for n in range(count)]


TOO_BIG: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "nodes": (lambda: a_graph(numbered(100_001), []), "it has 100001 nodes, at most 20000"),
    "predecessors": (
        lambda: a_graph(numbered(10_002), [(name, "n0") for name in numbered(10_002)[1:]]),
        "'n0' has 10001 direct predecessors, at most 10000",
    ),
    "depth": (
        lambda: a_graph(numbered(20_000), list(itertools.pairwise(numbered(20_000)))),
        "its longest path has 20000 tasks, at most 10000",
    ),
    "chain of 50,000": (
        lambda: a_graph(numbered(50_000), list(itertools.pairwise(numbered(50_000)))),
        "it has 50000 nodes, at most 20000",
    ),
    "label": (
        lambda: a_graph(["a"], [], labels={"x": "y" * 1_000_000}),
        "at most 262144 (limit task_bytes_max)",
    ),
}


@pytest.mark.parametrize("what", TOO_BIG)
def test_BAD_007_what_is_too_big_is_refused_by_a_documented_limit(world: World, what: str) -> None:
    make, text = TOO_BIG[what]

    assert text in refusal(world, make())


def test_BAD_007_a_chain_at_the_limit_needs_no_recursion() -> None:
    names = numbered(10_000)

    plan = plan_of_graph(a_graph(names, list(itertools.pairwise(names))), OPTIONS)

    assert checked(plan).depth == 10_000
