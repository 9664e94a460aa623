"""The programs that stand in for scripts, run as the runners run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from ipaddress import IPv4Network
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.catalog.compose import expand, zone_types
from region_scheduler.catalog.steps.reserve import blocks
from region_scheduler.domain.task import TaskSpec

PACKAGE = "region_scheduler.catalog.steps"
UPSTREAM = {"first": {"id": "network-1"}, "second": {}}


def spec(step: str, type_name: str = "azure-iso27001") -> TaskSpec:
    plan = expand(
        type_name, {}, ["eu-west", "us-east"], zone="shop", tenant="acme", home_region="eu-west"
    )
    return next(task for task in plan.tasks if task.step == step)


def run(
    argv: list[str], work: Path, inputs: Any, upstream: Any = UPSTREAM
) -> subprocess.CompletedProcess[str]:
    (work / "inputs.json").write_text(json.dumps({"inputs": inputs, "upstream": upstream}))
    return subprocess.run(
        [sys.executable if word == "{python}" else word for word in argv],
        env={
            **os.environ,
            "REGION_SCHEDULER_INPUTS": str(work / "inputs.json"),
            "REGION_SCHEDULER_OUTPUTS": str(work / "outputs.json"),
        },
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def outputs(work: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((work / "outputs.json").read_text())
    return read


def test_every_program_that_a_plan_names_runs_and_gives_outputs(tmp_path: Path) -> None:
    tasks = {
        " ".join(task.inputs["argv"]): task
        for of_type in zone_types()
        for task in expand(
            of_type.id, {}, ["eu-west"], zone="shop", tenant="acme", home_region="eu-west"
        ).tasks
        if task.runner == "command"
    }

    assert len(tasks) == 7
    for number, task in enumerate(tasks.values()):
        work = tmp_path / str(number)
        work.mkdir()
        ended = run(task.inputs["argv"], work, task.inputs)
        assert (ended.returncode, ended.stderr) == (0, ""), task.name
        assert outputs(work)
        first = (work / "outputs.json").read_bytes()
        run(task.inputs["argv"], work, task.inputs)
        assert (work / "outputs.json").read_bytes() == first, "an attempt may be repeated"


def test_evidence_binds_what_came_before_to_the_controls(tmp_path: Path) -> None:
    task = spec("iso.asset-register")

    run(task.inputs["argv"], tmp_path, task.inputs)

    bundle = outputs(tmp_path)
    assert bundle["controls"] == ["A.5.9", "A.5.23"]
    assert set(bundle["receipts"]) == {"first", "second"}
    run(task.inputs["argv"], tmp_path, task.inputs, {**UPSTREAM, "second": {"id": "other"}})
    assert outputs(tmp_path)["bundle"] != bundle["bundle"]


def test_a_request_is_answered_for_its_own_attempt_only(tmp_path: Path) -> None:
    task = spec("aws.workload-account", "aws-soc2")
    poll = task.inputs["verify"]["argv"]

    before = run(poll, tmp_path, task.inputs).returncode
    started = run(task.inputs["argv"], tmp_path, task.inputs).returncode
    after = run(poll, tmp_path, task.inputs).returncode
    stranger = run(poll, tmp_path, {**task.inputs, "zone": "other"}).returncode

    assert (before, started, after, stranger) == (1, 0, 0, 1)


def test_a_poll_turns_true_later_and_then_gives_outputs(tmp_path: Path) -> None:
    task = spec("az.mg-settle")

    codes = [run(task.inputs["argv"], tmp_path, task.inputs).returncode for _ in range(3)]

    assert codes == [1, 0, 0]
    assert outputs(tmp_path)["seen"] == ["network-1"]


def test_without_its_document_a_program_says_so() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", f"{PACKAGE}.freeze"],
        env={key: value for key, value in os.environ.items() if "REGION_SCHEDULER" not in key},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert ended.returncode == 2
    assert ended.stderr.startswith("REGION_SCHEDULER_INPUTS does not name a file")


@pytest.mark.parametrize(
    "program",
    ["evidence", "freeze", "identity", "publish", "record", "request", "reserve", "settled"],
)
def test_a_program_loads_nothing_heavy(program: str) -> None:
    told = (
        f"import json, sys, {PACKAGE}.{program}; "
        "print(json.dumps([n for n in sys.modules if n.startswith('region_scheduler') "
        "or n in ('yaml', 'dataclasses', 'importlib.resources', 'asyncio')]))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, timeout=30, check=True
    )

    loaded = [
        name
        for name in json.loads(ended.stdout)
        if not name.startswith(PACKAGE) and name != "region_scheduler"
    ]
    assert loaded == ["region_scheduler.catalog"]


@given(count=st.integers(1, 64), prefix=st.integers(8, 20))
def test_blocks_never_overlap_and_stay_inside(count: int, prefix: int) -> None:
    whole = IPv4Network((10 << 24, prefix))
    regions = [f"r{n}" for n in range(count)]

    cut = {region: IPv4Network(block) for region, block in blocks(str(whole), regions).items()}

    assert list(cut) == regions
    assert all(block.subnet_of(whole) for block in cut.values())
    assert not any(one.overlaps(other) for one, other in combinations(cut.values(), 2))
