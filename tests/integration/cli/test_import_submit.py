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


def test_admissions_say_who_took_in_which_run(running: RunningStack, tmp_path: Path) -> None:
    key = "k\u202e\x07" + "y" * 300  # what would turn a terminal's line round, or ring its bell
    run = running.json("import", "graph", str(measured(tmp_path)), "--submit", "--key", key)["run"]

    (found,) = running.json("admissions", "list")["items"]
    told = running.run("admissions", "list").stdout
    shown = running.json("admissions", "show", run[-12:])
    by_key = running.json("admissions", "show", key)
    of_it = running.json("admissions", "list", "--instance", found["instance"])["items"]
    of_nobody = running.run("admissions", "list", "--instance", "solo.serv")
    unknown = running.run("admissions", "show", "nothing")

    assert (found["run"], found["tasks"], found["key"]) == (run, 4, key)
    assert (found["state"], found["epoch"], found["instance"]) == ("done", 1, "solo.cli")
    assert found["admission"] in told
    assert "\x07" not in told
    assert "\u202e" not in told
    assert "y" * 50 not in told
    assert by_key == shown
    assert (shown["lease"], shown["dependencies"]) == ("surrendered", 4)
    assert of_it == [found]
    assert "there are no admissions of solo.serv" in of_nobody.stdout
    assert unknown.returncode == 4


def test_a_key_belongs_to_its_request(running: RunningStack, tmp_path: Path) -> None:
    graph = measured(tmp_path)
    first = running.json("submit", "--graph", str(graph), "--key", "k")
    again = running.json("submit", "--graph", str(graph), "--key", "k")
    other = running.run("submit", "--graph", str(graph), "--key", "k", "--simulate")
    zone = ("submit", "z", "--type", "aws-soc2", "--simulate", "--time-scale", "0", "--key", "z")
    made = running.json(*zone)
    remade = running.json(*zone)

    assert (again["run"], again["is_repeat"]) == (first["run"], True)
    assert other.returncode == 2
    assert "was already used" in other.stderr
    assert (remade["run"], remade["is_repeat"]) == (made["run"], True)
