"""What `zones types`, `show`, `graph` and `order` print."""

from __future__ import annotations

import json
import re

import pytest

from region_scheduler.catalog import describe
from region_scheduler.catalog.compose import zone_types
from region_scheduler.errors import InvalidInput, UnknownZoneType


def test_a_row_counts_what_the_type_holds() -> None:
    rows = {row["type"]: row for row in map(describe.type_row, zone_types())}

    assert len(rows) == 18
    assert rows["aws-pci_dss"] == {
        "type": "aws-pci_dss",
        "version": "1.0.0",
        "cloud": "Amazon Web Services",
        "framework": "PCI DSS",
        "steps": 59,
        "per_region": 17,
        "terraform": 37,
        "approvals": 3,
        "irreversible": 4,
        "waves": 25,
        "critical_path_min": 276.0,
    }


def test_the_view_names_every_step_parameter_and_lock_and_is_json() -> None:
    view = describe.type_view("gcp-soc2")

    assert json.loads(json.dumps(view)) == view
    assert sum(len(part["steps"]) for part in view["subgraphs"]) == view["steps"]
    assert {
        name: lock[name]
        for lock in view["locks"]
        if lock["key"] == "gcp:project-create"
        for name in ("key", "scope", "capacity")
    } == {"key": "gcp:project-create", "scope": "organisation", "capacity": 5}
    lines = describe.type_lines(view)
    for part in view["subgraphs"]:
        for step in part["steps"]:
            assert any(line.startswith(f"  {step['id']}  ") for line in lines)
    assert any(line.startswith("  cidr = 10.0.0.0/12") for line in lines)


def test_waves_hold_every_task_once_and_none_before_its_predecessors() -> None:
    plan = describe.preview("azure-hipaa", ["eu-west", "us-east"])

    wave_of = {name: wave["wave"] for wave in describe.waves(plan) for name in wave["tasks"]}

    assert len(wave_of) == len(plan.tasks)
    assert all(wave_of[before] < wave_of[after] for before, after in plan.edges)
    assert describe.wave_lines(plan)[-1].startswith("longest path, 174 min: c.request-validate -> ")


@pytest.mark.parametrize("form", describe.GRAPH_FORMS)
def test_each_form_holds_every_task_and_edge(form: str) -> None:
    plan = describe.preview("aws-soc2", ["eu-west", "us-east", "ap-south"])

    text = describe.graph_text(plan, form)

    arrows = {"dot": r" -> ", "mermaid": r" --> "}
    if form == "json":
        graph = json.loads(text)
        assert "\n" not in text
        assert [tuple(edge) for edge in graph["edges"]] == list(plan.edges)
        assert [task["id"] for task in graph["tasks"]] == [task.name for task in plan.tasks]
    else:
        assert len(re.findall(arrows[form], text)) == len(plan.edges)
        assert all(f'"{task.name}"' in text for task in plan.tasks)


def test_bad_words_are_refused() -> None:
    with pytest.raises(UnknownZoneType):
        describe.type_view("aws")
    with pytest.raises(InvalidInput, match="regions"):
        describe.preview("aws-soc2", [])
