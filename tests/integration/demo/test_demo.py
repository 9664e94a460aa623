"""The demo as a newcomer starts it: three zones, three regions, real terraform, real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.local.demo.work import terraform_name
from region_scheduler.verify.counters import Counters
from region_scheduler.verify.invariants import Invariant

REGIONS = ["eu-west", "us-east", "ap-south"]
BROKEN = [field.name for field in fields(Counters)]


BARE = """
import json, sys
from region_scheduler.assembly.working import STEPS_LOG
from region_scheduler.cli import demonstration, main
from region_scheduler.local.demo import work

report = demonstration.report

def planted(operator, stack, *more):
    log = stack.directory("eu-west") / "logs" / STEPS_LOG
    line = json.loads(log.read_bytes().splitlines()[-1]) | {"receipt_id": "nobody-s"}
    with log.open("a") as file:
        file.write(json.dumps(line) + chr(10))
    return report(operator, stack, *more)

demonstration.report = planted
work.terraform_name = lambda: "absent"
sys.argv = ["region-scheduler", "demo", "--quiet", "--json"]
main()
"""
"""The same program on a machine without terraform, as far as the demo can tell, on which a step ran
that nobody had started."""


def demo(folder: Path, *program: str, code: int = 0) -> tuple[dict[str, Any], str]:
    """Run it, and return the object on its last line, and what it told meanwhile."""
    ended = subprocess.run(
        [sys.executable, *program],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=230,
        check=False,
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found, ended.stderr


@pytest.mark.timeout(240)
def test_three_zones_become_real_while_one_region_is_lost_and_another_cut_off(
    tmp_path: Path,
) -> None:
    found, told = demo(tmp_path, "-m", "region_scheduler", "demo", "--json")

    assert (found["ok"], found["unmet"]) == (True, [])
    assert found["regions"] == REGIONS
    assert found["runs"] == 3 + 1 + 3  # zones, contention, and what things go wrong with
    assert found["done"] == found["tasks"] == 237 + 90 + 7
    assert found["attempts"] > found["tasks"]
    assert found["workers"] == dict.fromkeys(REGIONS, 1)
    assert {name: found[name] for name in BROKEN} == dict.fromkeys(BROKEN, 0)
    assert found["invariants"]["checked"] == len(Invariant) - 1  # fairness leaves no record
    assert found["invariants"]["violations"] == 0
    conflicts = found["conflicts"]
    assert conflicts.keys() == {"claims", "assignments", "requeued"}
    assert conflicts["requeued"] >= conflicts["assignments"] > 0
    assert found["fenced_writes"] >= 1
    lost = found["failover"]
    assert lost["region"] == "eu-west"
    assert 0 < lost["detected_s"] <= lost["recovered_s"]
    assert lost["moved"] > 0
    assert lost["waited"] > 0
    cut = found["cut_off"]
    assert cut["region"] == "us-east"
    assert 0 < cut["stopped_s"] < cut["taken_over_s"] < cut["returned_s"]
    assert found["memory_mib"] < 1200
    if terraform_name() == "absent":
        assert found["terraform"] == "absent"
    else:
        assert found["terraform_applies"] >= 60
    assert "kill any of these pids" in told
    assert told.count("auto-approved: ") == 9
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_what_is_wrong_is_named_and_a_missing_terraform_is_simulated(
    tmp_path: Path,
) -> None:
    found, told = demo(tmp_path, "-c", BARE, code=1)

    assert (found["terraform"], found["terraform_applies"]) == ("absent", 0)
    assert found["done"] == found["tasks"] == 237 + 90
    assert (found["runs"], found["failover"], found["cut_off"]) == (4, None, None)
    assert (found["invariants"]["violations"], found["strays"]) == (1, 1)
    assert found["unmet"] == [
        "no invariant is violated: 1 violations",
        "by the steps' own log nothing is wrong: 1 strays",
    ]
    assert found["ok"] is False
    assert "receipt nobody-s" in told
    lines = [line for line in told.splitlines() if "no terraform is to be had" in line]
    assert len(lines) == 1
    (kept,) = tmp_path.iterdir()
    assert f"logs and states are in {kept}" in told
