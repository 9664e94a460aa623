"""The demo as a newcomer starts it: three zones, three regions, real terraform, real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.local.demo import terraform_name

REGIONS = ["eu-west", "us-east", "ap-south"]


BARE = """
import sys
from region_scheduler.cli import main
from region_scheduler.local import demo
demo.terraform_name = lambda: "absent"
sys.argv = ["region-scheduler", "demo", "--json"]
main()
"""
"""The same program on a machine without terraform, as far as the demo can tell."""


def demo(folder: Path, *program: str) -> tuple[dict[str, Any], str]:
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
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found, ended.stderr


@pytest.mark.timeout(240)
def test_three_zones_become_real(tmp_path: Path) -> None:
    found, told = demo(tmp_path, "-m", "region_scheduler", "demo", "--json")

    assert found["ok"] is True
    assert found["regions"] == REGIONS
    assert found["runs"] == 3
    assert found["done"] == found["tasks"] == 237
    assert found["attempts"] == 237
    assert found["workers"] == dict.fromkeys(REGIONS, 1)
    broken = (
        "misrouted",
        "order_violations",
        "overlaps",
        "done_twice",
        "strays",
        "capacity_overruns",
    )
    assert {name: found[name] for name in broken} == dict.fromkeys(broken, 0)
    assert set(found["conflicts"]) == {"claims", "assignments", "requeued"}
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
def test_without_terraform_its_steps_are_simulated_and_one_line_says_so(tmp_path: Path) -> None:
    found, told = demo(tmp_path, "-c", BARE)

    assert (found["terraform"], found["terraform_applies"]) == ("absent", 0)
    assert found["ok"] is True
    assert found["done"] == found["tasks"] == 237
    lines = [line for line in told.splitlines() if "no terraform is to be had" in line]
    assert len(lines) == 1
