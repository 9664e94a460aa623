"""A real stack loses a region in the middle of its work: all of it is done elsewhere, none twice.

The supervisor is stopped first, so that nobody starts the dead processes again before it goes on.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.domain.states import TaskState
from tests.integration.local.running import (
    RunningStack,
    all_done_once,
    eventually,
    write_graph,
)

pytestmark = pytest.mark.timeout(600)

LOST = "eu-west"
PATIENCE_S = 120.0


def region(running: RunningStack, name: str) -> dict[str, Any]:
    items = running.json("regions", "list")["items"]
    found: dict[str, Any] = next(one for one in items if one["region"] == name)
    return found


def lose(running: RunningStack, name: str) -> None:
    """Kill every process of a region; none of them comes back before the supervisor goes on."""
    assert running.process is not None
    running.process.send_signal(signal.SIGSTOP)
    for part in (f"worker {name}", f"serve {name}", f"broker {name}"):
        os.killpg(running.pid(part), signal.SIGKILL)


def counted(running: RunningStack, run: str) -> Counter[tuple[str, TaskState]]:
    return Counter((task.region, task.state) for task in running.tasks(run))


@pytest.mark.parametrize("count", [40, pytest.param(500, marks=pytest.mark.soak)])
def test_the_work_of_a_lost_region_is_done_elsewhere_and_none_of_it_twice(
    tmp_path: Path, count: int
) -> None:
    running = RunningStack(
        tmp_path / "state",
        tmp_path / "up.log",
        ("--concurrency", str(count)),
        settings={"REGION_SCHEDULER_WORKER_KIND": "threads"},
    )
    try:
        running.start()
        graph = write_graph(tmp_path / "g.json", [f"t{n}" for n in range(count)], [], 8.0)
        run: str = running.json("submit", "--graph", str(graph), "--simulate")["run"]
        eventually(lambda: counted(running, run)[LOST, TaskState.RUNNING] == count, PATIENCE_S)
        lose(running, LOST)
        lost_at = time.monotonic()

        eventually(lambda: region(running, "us-east")["load"] > 0, PATIENCE_S)
        print(f"first work elsewhere after {time.monotonic() - lost_at:.1f} s")  # noqa: T201
        assert region(running, LOST)["status"] == "down"
        eventually(lambda: running.done(run) == count, PATIENCE_S)
        print(f"all done after {time.monotonic() - lost_at:.1f} s")  # noqa: T201

        tasks = running.tasks(run)
        assert all_done_once(tasks)
        assert LOST not in {task.region for task in tasks}
        assert {task.losses for task in tasks} == {1}
        counters = running.counters(run)
        assert counters.total == 0, counters

        assert running.process is not None
        running.process.send_signal(signal.SIGCONT)
        eventually(lambda: region(running, LOST)["status"] == "active", PATIENCE_S)
        assert region(running, LOST)["epoch"] == 3
    finally:
        if running.process is not None:
            running.process.send_signal(signal.SIGCONT)
        running.stop()
