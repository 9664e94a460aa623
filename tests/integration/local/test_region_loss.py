"""A real stack loses a region in the middle of its work: all of it is done elsewhere, none twice.

The supervisor is stopped first, so that nobody starts the dead processes again before it goes on.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from region_scheduler.domain.lease import LOCAL_TIMINGS
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import EventKind, Task
from tests.integration.local.running import (
    RunningStack,
    all_done_once,
    eventually,
    write_graph,
)

LOST = "eu-west"
COUNT = 500
"""Steps that run when their region is lost, each in a thread of its worker."""
STEP_S = 20.0
"""The first of them still runs when the last one begins, on a busy machine, too."""
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


@dataclass(frozen=True)
class Loss:
    """From the kill on, in seconds.

    Attributes:
        again_s: Until the first of its tasks was claimed elsewhere.
        done_s: Until the last of them was done.
    """

    again_s: float
    done_s: float


def first(tasks: list[Task], kind: EventKind, since: datetime) -> float:
    """Return after how many seconds something first happened outside the lost region."""
    return min(
        (entry.at - since).total_seconds()
        for task in tasks
        for entry in task.history
        if entry.kind is kind and entry.region != LOST
    )


def a_loss(folder: Path) -> Loss:
    """Lose a region with all its slots taken, hold what became of it to the promises."""
    running = RunningStack(
        folder / "state",
        folder / "up.log",
        ("--concurrency", str(COUNT)),
        settings={"REGION_SCHEDULER_WORKER_KIND": "threads"},
    )
    try:
        running.start()
        graph = write_graph(folder / "g.json", [f"t{n}" for n in range(COUNT)], [], STEP_S)
        run: str = running.json("submit", "--graph", str(graph), "--simulate")["run"]
        eventually(lambda: counted(running, run)[LOST, TaskState.RUNNING] == COUNT, PATIENCE_S)
        lose(running, LOST)
        lost_at = datetime.now(UTC)

        eventually(lambda: region(running, LOST)["status"] == "down", PATIENCE_S)
        eventually(lambda: running.done(run) == COUNT, PATIENCE_S)

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
    ended = max(task.history[-1].at for task in tasks)
    return Loss(first(tasks, EventKind.CLAIMED, lost_at), (ended - lost_at).total_seconds())


@pytest.mark.timeout(600)
def test_the_work_of_a_lost_region_is_done_elsewhere_and_none_of_it_twice(tmp_path: Path) -> None:
    told(a_loss(tmp_path))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_region_is_lost_twenty_times_and_claimed_again_within_two_leases(tmp_path: Path) -> None:
    losses = []
    for n in range(20):
        folder = tmp_path / str(n)
        folder.mkdir()
        losses.append(a_loss(folder))
        told(losses[-1])
    again = [loss.again_s for loss in losses]
    print(  # noqa: T201
        f"{COUNT} running steps, {len(losses)} losses: claimed again after {median(again):.1f} s"
        f" in the middle, {max(again):.1f} s at most; all done after"
        f" {median(loss.done_s for loss in losses):.1f} s in the middle,"
        f" {max(loss.done_s for loss in losses):.1f} s at most"
    )
    assert max(again) < 2 * LOCAL_TIMINGS.lease_s


def told(loss: Loss) -> None:
    print(  # noqa: T201
        f"first claimed elsewhere after {loss.again_s:.1f} s, all done after {loss.done_s:.1f} s"
    )
