"""The engine's server as a child process, to be ended in any way."""

from __future__ import annotations

import base64
import http.client
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.ties import tied

AUTHORIZATION = "Basic " + base64.b64encode(b"root:").decode()
START_S = 20.0


class EngineProcess:
    """`python -m region_scheduler.embedded.arango` on free ports."""

    def __init__(self, data: Path, *options: str, regions: str = "local") -> None:
        self._data = data
        self._options = options
        self._regions = regions
        self._process: subprocess.Popen[bytes] | None = None
        self.ports: dict[str, int] = {}
        self._clients: list[Client] = []

    def start(self) -> None:
        """Start, and return when it says that it is ready."""
        count = len(self._regions.split(","))
        self._process = subprocess.Popen(
            tied(
                [
                    *(sys.executable, "-m", "region_scheduler.embedded.arango"),
                    *("--ports", ",".join(["0"] * count), "--regions", self._regions),
                    *("--data", str(self._data), *self._options),
                ]
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        text = ""
        while text.count("\n") < count:
            ready, _, _ = select.select([self._output], [], [], START_S)
            part = os.read(self._output, 4096).decode() if ready else ""
            assert part, (text, self._process.poll())
            text += part
        for line in text.splitlines():
            word, address, region = line.split()
            assert word == "ready"
            self.ports[region] = int(address.rpartition(":")[2])

    @property
    def _output(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the end, return the exit code."""
        assert self._process is not None
        os.kill(self._process.pid, number)
        code = self._process.wait(timeout=20)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self._process = None
        return code

    def close_clients(self) -> None:
        """Close all connections that `client` made."""
        while self._clients:
            self._clients.pop().close()

    def client(self, region: str = "local") -> Client:
        """Return a new connection to a region's port."""
        self._clients.append(Client(self.ports[region]))
        return self._clients[-1]


class Client:
    """One keep-alive connection that speaks JSON as root."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)

    def __call__(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Send a request; return status and body."""
        text = None if body is None else json.dumps(body)
        sent = {"authorization": AUTHORIZATION, **(headers or {})}
        self._connection.request(method, path, body=text, headers=sent)
        response = self._connection.getresponse()
        raw = response.read()
        return response.status, json.loads(raw) if raw else None

    def raw(self, data: bytes, until: bytes) -> bytes:
        """Send bytes as they are; return what comes back up to some bytes."""
        self._connection.connect()
        self._connection.sock.sendall(data)
        received = b""
        while until not in received:
            part = self._connection.sock.recv(65_536)
            assert part, received
            received += part
        return received

    def close(self) -> None:
        self._connection.close()
