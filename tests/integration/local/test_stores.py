"""A region's relational store is lost, and rebuilt, while a real stack works on a run."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.local.running import (
    RunningStack,
    all_done_once,
    eventually,
    layered,
    write_graph,
)

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    folder = tmp_path_factory.mktemp("stack")
    stack = RunningStack(folder / "state", folder / "up.log", ("--regions", "solo"))
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


def submitted(running: RunningStack, folder: Path, name: str) -> str:
    names, edges = layered(width=6, depth=6)
    graph = write_graph(folder / f"{name}.json", names, edges, 0.2)
    run: str = running.json("submit", "--graph", str(graph), "--simulate")["run"]
    eventually(lambda: running.done(run) > 0, 60)
    return run


def store(running: RunningStack) -> Path:
    return running.stack().directory("solo") / "region.db"


def tasks_known(running: RunningStack, run: str) -> int:
    with sqlite3.connect(store(running)) as connection:
        query = "SELECT count(*) FROM task_metadata WHERE run = ? AND state = 'done'"
        count: int = connection.execute(query, [run]).fetchone()[0]
    connection.close()
    return count


def test_the_store_may_be_deleted_while_a_run_is_under_way(
    running: RunningStack, tmp_path: Path
) -> None:
    run = submitted(running, tmp_path, "lost")

    for file in store(running).parent.glob("region.db*"):
        file.unlink()

    assert running.json("watch", run)["items"][0]["state"] == "done"
    assert all_done_once(running.tasks(run))
    assert running.counters(run).total == 0
    assert eventually(lambda: tasks_known(running, run) == 36, 30), "its attributes are there again"
    log = (running.stack().logs / "serve-solo.log").read_text()
    assert '"event": "relational store mended"' in log


def test_the_backlog_may_be_rebuilt_while_a_run_is_under_way(
    running: RunningStack, tmp_path: Path
) -> None:
    run = submitted(running, tmp_path, "rebuilt")

    told = running.json("rebuild-backlog", "--region", "solo")

    assert told["region"] == "solo"
    assert told["recorded"] >= 36
    assert (told["dropped"], told["forgotten"]) == (0, 0)
    assert running.json("watch", run)["items"][0]["state"] == "done"
    assert all_done_once(running.tasks(run))
    with running.graph() as graph:
        entry = next(e for e in graph.audit.recent(10) if e.action == "backlog.rebuild")
    assert (entry.thing, entry.actor.partition(":")[0]) == ("solo", "operator")


def test_a_region_that_there_is_not_is_refused(running: RunningStack) -> None:
    ended = running.run("rebuild-backlog", "--region", "mars")

    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert "--region: 'mars' is not accepted; the stack in" in line
