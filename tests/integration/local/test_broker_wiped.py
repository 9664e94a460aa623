"""A real broker is flushed while a real stack works: all is done, none twice (steps' own log)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
import redis

from region_scheduler.domain.task import Task
from tests.integration.local.running import (
    RunningStack,
    all_done_once,
    eventually,
    write_graph,
)

pytestmark = pytest.mark.timeout(600)

QUEUE = "rs.solo.default"


@pytest.mark.parametrize("count", [60, pytest.param(1_000, marks=pytest.mark.soak)])
def test_a_flushed_broker_costs_time_only(tmp_path: Path, count: int) -> None:
    """Cases LST-002 and LST-015: nearly all tasks are dispatched as the broker forgets them."""
    running = RunningStack(
        tmp_path / "state",
        tmp_path / "up.log",
        ("--regions", "solo"),
        settings={"REGION_SCHEDULER_SCHEDULER_LOOK_AHEAD": str(count)},
    )
    try:
        running.start()
        url = running.stack().settings("solo")["broker"]["url"]
        graph = write_graph(tmp_path / "g.json", [f"t{n}" for n in range(count)], [], 0.05)
        with closing(redis.Redis.from_url(url)) as broker:
            run: str = running.json("submit", "--graph", str(graph), "--simulate")["run"]
            eventually(lambda: int(broker.llen(QUEUE)) > count // 2, 60)
            broker.flushall()

        eventually(lambda: running.done(run) == count, 540)
        assert all_done_once(running.tasks(run))
        assert running.counters(run).total == 0
        late = [t for t in running.tasks(run) if _has_timed_out(t)]
        assert len(late) > count // 4, "what was lost came back by its dispatch time-out"
    finally:
        running.stop()


def _has_timed_out(task: Task) -> bool:
    return any(entry.detail == "dispatch timed out" for entry in task.history)
