"""A client that costs little, so that the server is what is measured.

It speaks just enough HTTP/1.1 for one server that always answers with a content length.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from region_scheduler.runtime.system import SystemClock

_AUTHORIZATION = "Basic cm9vdDo="


class RawClient:
    """One keep-alive connection.

    Args:
        port: On the loopback address.
    """

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request and return the decoded body of its answer.

        Raises:
            RuntimeError: The answer is no success.
        """
        status, raw = self.raw(method, path, b"" if body is None else orjson.dumps(body))
        if status >= 400:
            raise RuntimeError(f"{method} {path}: {status} {raw[:200]!r}")
        return orjson.loads(raw) if raw else None

    def raw(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Send a request and return status and body of its answer."""
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: engine\r\nauthorization: {_AUTHORIZATION}\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        self._socket.sendall(head.encode() + body)
        data = self._socket.recv(65_536)
        while b"\r\n\r\n" not in data:
            data += self._more()
        head_bytes, _, rest = data.partition(b"\r\n\r\n")
        at = head_bytes.find(b"content-length: ")
        length = int(head_bytes[at + 16 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        parts, have = [rest], len(rest)
        while have < length:
            parts.append(self._more())
            have += len(parts[-1])
        return int(head_bytes[9:12]), b"".join(parts)

    def _more(self) -> bytes:
        data = self._socket.recv(1 << 20)
        if not data:
            raise RuntimeError("the server closed the connection")
        return data

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


@dataclass(frozen=True, slots=True)
class Round:
    """What one client process measured.

    Attributes:
        count: Documents that were written, or requests that were answered.
        seconds: From its first request to its last answer.
        latencies_s: Of each request.
    """

    count: int
    seconds: float
    latencies_s: Sequence[float]


def _timed(act: Callable[[], int], seconds: float) -> Round:
    clock = SystemClock()
    latencies: list[float] = []
    count = 0
    began_at = clock.monotonic()
    while (sent_at := clock.monotonic()) - began_at < seconds:
        count += act()
        latencies.append(clock.monotonic() - sent_at)
    return Round(count, clock.monotonic() - began_at, latencies)


def echoes(port: int, seconds: float) -> Round:
    """Ask a server that does nothing, again and again."""
    client = RawClient(port)
    body = b"x" * 60

    def ask() -> int:
        client.raw("PATCH", "/_api/document/tasks/k?ignoreRevs=false", body)
        return 1

    return _timed(ask, seconds)


def single_updates(port: int, worker: int, keys: int, seconds: float) -> Round:
    """Update this worker's documents one by one, each on the condition of its revision."""
    client = RawClient(port)
    known = revisions(client, worker, keys)
    names = list(known)
    done = 0

    def update() -> int:
        nonlocal done
        key = names[done % len(names)]
        done += 1
        body = b'{"_rev":"%s","seq":%d,"state":"claimed"}' % (known[key].encode(), done)
        path = f"/_db/bench/_api/document/tasks/{key}?ignoreRevs=false"
        status, raw = client.raw("PATCH", path, body)
        if status != 202:
            raise RuntimeError(f"an update was refused: {status} {raw!r}")
        known[key] = orjson.loads(raw)["_rev"]
        return 1

    return _timed(update, seconds)


def batch_updates(port: int, worker: int, keys: int, size: int, seconds: float) -> Round:
    """Update this worker's documents in batches, each document on the condition of its revision."""
    client = RawClient(port)
    known = revisions(client, worker, keys)
    names = list(known)
    done = 0

    def update() -> int:
        nonlocal done
        batch = [names[(done + place) % len(names)] for place in range(size)]
        done += size
        body = [{"_key": key, "_rev": known[key], "seq": done} for key in batch]
        path = "/_db/bench/_api/document/tasks?ignoreRevs=false"
        for result in client("PATCH", path, body):
            known[result["_key"]] = result["_rev"]
        return size

    return _timed(update, seconds)


def revisions(client: RawClient, worker: int, keys: int) -> dict[str, str]:
    """Return key and revision of this worker's documents."""
    query = "FOR t IN tasks FILTER t.worker == @worker LIMIT @keys RETURN [t._key, t._rev]"
    body = {"query": query, "bindVars": {"worker": worker, "keys": keys}, "batchSize": keys}
    return dict(client("POST", "/_db/bench/_api/cursor", body)["result"])
