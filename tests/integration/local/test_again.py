"""Failed, retried, cleared, and waiting for a pool: what a person types, on a real stack."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from region_scheduler.local.evidence import step_records
from tests.integration.local.running import RunningStack, eventually, id_of

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    folder = tmp_path_factory.mktemp("again")
    stack = RunningStack(folder / "state", folder / "up.log", ("--regions", "solo"))
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


def submitted(running: RunningStack, folder: Path, *nodes: dict[str, Any], edges: Any = ()) -> str:
    file = folder / "graph.json"
    file.write_text(json.dumps({"name": "g", "nodes": nodes, "edges": list(edges)}))
    run: str = running.json("submit", "--graph", str(file))["run"]
    return run


def node(name: str, *argv: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "runner": "command", "inputs": {"argv": list(argv)}, **more}


def states(running: RunningStack, run: str) -> dict[str, str]:
    return {task.spec.name: task.state.value for task in running.tasks(run)}


def test_what_failed_for_good_is_listed_retried_and_what_is_done_is_cleared(
    running: RunningStack, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    run = submitted(
        running,
        tmp_path,
        node("before", "true"),
        node("needs-gate", "test", "-e", str(gate)),
        node("after", "true"),
        edges=[["before", "needs-gate"], ["needs-gate", "after"]],
    )
    assert running.json("watch", run, code=1)["items"][0]["state"] == "failed"

    (dead,) = running.json("tasks", "dead")["items"]
    assert (dead["run"], dead["name"]) == (run, "needs-gate")
    assert dead["why"]
    refused = running.run("tasks", "retry", f"{run}/before")
    assert refused.returncode == 2
    assert "tasks clear" in refused.stderr

    gate.touch()
    told = running.json("tasks", "retry", f"{run}/needs-gate")
    assert (told["round"], [item["name"] for item in told["items"]]) == (2, ["needs-gate"])
    assert running.json("watch", run)["items"][0]["state"] == "done"

    told = running.json("tasks", "clear", f"{run}/needs-gate")
    assert [item["name"] for item in told["items"]] == ["needs-gate", "after"]
    assert running.json("watch", run)["items"][0]["state"] == "done"
    again = {task.spec.name: task.submission for task in running.tasks(run)}
    assert again == {"before": 1, "needs-gate": 2, "after": 2}
    assert running.counters(run).total == 0
    with running.graph() as graph:
        acts = [entry.action for entry in graph.audit.recent(20)]
    assert {"tasks.retry", "tasks.clear"} <= set(acts)


def test_lst_008_a_task_whose_process_the_kernel_killed_runs_again(
    running: RunningStack, tmp_path: Path
) -> None:
    """The worker's child that runs it is killed with -9; the worker lives on."""
    mark = tmp_path / "child"
    once = f"if [ -e {mark} ]; then exit 0; fi; echo > {mark}; exec sleep 60"
    run = submitted(running, tmp_path, node("a", "sh", "-c", once, on_loss="retry"))
    eventually(mark.exists, 30)
    (begun,) = [r for r in step_records(running.stack()) if r.task == id_of(run, "a")]
    worker = running.pid("worker solo")

    os.kill(psutil.Process(begun.shim_pid).ppid(), signal.SIGKILL)

    assert running.json("watch", run)["items"][0]["state"] == "done"
    (task,) = running.tasks(run)
    assert (task.attempt, task.losses, task.retries_used) == (2, 1, 0)
    assert running.counters(run).total == 0
    assert running.pid("worker solo") == worker


def test_stk_026_a_running_task_is_stopped_by_a_clear_and_runs_again(
    running: RunningStack, tmp_path: Path
) -> None:
    """The running attempt is fenced, a new one starts, and nothing lingers."""
    mark = tmp_path / "mark"
    once = f"if [ -e {mark} ]; then exit 0; fi; touch {mark}; exec sleep 60"
    run = submitted(running, tmp_path, node("b", "sh", "-c", once, on_loss="retry"))
    eventually(mark.exists, 30)

    told = running.json("tasks", "clear", f"{run}/b")

    assert told["items"][0]["is_stopping"] is True
    assert running.json("watch", run)["items"][0]["state"] == "done"
    (task,) = running.tasks(run)
    assert (task.submission, task.attempt) == (2, 1)


def test_a_task_of_a_pool_without_a_worker_is_named_by_the_doctor_and_waits_alone(
    running: RunningStack, tmp_path: Path
) -> None:
    run = submitted(running, tmp_path, node("far", "true", pool="gpu"), node("near", "true"))
    eventually(lambda: states(running, run).get("near") == "done", 30)

    found = {row["subject"]: row for row in running.json("doctor", code=1)["items"]}
    assert "--pool gpu" in found["queues"]["detail"]
    assert states(running, run)["far"] == "ready"

    running.worker("solo", "--pool", "gpu")
    assert running.json("watch", run)["items"][0]["state"] == "done"
    found = {row["subject"]: row for row in running.json("doctor")["items"]}
    assert "gpu: 0 of at most" in found["queues"]["detail"]
