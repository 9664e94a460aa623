"""The server's command line: what it prints, how it ends, what it refuses."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.engine.server import EngineProcess

MakeEngine = Callable[..., EngineProcess]
COMMAND = [sys.executable, "-m", "region_scheduler.embedded.arango"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=30, check=False
    )


def test_each_region_has_a_port_and_all_show_the_same_data(
    make_engine: MakeEngine, tmp_path: Path
) -> None:
    engine = make_engine(tmp_path / "data", "--lag-ms", "0", regions="eu-west,us-east")
    engine.start()
    eu, us = engine.client("eu-west"), engine.client("us-east")

    assert eu("GET", "/_api/version")[1]["version"] == "3.12.10-embedded"
    assert eu("POST", "/_api/collection", {"name": "c"})[0] == 200
    assert us("POST", "/_api/document/c", {"_key": "k", "n": 1})[0] == 202
    assert eu("GET", "/_api/document/c/k")[1]["n"] == 1

    assert engine.end(signal.SIGTERM) == 0


def test_a_stop_keeps_everything_and_a_start_finds_it(
    make_engine: MakeEngine, tmp_path: Path
) -> None:
    engine = make_engine(tmp_path / "data")
    engine.start()
    client = engine.client()
    assert client("POST", "/_db/_system/_api/database", {"name": "shop"})[0] == 201
    assert client("POST", "/_db/shop/_api/collection", {"name": "c"})[0] == 200
    index = {"type": "persistent", "fields": ["n"], "unique": True}
    _, made = client("POST", "/_db/shop/_api/index?collection=c", index)
    _, first = client("POST", "/_db/shop/_api/document/c", {"_key": "k", "n": 1})
    assert engine.end(signal.SIGTERM) == 0

    engine.start()
    client = engine.client()
    assert client("GET", "/_db/shop/_api/document/c/k")[1]["_rev"] == first["_rev"]
    assert client("GET", f"/_db/shop/_api/index/{made['id']}")[1]["unique"] is True
    assert client("POST", "/_db/shop/_api/document/c", {"n": 1})[1]["errorNum"] == 1210
    _, second = client("PATCH", "/_db/shop/_api/document/c/k", {"n": 2})
    assert second["_rev"] != first["_rev"]
    assert engine.end(signal.SIGINT) == 0


def test_a_port_in_use_is_one_clear_line_and_78(tmp_path: Path) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run("--port", str(port), "--data", str(tmp_path / "data"))

    assert ended.returncode == 78
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    assert str(port) in ended.stderr


def test_a_data_directory_in_use_is_one_clear_line_and_78(
    make_engine: MakeEngine, tmp_path: Path
) -> None:
    engine = make_engine(tmp_path / "data")
    engine.start()
    ended = run("--port", "0", "--data", str(tmp_path / "data"))

    assert (ended.returncode, ended.stdout) == (78, "")
    assert "in use by another process" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert engine.end() == 0


@pytest.mark.parametrize("damage", ["text", "truncated", "overwritten"])
def test_a_damaged_data_directory_is_one_clear_line_and_78(
    make_engine: MakeEngine, tmp_path: Path, damage: str
) -> None:
    data = tmp_path / "data"
    engine = make_engine(data)
    engine.start()
    client = engine.client()
    client("POST", "/_api/collection", {"name": "c"})
    client("POST", "/_api/document/c", [{"text": "x" * 500} for _ in range(500)])
    assert engine.end() == 0
    file = data / "engine.sqlite"
    whole = file.read_bytes()
    if damage == "text":
        file.write_text("this is no database, whatever its name says" * 50)
    elif damage == "truncated":
        file.write_bytes(whole[: len(whole) // 2])
    else:
        middle = len(whole) // 2
        file.write_bytes(whole[:middle] + b"\xff" * 20_000 + whole[middle + 20_000 :])
    ended = run("--port", "0", "--data", str(data))

    assert (ended.returncode, ended.stdout) == (78, "")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--port", "x"],
        ["--port", "70000"],
        ["--ports", "1,2", "--regions", "a"],
        ["--ports", "1,b", "--regions", "a,b"],
        ["--regions", "a,a"],
        ["--regions", ""],
        ["--lag-ms", "-1"],
        ["--unknown"],
    ],
)
def test_bad_arguments_are_one_clear_line_and_2(arguments: list[str]) -> None:
    ended = run(*arguments)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1


def test_a_hundred_thousand_documents_are_there_again_in_three_seconds(
    make_engine: MakeEngine, tmp_path: Path
) -> None:
    engine = make_engine(tmp_path / "data")
    engine.start()
    client = engine.client()
    client("POST", "/_api/collection", {"name": "tasks"})
    for fields in (["state", "due"], ["run"]):
        client("POST", "/_api/index?collection=tasks", {"type": "persistent", "fields": fields})
    for part in range(100):
        status, _ = client(
            "POST", "/_api/document/tasks?silent=true", [task(part, n) for n in range(1000)]
        )
        assert status == 202
    assert engine.end(signal.SIGKILL) == -signal.SIGKILL

    engine.start()
    assert engine.client()("GET", "/_api/collection/tasks/count")[1]["count"] == 100_000
    # Processor time: other work on the machine does not count against it.
    assert processor_s(engine.pid) < 3
    assert resident_bytes(engine.pid) < 500e6
    assert engine.end() == 0


def task(part: int, n: int) -> dict[str, object]:
    return {
        "_key": f"{part}-{n}",
        "run": f"run-{part}",
        "state": "ready" if n < 20 else "pending",
        "due": n,
        "spec": {"runner": "terraform", "inputs": {"cidr": "10.0.0.0/16", "name": "x" * 300}},
        "history": [{"who": "scheduler-eu-west-1", "token": k, "at": "y" * 40} for k in range(4)],
        "text": "z" * 200,
    }


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")
