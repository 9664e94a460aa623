"""One real stack: everything that a person does with it, while its parts are killed.

Real brokers, real Celery workers, the engine over HTTP, every process its own. What is asked of the
runs is computed from what the step processes wrote, not from what the schedulers say.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from region_scheduler.assembly.working import STEPS_LOG
from region_scheduler.domain.states import TaskState
from region_scheduler.local.evidence import states
from tests.integration.local.running import (
    IS_ENGINE_OURS,
    RunningStack,
    all_done_once,
    eventually,
    id_of,
    layered,
    write_graph,
)

pytestmark = pytest.mark.timeout(300)

GRAPHS = Path(__file__).parents[2] / "data" / "graphs"
SOUND = 0
ENGINE = ["engine"] if IS_ENGINE_OURS else []


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    folder = tmp_path_factory.mktemp("stack")
    stack = RunningStack(folder / "state", folder / "up.log")
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()
        stack.drop()


def test_every_part_is_told_with_pid_memory_and_address(running: RunningStack) -> None:
    parts = ENGINE + [
        f"{kind} {region}"
        for kind in ("broker", "serve", "worker")
        for region in ("eu-west", "us-east", "ap-south")
    ]
    for part in parts:
        line = next(line for line in running.said().splitlines() if line.startswith(part))
        address = "" if part.startswith("worker") else r"\s+(http|redis)://127\.0\.0\.1:\d+"
        pattern = rf"{part}\s+pid {running.pid(part)}\s+\d+ MiB \(resident \d+\){address}"
        assert re.match(pattern, line), line
    total = re.search(rf"ready: {len(parts)} parts, (\d+) MiB", running.said())
    assert total
    assert int(total[1]) < 1200


def test_secrets_are_for_the_owner_of_the_directory_only(running: RunningStack) -> None:
    stack = running.stack()
    secret_files = [running.state_dir / "secrets.json", running.state_dir / "stack.json"]
    secret_files += [stack.directory(region) / "broker" / "server.conf" for region in stack.regions]

    assert [oct(path.stat().st_mode & 0o777) for path in secret_files] == ["0o600"] * 5
    assert stack.secrets.broker_password not in (running.state_dir / "stack.json").read_text()
    assert stack.secrets.broker_password not in running.said()


def test_nothing_is_readable_by_others(running: RunningStack) -> None:
    found = [running.state_dir, *running.state_dir.rglob("*")]
    open_to_others = [path for path in found if path.lstat().st_mode & 0o077]

    assert len(found) > 30
    assert [path for path in open_to_others if not path.is_symlink()] == []


def test_the_doctor_finds_everything_well(running: RunningStack) -> None:
    found = running.json("doctor")

    assert found["ok"] is True
    assert {
        "graph store",
        "clocks",
        "schedules",
        "broker",
        "queues",
        "terraform",
        "lease",
        "disk",
    } <= {row["subject"] for row in found["items"]}


def test_a_collection_tells_what_would_go_and_leaves_what_is_young(running: RunningStack) -> None:
    found = running.json("gc", "--dry-run")["items"]
    assert {one["kind"]: one["count"] for one in found} == dict.fromkeys(
        ("runs", "admissions", "instances", "conflicts", "audit"), 0
    )
    assert set(running.json("gc")["removed"].values()) == {0}


def test_a_freeze_holds_a_run_back_until_it_is_removed(
    running: RunningStack, tmp_path: Path
) -> None:
    graph = write_graph(tmp_path / "frozen.json", ["a"], [], 0.0)
    made = running.json(
        "calendars", "set", "freeze", "night", "tenant", "chilly", "--reason", "users sleep",
        "--until", "2099-01-01T00:00Z",
    )  # fmt: skip
    assert (made["state"], made["which"]) == ("in force", "chilly")
    run = running.json("submit", "--graph", str(graph), "--simulate", "--tenant", "chilly")["run"]

    def kept_by() -> list[str]:
        return [one["kind"] for one in running.json("explain", f"{run}/a")["reasons"]]

    eventually(lambda: "freeze" in kept_by(), 30)
    assert running.json("calendars", "show", "night", "tenant", "chilly")["next"][0]["end"]
    assert running.run("calendars", "show", "night", "tenant", "acme").returncode == 4
    assert [one["name"] for one in running.json("calendars", "list")["items"]] == ["night"]
    running.json("calendars", "remove", "night", "tenant", "chilly")

    assert running.json("watch", run)["items"][0]["state"] == "done"
    assert running.json("calendars", "list")["items"] == []


def test_a_schedule_fires_each_time_once_though_three_regions_look(
    running: RunningStack, tmp_path: Path
) -> None:
    graph = write_graph(tmp_path / "ticking.json", ["a"], [], 0.0)
    made = running.json(
        "schedules", "create", "ticking", "*/2 * * * * *", "--graph", str(graph),
        "--simulate", "--overlap", "allow", "--catch-up", "all:100",
    )  # fmt: skip
    assert len(made["next"]) == 3

    eventually(lambda: running.json("schedules", "show", "ticking")["fired"] >= 5, 60)
    paused = running.json("schedules", "pause", "ticking", "--reason", "enough")
    eventually(lambda: not running.json("schedules", "show", "ticking")["active"], 30)
    found = running.json("schedules", "show", "ticking")
    runs = [one for one in running.json("runs", "list", "--limit", "200")["items"]
            if one["name"] == graph.stem]  # fmt: skip
    assert found["state"] == paused["state"] == "paused"
    assert len(runs) == found["fired"]
    assert found["missed"] == sum(one["count"] for one in found["missed_records"])
    eventually(lambda: running.json("schedules", "show", "ticking")["missed"] > found["missed"], 30)
    running.json("schedules", "delete", "ticking")

    assert running.json("schedules", "list")["items"] == []
    assert running.run("schedules", "show", "ticking").returncode == 4
    for one in runs:
        assert running.json("watch", one["run"])["items"][0]["state"] == "done"


@pytest.mark.parametrize("part", ["worker eu-west", "serve eu-west", *ENGINE])
def test_a_run_ends_done_and_each_task_once_though_a_part_is_killed(
    running: RunningStack, part: str, tmp_path: Path
) -> None:
    names, edges = layered(width=6, depth=6)
    graph = write_graph(tmp_path / f"killed-{part.replace(' ', '-')}.json", names, edges, 0.4)
    run = running.json("submit", "--graph", str(graph), "--simulate")["run"]
    eventually(lambda: running.done(run) > 3, 60)

    running.kill(part)
    ended = running.json("watch", run)

    assert ended["items"] == [
        {
            "run": run,
            "name": graph.stem,
            "state": "done",
            "tasks": 36,
            "done": 36,
            "failed": [],
            "awaiting": [],
        }
    ]
    assert all_done_once(running.tasks(run))
    assert running.counters(run).total == SOUND
    assert running.json("verify", "--run", run)["violations"] == SOUND


@pytest.mark.parametrize(
    ("name", "tasks"), [("tf-azure-caf-enterprise-scale", 776), ("wf-1000genome-22ch", 902)]
)
def test_a_real_graph_runs_to_its_end(running: RunningStack, name: str, tasks: int) -> None:
    graph = str(GRAPHS / f"{name}.json")

    ended = running.json("submit", "--graph", graph, "--simulate", "--time-scale", "0", "--wait")

    (row,) = ended["items"]
    assert (row["state"], row["tasks"], row["done"]) == ("done", tasks, tasks)
    assert all_done_once(running.tasks(row["run"]))


def test_a_graph_with_a_cycle_is_refused_by_naming_its_members(running: RunningStack) -> None:
    before = running.json("runs", "list")

    ended = running.run("submit", "--graph", str(GRAPHS / "tg-gcp-catherinevee.json"), "--simulate")

    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert "security/cloud-armor" in line
    assert "networking/load-balancer" in line
    assert running.json("runs", "list") == before


def test_a_second_worker_started_by_hand_takes_its_share(
    running: RunningStack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"wide.{n}" for n in range(40)]
    seconds = []
    for workers in (1, 2):
        graph = write_graph(tmp_path / f"wide-{workers}.json", names, [], 0.4)
        if workers == 2:
            running.worker("eu-west", "--pool", "default", "--concurrency", "2")
            eventually(lambda: running.workers("eu-west") == 2, 60)
        here = ("--simulate", "--regions", "eu-west")  # or idle workers elsewhere would help
        run = running.json("submit", "--graph", str(graph), *here, "--wait")["items"][0]
        tasks = running.tasks(run["run"])
        starts = [e.at for t in tasks for e in t.history if e.kind.value == "started"]
        ends = [t.history[-1].at for t in tasks]
        seconds.append((max(ends) - min(starts)).total_seconds())

    shares = Counter(
        entry.by for task in tasks for entry in task.history if entry.kind.value == "started"
    )
    rates = [len(names) / taken for taken in seconds]
    with capsys.disabled():
        sys.stdout.write(
            f"\n{len(names)} tasks of 0.4 s in eu-west: {rates[0]:.1f} a second with one worker,"
            f" {rates[1]:.1f} with two\n"
        )
    assert len(shares) == 2
    assert min(shares.values()) >= 10


def test_what_failed_is_resumed_and_what_is_done_is_not_done_again(
    running: RunningStack, tmp_path: Path
) -> None:
    failing = tmp_path / "flag"
    command = {"argv": ["test", "-e", str(failing)]}
    nodes = [
        {"id": "before", "runner": "simulate"},
        {"id": "breaks", "runner": "command", "inputs": command},
        {"id": "after", "runner": "simulate"},
        {"id": "beside", "runner": "simulate"},
    ]
    edges = [["before", "breaks"], ["breaks", "after"], ["before", "beside"]]
    graph = tmp_path / "resumed.json"
    graph.write_text(json.dumps({"name": "resumed", "nodes": nodes, "edges": edges}))
    (row,) = running.json("submit", "--graph", str(graph), "--wait", code=1)["items"]
    run = row["run"]
    assert (row["state"], row["failed"], row["done"]) == ("failed", ["breaks"], 2)
    blocked = running.json("tasks", "blocks", f"{run}/breaks")["items"]
    assert [(task["name"], task["state"]) for task in blocked] == [("after", "pending")]

    failing.touch()
    assert running.json("resume", run)["resumed"] == ["breaks"]

    assert running.json("watch", run)["items"][0]["done"] == 4
    tasks = {task.id: task for task in running.tasks(run)}
    assert tasks[id_of(run, "before")].attempt == 1
    assert tasks[id_of(run, "breaks")].attempt == 2
    shown = running.json("tasks", "show", f"{run}/breaks")["task"]
    assert [entry["kind"] for entry in shown["history"]].count("resumed") == 1


BAD = [
    (["zones", "create", "red", "--type", "aws-nothing"], 2, "aws-nothing"),
    (["zones", "create", "red", "--type", "aws-soc2", "--regions", "mars"], 2, "mars"),
    (["zones", "create", "red", "--type", "aws-soc2", "--set", "cidr=10/8"], 2, "cidr"),
    (["zones", "create", "red", "--type", "aws-soc2", "--set", "colour=red"], 2, "colour"),
    (["submit", "no-such-zone"], 4, "no-such-zone"),
    (["runs", "show", "no-such-run"], 4, "no-such-run"),
]


def test_every_promise_was_kept_and_a_step_that_nobody_started_is_found(
    running: RunningStack, tmp_path: Path
) -> None:
    graph = write_graph(tmp_path / "two.json", ["first", "then"], [["first", "then"]], 0)
    run = running.json("submit", "--graph", str(graph), "--simulate", "--wait")["items"][0]["run"]
    kept = running.json("verify")
    assert (kept["ok"], kept["violations"]) == (True, SOUND)
    assert kept["looked_at"]["tasks"] >= 2

    logs = running.stack().settings("eu-west")["paths"]["log_dir"]
    log = Path(logs) / STEPS_LOG
    before = log.read_bytes()
    planted = json.loads(before.splitlines()[-1]) | {"receipt_id": "nobody-s"}
    log.write_bytes(before + json.dumps(planted).encode() + b"\n")
    broken = running.json("verify", code=1)
    log.write_bytes(before)

    assert broken["violations"] == 1
    found = {one["id"]: one["findings"] for one in broken["items"] if one["count"]}
    assert list(found) == ["I1"]
    assert "receipt nobody-s" in found["I1"][0]["evidence"][0]
    assert running.json("verify", "--run", run)["looked_at"]["runs"] == 1
    running.json("verify", "--run", "no-such-run", code=4)


def test_bad_input_is_one_line_and_writes_nothing(running: RunningStack, tmp_path: Path) -> None:
    graph = write_graph(tmp_path / "one.json", ["only"], [], 0)
    run = running.json("submit", "--graph", str(graph), "--simulate", "--wait")["items"][0]["run"]
    before = (running.json("zones", "list"), running.json("runs", "list"))

    for arguments, code, told in [*BAD, (["tasks", "approve", f"{run}/only"], 2, "awaits nothing")]:
        ended = running.run(*arguments)

        assert (ended.returncode, ended.stdout) == (code, "")
        (line,) = ended.stderr.splitlines()
        assert told in line

    assert (running.json("zones", "list"), running.json("runs", "list")) == before


def test_a_zone_is_created_submitted_and_goes_on_once_it_is_approved(running: RunningStack) -> None:
    """Real steps; the last test here, because the stack is stopped in the middle of them."""
    created = running.json(
        "zones", "create", "blue", "--type", "gcp-soc2", "--set", "environment=production"
    )
    assert created["zone"]["parameters"] == {"environment": "production"}
    assert [row["zone"] for row in running.json("zones", "list")["items"]] == ["blue"]
    dry = running.json("submit", "blue", "--dry-run")
    assert "c.change-approval" in dry["approvals"]

    (waiting,) = running.json("submit", "blue", "--key", "k1", "--wait", code=3)["items"]
    run = waiting["run"]
    assert waiting["awaiting"] == ["c.change-approval"]
    assert running.json("submit", "blue", "--key", "k1")["run"] == run
    assert len(running.json("runs", "order", run)["items"]) == dry["tasks"]

    assert running.json("tasks", "approve", f"{run}/c.change-approval")["state"] == "done"

    def has_applied() -> bool:
        return any(
            task.spec.runner == "terraform" and task.state is TaskState.DONE
            for task in running.tasks(run)
        )

    eventually(has_applied, 60)
    assert all(state["serial"] > 0 for state in states(running.stack()).values())
