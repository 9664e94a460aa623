"""One keep-alive HTTP/1.1 connection that knows how far a failed request has come."""

from __future__ import annotations

import select
import socket
import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httptools

from region_scheduler.drivers.arango.errors import AnswerLost, NotSent

_READ_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Address:
    """Where a coordinator listens.

    Attributes:
        connect_timeout_s: Longest wait for a connection, seconds.
        read_timeout_s: Longest silence of the server within an answer, seconds.
        tls: None for plain http.
    """

    host: str
    port: int
    connect_timeout_s: float
    read_timeout_s: float
    tls: ssl.SSLContext | None = None

    @classmethod
    def parsed(
        cls, url: str, connect_timeout_s: float, read_timeout_s: float, verify: bool | str = True
    ) -> Address:
        """Return the address in `url`, e.g. `https://db.example:8529`.

        Args:
            url: Scheme, host and port; 8529 if there is none.
            connect_timeout_s: See `Address`.
            read_timeout_s: See `Address`.
            verify: Whether the server's certificate is checked, or the file of authorities.
        """
        parts = urlsplit(url)
        tls = None
        if parts.scheme == "https":
            tls = ssl.create_default_context(cafile=verify if isinstance(verify, str) else None)
            if verify is False:
                tls.check_hostname = False
                tls.verify_mode = ssl.CERT_NONE
        host = parts.hostname or "127.0.0.1"
        return cls(host, parts.port or 8529, connect_timeout_s, read_timeout_s, tls)


class Answer:
    """A response as it comes in; the parser calls the `on_` methods."""

    __slots__ = ("_pieces", "headers", "is_complete", "is_without_body", "reason")

    def __init__(self, is_without_body: bool) -> None:
        self._pieces: list[bytes] = []
        self.headers: dict[str, str] = {}
        self.reason = ""
        self.is_complete = False
        self.is_without_body = is_without_body

    @property
    def body(self) -> bytes:
        """The body so far."""
        return b"".join(self._pieces)

    def on_status(self, status: bytes) -> None:
        """Take the reason phrase."""
        self.reason += status.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header."""
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """End the answer to a HEAD request, whose length speaks of a body that does not come."""
        if self.is_without_body:
            self.is_complete = True

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        """Know that the answer is whole."""
        self.is_complete = True


class Connection:
    """A connection for one request at a time.

    Raises:
        NotSent: No connection within the time allowed.
    """

    __slots__ = ("_is_fresh", "_socket", "is_reusable")

    def __init__(self, address: Address) -> None:
        self.is_reusable = True
        self._is_fresh = True
        try:
            plain = socket.create_connection(
                (address.host, address.port), address.connect_timeout_s
            )
        except OSError as error:
            where = f"{address.host}:{address.port}"
            raise NotSent(f"no connection to {where}: {error}") from error
        try:
            # Head and body leave at once; no answer waits for a delayed acknowledgement.
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket: socket.socket = (
                address.tls.wrap_socket(plain, server_hostname=address.host)
                if address.tls is not None
                else plain
            )
            self._socket.settimeout(address.read_timeout_s)
        except OSError as error:
            plain.close()
            raise NotSent(f"no connection to {address.host}: {error}") from error

    @property
    def is_alive(self) -> bool:
        """Whether an idle connection may still be used: a readable one was closed by the server."""
        readable, _, _ = select.select([self._socket], [], [], 0)
        return not readable

    def exchange(self, request: bytes, is_without_body: bool) -> tuple[int, Answer]:
        """Send one request and return the status and the answer.

        Raises:
            NotSent: The request was not written to its end, so the server cannot have acted on it.
            AnswerLost: It was written, and its answer did not come whole.
        """
        is_fresh, self._is_fresh = self._is_fresh, False
        self.is_reusable = False
        try:
            self._socket.sendall(request)
        except OSError as error:
            raise NotSent(f"the request was not written: {error}") from error
        answer = Answer(is_without_body)
        parser = httptools.HttpResponseParser(answer)
        has_begun = False
        try:
            while not answer.is_complete:
                data = self._socket.recv(_READ_BYTES)
                if not data:
                    raise AnswerLost("the connection was closed", not (is_fresh or has_begun))
                has_begun = True
                parser.feed_data(data)
        except ConnectionError as error:
            raise AnswerLost(str(error), not (is_fresh or has_begun)) from error
        except (OSError, httptools.HttpParserError) as error:
            raise AnswerLost(f"no answer: {error}") from error
        self.is_reusable = (
            parser.get_http_version() == "1.1"
            and answer.headers.get("connection", "").lower() != "close"
        )
        return parser.get_status_code(), answer

    def close(self) -> None:
        """Close it; harmless if it is closed."""
        self._socket.close()
