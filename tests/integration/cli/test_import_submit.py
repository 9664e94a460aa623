"""`import --submit` on a stack: one run a key, and conditions decide what is skipped."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.local.running import RunningStack

pytestmark = pytest.mark.timeout(300)
DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningStack]:
    stack = RunningStack(tmp_path / "state", tmp_path / "up.log", ("--regions", "solo"))
    try:
        stack.start()
        yield stack
    finally:
        if stack.process is not None and stack.process.poll() is None:
            stack.stop()


def measured(tmp_path: Path) -> Path:
    """Return a graph whose first task measures; one branch is wanted, the other is not."""
    measure = (
        "import json, os; json.dump({'size': 7}, open(os.environ['REGION_SCHEDULER_OUTPUTS'], 'w'))"
    )
    size = "/upstream/measure/size"
    document = {
        "name": "measured",
        "nodes": [
            {
                "id": "measure",
                "runner": "command",
                "inputs": {"argv": [sys.executable, "-c", measure]},
            },
            {
                "id": "grow",
                "runner": "simulate",
                "condition": [{"path": size, "op": "le", "value": 9}],
            },
            {
                "id": "split",
                "runner": "simulate",
                "condition": [{"path": size, "op": "ge", "value": 9}],
            },
            {"id": "tell", "runner": "simulate"},
        ],
        "edges": [["measure", "grow"], ["measure", "split"], ["grow", "tell"], ["split", "tell"]],
    }
    path = tmp_path / "measured.json"
    path.write_text(json.dumps(document))
    return path


def test_a_converted_graph_is_submitted_once_a_key(running: RunningStack, tmp_path: Path) -> None:
    dot = str(DATA / "terraform" / "plan.dot")

    first = running.json("import", "terraform-graph", dot, "--submit", "--key", "k")
    again = running.json("import", "terraform-graph", dot, "--submit", "--key", "k")
    branched = running.json("import", "graph", str(measured(tmp_path)), "--submit")
    cyclic = str(DATA / "graphs" / "tg-gcp-catherinevee.json")
    refused = running.run("import", "graph", cyclic, "--submit")
    ended = [running.run("watch", run["run"]).returncode for run in (first, branched)]

    assert ended == [0, 0]
    assert (first["tasks"], first["is_repeat"]) == (13, False)
    assert (again["run"], again["is_repeat"]) == (first["run"], True)
    assert refused.returncode == 2
    assert len(running.json("runs", "list")["items"]) == 2
    tasks = running.json("tasks", "list", branched["run"])["items"]
    assert {task["name"]: task["state"] for task in tasks} == {
        "measure": "done",
        "grow": "done",
        "split": "skipped",
        "tell": "done",
    }
    assert [task["reason"] for task in tasks if task["name"] == "split"] == ["condition"]
