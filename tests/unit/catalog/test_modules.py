"""The stand-in modules: that they say so, need no provider, and apply without a second change."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.catalog import load
from region_scheduler.catalog.compose import expand
from region_scheduler.catalog.stand_ins import module_directory
from region_scheduler.errors import InvalidInput

MODULES = Path(load.__file__).parent / "modules"
NAMES = sorted(path.name for path in MODULES.iterdir() if path.is_dir())
TERRAFORM = shutil.which("terraform") or shutil.which("tofu")
UPSTREAM: dict[str, dict[str, Any]] = {
    "c.cidr-reserve": {"blocks": {"eu-west": "10.0.0.0/13"}, "cidr": "10.0.0.0/12"},
    "c.worker-identity": {"id": "worker", "subject": "zone:acme/shop"},
    "keys@eu-west": {"id": "keys-1", "kind": "keys"},
    "tree": {"id": "hierarchy-1", "kind": "hierarchy", "units": {"security": "u"}},
    "logs": {"id": "logging-1", "kind": "logging", "destination": "archive://logging-1"},
    "gate": {},
}


@pytest.mark.parametrize("name", NAMES)
def test_a_module_says_that_it_is_a_stand_in_and_needs_nothing(name: str) -> None:
    text = (MODULES / name / "main.tf").read_text()

    assert text.startswith("# Stand-in for ")
    assert set(re.findall(r'^resource "(\w+)"', text, re.MULTILINE)) == {"terraform_data"}
    assert not re.search(r"\b(provisioner|required_providers|module|data)\s+[\"{]", text)
    assert not re.search(r"\b(timestamp|uuid|bcrypt)\(", text)
    assert set(re.findall(r'^variable "(\w+)"', text, re.MULTILINE)) == {
        "step",
        "inputs",
        "upstream",
    }
    assert {"id", "kind"} <= set(re.findall(r'^output "(\w+)"', text, re.MULTILINE))


def test_every_module_is_used_and_listed() -> None:
    used = {step.module for name in load.subgraph_names() for step in load.subgraph(name).steps} - {
        ""
    }
    readme = (MODULES / "README.md").read_text()

    assert used == set(NAMES)
    assert readme.startswith("# Stand-in modules\n\n**These modules provision nothing.**")
    assert [name for name in NAMES if name not in readme] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_module_is_found_by_its_reference(name: str) -> None:
    assert module_directory(f"catalog:{name}") == MODULES / name


@pytest.mark.parametrize("bad", ["network", "catalog:", "catalog:../data", "catalog:netwrok"])
def test_a_reference_to_no_module_is_refused_with_those_there_are(bad: str) -> None:
    with pytest.raises(InvalidInput, match="there are catalog:account, catalog:backup") as refused:
        module_directory(bad)

    assert (refused.value.field, refused.value.value) == ("module", bad)


@pytest.mark.skipif(TERRAFORM is None, reason="no terraform or tofu on PATH")
@pytest.mark.parametrize("name", NAMES)
def test_it_applies_offline_hands_on_ids_and_then_shows_no_change(
    name: str, tmp_path: Path
) -> None:
    shutil.copy(MODULES / name / "main.tf", tmp_path)
    (tmp_path / "in.auto.tfvars.json").write_text(json.dumps(variables(name)))

    terraform(tmp_path, "init", "-input=false")
    terraform(tmp_path, "apply", "-auto-approve", "-input=false")
    terraform(tmp_path, "plan", "-detailed-exitcode", "-input=false")

    said = json.loads(terraform(tmp_path, "output", "-json"))
    assert re.fullmatch(rf"{name}-[0-9a-f]{{12}}", said["id"]["value"])
    assert said["kind"]["value"] == name
    state = json.loads((tmp_path / "terraform.tfstate").read_text())
    assert state["serial"] >= 1
    kept = json.dumps([resource["instances"] for resource in state["resources"]])
    assert [
        outputs["id"]
        for outputs in UPSTREAM.values()
        if "id" in outputs and outputs["id"] not in kept
    ] == []


def variables(module: str) -> dict[str, Any]:
    plan = expand("aws-nist80053", {}, ["eu-west"], zone="s", tenant="acme", home_region="eu-west")
    step = next(task for task in plan.tasks if task.step == "aws.inspection-vpc")
    return {**step.inputs["variables"], "step": f"of-{module}", "upstream": UPSTREAM}


def terraform(folder: Path, *arguments: str) -> str:
    ended = subprocess.run(
        [str(TERRAFORM), *arguments, "-no-color"],
        cwd=folder,
        env={**os.environ, "TF_CLI_CONFIG_FILE": os.devnull, "CHECKPOINT_DISABLE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout
