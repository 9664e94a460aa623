"""A pytest that is killed leaves no server behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.services import eventually
from tests.ties import tied

ROOT = Path(__file__).parents[2]
_SERVERS = {
    "engine": "from tests.engines import serving; s = serving('over HTTP')",
    "valkey": "import sys, pathlib; from tests.services import valkey; "
    "s = valkey(pathlib.Path(sys.argv[1]))",
    "postgres": "from tests.services import postgres; s = postgres()",
}


@pytest.mark.parametrize("kind", sorted(_SERVERS))
def test_a_server_does_not_outlive_a_killed_parent(kind: str, tmp_path: Path) -> None:
    mark = f"ties-{kind}-{os.getpid()}"
    script = f"{_SERVERS[kind]}\nwith s:\n    print('up', flush=True)\n    input()\n"
    with subprocess.Popen(
        tied([sys.executable, "-c", script, str(tmp_path / "data")]),
        cwd=ROOT,
        env={**os.environ, "TIES_MARK": mark},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"up\n"
        started = {*psutil.Process(parent.pid).children(recursive=True), *marked(mark)}
        started.discard(psutil.Process(parent.pid))
        assert started
        parent.send_signal(signal.SIGKILL)
        parent.wait(10)
        eventually(lambda: not any(lives(process) for process in started), timeout_s=15)


def lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def marked(mark: str) -> list[psutil.Process]:
    """Return the processes that carry a mark in their environment, whoever their parent is."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TIES_MARK") == mark:
                found.append(process)
        except psutil.Error:  # it has ended, or is not ours to look into
            continue
    return found
