"""Terragrunt trees, read: what is static becomes edges, the rest is named with its place."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from region_scheduler.admission.importers.model import FoundGraph, Leniency, settled
from region_scheduler.admission.importers.terragrunt import found_in_tree, unit_node
from region_scheduler.errors import CyclicGraph, InvalidInput
from tests.unit.admission.importers.forms import DATA, admissible

TREES = DATA / "terragrunt"
EU = "live/eu-west-1"


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    """Copies, so that no repository lies around them."""
    shutil.copytree(TREES, tmp_path / "trees")
    return tmp_path / "trees"


@pytest.fixture
def estate(trees: Path) -> FoundGraph:
    return found_in_tree(trees / "estate")


def before(graph: FoundGraph, unit: str) -> Counter[str]:
    return Counter(first for first, then in graph.edges if then == unit)


def test_every_directory_with_a_unit_file_is_a_unit(estate: FoundGraph) -> None:
    names = "alone app db keys odd vpc worker".split()
    ids = [node["id"] for node in estate.nodes]

    assert ids == [*(f"{EU}/{name}" for name in names), "live/global/dns", "live/global/names"]


def test_a_unit_is_a_task_of_the_terragrunt_runner(estate: FoundGraph) -> None:
    vpc = next(node for node in estate.nodes if node["id"] == f"{EU}/vpc")

    assert vpc == {
        "id": f"{EU}/vpc",
        "runner": "terragrunt",
        "inputs": {"unit": f"{EU}/vpc"},
        "region": "eu-west-1",
        "labels": {"source": "git::ssh://example/modules//vpc?ref=v1"},
    }


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (f"{EU}/keys", []),
        (f"{EU}/vpc", ["live/global/names"]),
        (f"{EU}/db", [f"{EU}/vpc", f"{EU}/vpc", f"{EU}/keys"]),
        # names is overridden by an empty path, cache is not enabled.
        (f"{EU}/app", [f"{EU}/vpc", f"{EU}/db", f"{EU}/keys"]),
        # Deep: network keeps the included path, names has its own.
        (f"{EU}/worker", [f"{EU}/vpc", "live/global/dns", f"{EU}/keys"]),
        (f"{EU}/alone", []),
        (f"{EU}/odd", [f"{EU}/keys"]),
        ("live/global/names", ["live/global/dns"]),
    ],
)
def test_predecessors_are_what_the_files_say(
    estate: FoundGraph, unit: str, expected: list[str]
) -> None:
    assert before(estate, unit) == Counter(expected)


def test_what_is_not_static_is_named_with_its_place(estate: FoundGraph) -> None:
    odd = f"{EU}/odd"
    named = {(one.expression, one.place.rpartition(":")[2]) for one in estate.unresolved}

    assert named == {
        ('include find_in_parent_folders("lost.hcl")', "2"),
        ("values.vpc_path", "11"),
        ('try(local.path, "../vpc")', "15"),
        ('"../${each.key}"', "19"),
        ('get_env("VPC_PATH", "../vpc")', "23"),
        ('local.is_main ? "../vpc" : "../db"', "27"),
        ("local.round", "31"),
        ("enabled = values.is_wanted", "35"),
        ('dependency "pathless" without a config_path', "39"),
        ("dependency.values.outputs.path", "43"),
        ("terragrunt.stack.hcl", ""),
    }
    assert {one.unit for one in estate.unresolved} == {odd, "live/stacks"}
    assert all(
        one.place.startswith(f"{odd}/terragrunt.hcl:") for one in estate.unresolved if one.place
    )


def test_an_edge_has_the_place_where_it_is_written(estate: FoundGraph) -> None:
    assert estate.places[(f"{EU}/vpc", f"{EU}/app")] == "common/app.hcl:6"
    assert estate.places[(f"{EU}/db", f"{EU}/app")] == f"{EU}/app/terragrunt.hcl:20"
    assert estate.places[(f"{EU}/keys", f"{EU}/db")] == f"{EU}/db/terragrunt.hcl:12"


def test_a_read_tree_is_admissible(estate: FoundGraph) -> None:
    plan = admissible(estate.document())

    assert {task.runner for task in plan.tasks} == {"terragrunt"}
    assert len(plan.edges) == len(set(estate.edges))


def test_a_cycle_is_named_with_file_and_line_of_each_edge(trees: Path) -> None:
    graph = settled(found_in_tree(trees / "knot"), Leniency(ignores_dangling=True)).graph
    from region_scheduler.admission.importers.graph import plan_of_graph
    from tests.unit.admission.importers.forms import OPTIONS

    with pytest.raises(CyclicGraph) as refused:
        plan_of_graph(graph.document(), OPTIONS, graph.places)

    first = refused.value.cycle[0]
    places = ["a/terragrunt.hcl:2", "b/terragrunt.hcl:3"]
    # The edge a -> b is written where b says that it waits for a.
    assert refused.value.places == (places[::-1] if first == "a" else places)
    assert graph.dangling == (("gone", "b"),)


def test_a_subtree_finds_what_is_above_it_in_its_repository(trees: Path) -> None:
    (trees / "estate" / ".git").mkdir()

    graph = found_in_tree(trees / "estate" / EU)

    assert not [one for one in graph.unresolved if one.unit != "odd"]
    assert before(graph, "vpc") == Counter(["../global/names"])
    assert before(graph, "worker") == Counter(["vpc", "../global/dns", "keys"])


def test_nothing_above_the_top_is_looked_at(trees: Path) -> None:
    graph = found_in_tree(trees / "estate" / EU)  # no repository: the top is the directory

    lost = {one.unit for one in graph.unresolved if one.expression.startswith("include")}
    assert {"vpc", "keys", "db", "app", "worker", "alone", "odd"} == lost


def test_an_included_unit_file_without_a_source_is_no_unit(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "terragrunt.hcl").write_text('dependency "x" {\n  config_path = "../x"\n}\n')
    (tmp_path / "a" / "terragrunt.hcl").write_text(
        "include {\n  path = find_in_parent_folders()\n}\n"
    )

    graph = found_in_tree(tmp_path)
    assert [node["id"] for node in graph.nodes] == ["a"]
    assert graph.edges == (("x", "a"),)

    with (tmp_path / "terragrunt.hcl").open("a") as file:
        file.write('terraform {\n  source = "./m"\n}\n')
    assert [node["id"] for node in found_in_tree(tmp_path).nodes] == [".", "a"]


@pytest.mark.parametrize(
    ("name", "told"),
    [("broken", r"a/terragrunt\.hcl:[23].*not HCL"), ("nothing", "name a directory"),
     ("knot/c/x", "name a directory")],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_by_its_place(trees: Path, name: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        found_in_tree(trees / name)


def test_a_tree_without_units_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no terragrunt\.hcl below"):
        found_in_tree(tmp_path)


@pytest.mark.parametrize(
    ("id_", "region"),
    [
        ("live/eu-west-1/a", "eu-west-1"),
        ("live/us-central1/a", "us-central1"),
        ("a/europe-west2/b", "europe-west2"),
        ("a/global/europe-west2/b", "europe-west2"),
        ("a/ap-southeast-2", "ap-southeast-2"),
        ("a/us-gov-west-1", "us-gov-west-1"),
        ("hub/linux-server-01/vm", None),
        ("live/fn-dev-01", None),
        ("eu-west-prod/a", None),
    ],
)
def test_a_target_region_is_a_word_that_names_one(id_: str, region: str | None) -> None:
    assert unit_node(id_).get("region") == region
