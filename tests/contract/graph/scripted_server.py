"""A TCP server that answers each connection as it was told, and remembers what it was sent."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue

Act = Callable[[socket.socket, "ScriptedServer"], None]


class ScriptedServer:
    """Plays one act a connection, in order; further connections are closed unread."""

    def __init__(self, acts: list[Act]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._acts: SimpleQueue[Act] = SimpleQueue()
        for act in acts:
            self._acts.put(act)
        self.requests: list[bytes] = []
        self.connection_count = 0
        self._active: socket.socket = self._listener
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        # Wakes the thread, which a plain close would leave waiting.
        for waiting in (self._listener, self._active):
            with suppress(OSError):
                waiting.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connection_count += 1
            self._active = connection
            with connection, suppress(OSError, Empty):
                self._acts.get_nowait()(connection, self)


def read_request(connection: socket.socket, server: ScriptedServer) -> bool:
    """Read one whole request; False if the client has gone."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return False
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    server.requests.append(head + b"\r\n\r\n" + body)
    return True


def answering(raw: bytes) -> Act:
    """Answer every request of the connection with `raw`."""

    def act(connection: socket.socket, server: ScriptedServer) -> None:
        while read_request(connection, server):
            connection.sendall(raw)

    return act


def answering_once(raw: bytes) -> Act:
    """Answer one request with `raw`, then close."""

    def act(connection: socket.socket, server: ScriptedServer) -> None:
        read_request(connection, server)
        connection.sendall(raw)

    return act


def dying_at_the_second(raw: bytes) -> Act:
    """Answer one request; close when the next has been read, as if it had been executed."""

    def act(connection: socket.socket, server: ScriptedServer) -> None:
        read_request(connection, server)
        connection.sendall(raw)
        read_request(connection, server)

    return act


def reset_unread(connection: socket.socket, server: ScriptedServer) -> None:
    """Read nothing and reset the connection once something has come."""
    connection.recv(1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def silent(connection: socket.socket, server: ScriptedServer) -> None:
    """Read the request and never answer."""
    read_request(connection, server)
    connection.recv(1)


@contextmanager
def serving(*acts: Act) -> Iterator[ScriptedServer]:
    server = ScriptedServer(list(acts))
    try:
        yield server
    finally:
        server.close()


def raw_answer(body: bytes, status: str = "200 OK", headers: bytes = b"") -> bytes:
    return (
        f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n".encode() + headers + b"\r\n" + body
    )
