"""The catalogue against the facts it was made from: resolved graphs, steps, locks."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from region_scheduler.catalog import load
from region_scheduler.catalog.compose import zone_type, zone_types
from region_scheduler.catalog.model import StepDefinition, StepKind
from region_scheduler.catalog.resolve import resolve
from region_scheduler.errors import UnknownZoneType

HERE = Path(__file__).parent
DATA = Path(load.__file__).parent / "data"
RESOLVED: dict[str, Any] = json.loads((HERE / "resolved_types.json").read_text())
FACTS: dict[str, list[Any]] = json.loads((HERE / "step_facts.json").read_text())
STEP_KEYS = {
    "id", "purpose", "kind", "module", "program", "per_region", "irreversible", "needs_approval",
    "after", "minutes", "source", "locks", "assert", "controls",
}  # fmt: skip


def all_steps() -> list[StepDefinition]:
    return [step for name in load.subgraph_names() for step in load.subgraph(name).steps]


@pytest.mark.parametrize("name", sorted(RESOLVED))
def test_a_type_resolves_to_the_steps_and_edges_it_was_made_from(name: str) -> None:
    expected = RESOLVED[name]["after"]
    edges = {(before, step) for step, said in expected.items() for before in said.split()}

    template = resolve(name)

    assert list(template.steps) == list(expected)
    assert set(template.edges) == edges
    assert len(template.edges) == len(edges)


def test_there_are_18_types_46_subgraphs_and_211_steps_each_defined_once() -> None:
    defined = Counter(step.id for step in all_steps())

    assert [of_type.id for of_type in zone_types()] == sorted(RESOLVED)
    assert len(load.subgraph_names()) == 46
    assert len(defined) == 211
    assert set(defined.values()) == {1}
    assert set(defined) == set(FACTS)


def test_every_subgraph_is_used_and_every_file_is_named_by_its_id() -> None:
    used = {name for of_type in zone_types() for name in of_type.subgraphs}

    assert used == set(load.subgraph_names())
    assert [load.subgraph(name).id for name in load.subgraph_names()] == list(load.subgraph_names())
    assert [zone_type(name).id for name in load.type_names()] == list(load.type_names())


def test_every_step_says_what_it_was_made_from() -> None:
    for step in all_steps():
        kind, per_region, irreversible, needs_approval, p50, p90, _ = FACTS[step.id]
        said = [
            step.kind, step.is_per_region, step.is_irreversible, step.needs_approval,
            step.p50_min, step.p90_min,
        ]  # fmt: skip
        assert said == [kind, per_region, irreversible, needs_approval, p50, p90], step.id


def test_every_lock_is_kept_and_a_state_of_one_step_alone_is_left_to_its_own_lock() -> None:
    writers = Counter(key for fact in FACTS.values() for key in fact[-1] if is_state(key))

    for step in all_steps():
        named = [key for key in FACTS[step.id][-1] if not is_state(key) or writers[key] > 1]
        assert list(step.locks) == named, step.id
        alone = [key for key in FACTS[step.id][-1] if is_state(key) and writers[key] == 1]
        assert not alone or step.kind is StepKind.TERRAFORM, step.id


def test_every_lock_of_a_step_is_in_the_lock_catalogue_and_back() -> None:
    named = {"tfstate:*" if is_state(key) else key for step in all_steps() for key in step.locks}

    assert named == set(load.lock_catalogue())


def test_a_lock_that_names_a_region_is_held_by_per_region_steps_only() -> None:
    assert [
        step.id
        for step in all_steps()
        for key in step.locks
        if ("{region}" in key) and not step.is_per_region
    ] == []


def test_steps_use_no_word_that_the_loader_does_not_read() -> None:
    files = [*(DATA / "subgraphs").iterdir(), *(DATA / "overlays").iterdir()]
    steps = [step for path in files for step in yaml.safe_load(path.read_text())["steps"]]

    assert [step["id"] for step in steps if not set(step) <= STEP_KEYS] == []


def test_terraform_steps_have_a_module_and_tasks_a_program_that_exist() -> None:
    root = DATA.parent
    for step in all_steps():
        assert bool(step.module) == (step.kind is StepKind.TERRAFORM), step.id
        assert bool(step.program) == (step.kind is StepKind.TASK), step.id
        assert not step.module or (root / "modules" / step.module / "main.tf").is_file()
        assert not step.program or (root / "steps" / f"{step.program}.py").is_file()


def test_every_source_that_a_step_names_is_listed() -> None:
    named = {step.source for step in all_steps()} - {""}

    assert named <= set(load.sources())
    assert len(named) > 5


def test_the_overlay_hangs_in_the_graph_and_is_waited_for_at_the_end() -> None:
    plain, overlaid = resolve("aws-soc2"), resolve("aws-soc2", ("gdpr",))

    assert len(overlaid.steps) == len(plain.steps) + 6
    assert ("aws.cis-gate", "gdpr.breach-drill") in overlaid.edges
    assert ("gdpr.evidence", "c.drift-baseline") in overlaid.edges
    assert set(plain.edges) <= set(overlaid.edges)


def test_an_unknown_type_is_refused_with_the_list_of_those_there_are() -> None:
    with pytest.raises(UnknownZoneType, match="aws-pci_dss, aws-soc2") as refused:
        zone_type("aws-pci")

    assert refused.value.known == load.type_names()


def test_the_version_is_semantic_with_a_digest_of_the_content() -> None:
    number, _, digest = load.catalog_version().partition("+")

    assert number == load.VERSION
    assert len(digest) == 12
    assert int(digest, 16) >= 0


def is_state(key: str) -> bool:
    return key.startswith("tfstate:")
