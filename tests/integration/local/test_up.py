"""How a stack begins and ends: refused, stopped, killed, resumed."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import REAL_URL_VARIABLE
from tests.integration.engine.server import EngineProcess
from tests.integration.local.running import (
    RunningStack,
    all_done_once,
    command,
    descendants,
    eventually,
    layered,
    write_graph,
)

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningStack]:
    stack = RunningStack(tmp_path / "state", tmp_path / "up.log", ("--regions", "solo"))
    try:
        yield stack
    finally:
        if stack.process is not None and stack.process.poll() is None:
            stack.stop()
        stack.drop()


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run an engine that is no stack's part, and have the settings name it."""
    engine = EngineProcess(tmp_path / "elsewhere")
    engine.start()
    url = f"http://127.0.0.1:{engine.ports['local']}"
    monkeypatch.setenv(REAL_URL_VARIABLE, url)
    monkeypatch.setenv("REGION_SCHEDULER_ARANGO_IS_EMBEDDED", "true")
    yield url
    assert engine.end() == 0


def test_a_stack_uses_the_graph_store_that_the_settings_name(
    elsewhere: str, running: RunningStack, tmp_path: Path
) -> None:
    running.start()
    names, edges = layered(width=2, depth=3)
    graph = write_graph(tmp_path / "elsewhere.json", names, edges, 0)

    (row,) = running.json("submit", "--graph", str(graph), "--simulate", "--wait")["items"]

    assert (row["state"], row["done"]) == ("done", 6)
    assert set(running.stack().processes) == {"broker solo", "serve solo", "worker solo"}
    assert not (running.state_dir / "engine").exists()
    told = {found["subject"]: found["detail"] for found in running.json("doctor")["items"]}
    assert elsewhere in told["graph store"]
    assert running.stop() == 0
    running.start()
    assert [found["run"] for found in running.json("runs", "list")["items"]] == [row["run"]]
    assert running.stop() == 0


def test_a_store_that_refuses_us_ends_all_of_it_with_what_it_said(
    elsewhere: str, running: RunningStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert elsewhere
    monkeypatch.setenv("REGION_SCHEDULER_ARANGO_PASSWORD", "wrong")

    assert running.launch().wait(60) == 78

    last = running.said().splitlines()[-1]
    assert "not authorized" in last
    assert descendants(str(running.state_dir)) == []
    monkeypatch.delenv("REGION_SCHEDULER_ARANGO_PASSWORD")


def test_a_stopped_stack_leaves_no_process_and_goes_on_where_it_was(
    running: RunningStack, tmp_path: Path
) -> None:
    running.start()
    mark = str(running.state_dir)
    names, edges = layered(width=4, depth=5)
    graph = write_graph(tmp_path / "resumed.json", names, edges, 0.8)
    run = running.json("submit", "--graph", str(graph), "--simulate")["run"]
    eventually(lambda: running.done(run) > 0, 60)
    second = running.run("up")
    assert second.returncode == 78
    assert running.process is not None
    assert f"(pid {running.process.pid})" in second.stderr
    assert len(descendants(mark)) > 4
    addresses = running.stack().regions

    assert running.stop() == 0

    assert descendants(mark) == []
    assert (running.stack().up, running.stack().processes) == (None, {})
    ended = running.run("runs", "list")
    assert ended.returncode == 69
    assert "graph store is unavailable" in ended.stderr
    found = {row["subject"]: row["ok"] for row in running.json("doctor", code=1)["items"]}
    assert (found["graph store"], found["instances"], found["broker"]) == (False, None, False)
    running.start()
    assert running.stack().regions == addresses
    assert running.json("watch", run)["items"][0]["state"] == "done"
    assert all_done_once(running.tasks(run))
    assert running.counters(run).total == 0


def test_a_killed_up_leaves_no_process_and_the_next_one_starts(running: RunningStack) -> None:
    running.start()
    assert running.process is not None

    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait()

    eventually(lambda: not descendants(str(running.state_dir)), 10)
    running.start()
    assert running.json("doctor")["ok"] is True


def test_a_port_in_use_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        ended = command("up", "--state-dir", str(state_dir), "--regions", "a", "--port", str(port))

    assert ended.returncode == 78
    (line,) = ended.stderr.splitlines()
    assert f"port {port} " in line
    assert not state_dir.exists()


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"schema": 99}', '{"schema": 1, "regions": {"a": 3}}', "\0"],
    ids=["cut short", "a list", "another version", "other fields", "no text"],
)
def test_a_damaged_state_directory_is_refused_and_left_as_it_is(
    tmp_path: Path, content: str
) -> None:
    state_dir = tmp_path / "state"
    state_dir.mkdir()
    (state_dir / "stack.json").write_text(content)
    (state_dir / "secrets.json").write_text(json.dumps({}))

    ended = command("up", "--state-dir", str(state_dir))

    assert ended.returncode == 78
    (line,) = ended.stderr.splitlines()
    assert "is damaged" in line
    assert sorted(path.name for path in state_dir.iterdir()) == ["secrets.json", "stack.json"]
    assert (state_dir / "stack.json").read_text() == content


def test_a_state_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("not a directory")

    ended = command("up", "--state-dir", str(tmp_path / "state"))

    assert ended.returncode == 78
    (line,) = ended.stderr.splitlines()
    assert "is no directory" in line


def test_a_part_that_refuses_to_start_ends_all_of_it_with_what_it_said(
    running: RunningStack,
) -> None:
    (running.state_dir / "engine").mkdir(parents=True)
    (running.state_dir / "engine" / "engine.sqlite").write_bytes(b"no database" * 1000)

    process = running.launch()

    assert process.wait(60) == 78
    assert descendants(str(running.state_dir)) == []
    last = running.said().splitlines()[-1]
    assert last.startswith("region-scheduler: cannot start: engine ended with exit code 78: ")
    assert str(running.state_dir / "engine") in last
