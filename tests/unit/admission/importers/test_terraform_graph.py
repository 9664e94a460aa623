"""What terraform 1.11 printed for a small configuration, and DOT that is odd or none."""

from __future__ import annotations

import pytest

from region_scheduler.admission.importers.graph import with_runners
from region_scheduler.admission.importers.terraform_graph import found_in_dot
from region_scheduler.domain.dag import Dag
from region_scheduler.errors import InvalidInput
from tests.unit.admission.importers.forms import DATA, admissible

DOT = DATA / "terraform"


def test_the_short_form_is_turned_round() -> None:
    found = found_in_dot((DOT / "graph.dot").read_text(), "graph.dot", "g")

    names = ["terraform_data.cluster", "terraform_data.network", "module.m.terraform_data.app"]
    assert [node["id"] for node in found.nodes] == names
    assert found.edges == (
        ("terraform_data.network", "terraform_data.cluster"),
        ("terraform_data.cluster", "module.m.terraform_data.app"),
    )
    assert found.places[found.edges[0]] == "graph.dot:11"


def test_the_long_form_keeps_ids_as_they_are() -> None:
    found = found_in_dot((DOT / "plan.dot").read_text(), "plan.dot", "g")

    names = [node["id"] for node in found.nodes]
    assert '[root] provider["terraform.io/builtin/terraform"] (close)' in names
    assert (len(names), len(found.edges)) == (13, 14)
    dag = Dag.checked(names, found.edges)
    assert dag.order[-1] == "[root] root"


def test_its_tasks_change_nothing_and_are_admissible() -> None:
    found, bare = with_runners(found_in_dot((DOT / "plan.dot").read_text(), "plan.dot", "g"))

    plan = admissible(found.document())

    assert bare == 13
    assert {task.runner for task in plan.tasks} == {"simulate"}


def test_the_language_is_read_as_far_as_a_graph_needs_it() -> None:
    text = """strict digraph "g" { // comment
      # another
      graph [label = "a -> b"] node [shape = box]; /* a -> z */
      rankdir = LR;
      a -> b -> "c \\"d\\" \\\\e" [color = "red"]
      { f; } subgraph cluster_x { g [label="}"] };
      a -> b
    }"""

    found = found_in_dot(text, "x", "g")

    assert [node["id"] for node in found.nodes] == ["a", "b", 'c "d" \\e', "f", "g"]
    assert found.edges == (("b", "a"), ('c "d" \\e', "b"), ("b", "a"))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "x:1"),
        ("graph { a -- b }", "x:1"),
        ("digraph {\n a -> b\n", "x:3"),
        ("digraph {\n a ->\n}", "x:3"),
        ("digraph {\n a -> [x]\n}", "x:2"),
        ("digraph {\n a -- b\n}", "x:2"),
        ("digraph {\n a [label = 1\n", "x:3"),
        ("digraph {\n ? }", "x:2"),
        ('digraph {\n "open }', "x:2"),
        ("digraph { } more", "x:1"),
        ("Error: no configuration files", "x:1"),
    ],
)
def test_what_is_no_graph_is_refused_with_its_line(text: str, place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        found_in_dot(text, "x", "g")

    assert refused.value.field == place
