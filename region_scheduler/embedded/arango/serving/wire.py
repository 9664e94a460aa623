"""HTTP/1.1 on the wire: requests out of bytes, bytes out of responses."""

from __future__ import annotations

import zlib
from http import HTTPStatus
from urllib.parse import parse_qsl

from region_scheduler.embedded.arango.http.message import Request, Response

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_COMMON = (
    b"server: ArangoDB\r\nx-content-type-options: nosniff\r\n"
    b"content-type: application/json; charset=utf-8\r\n"
)
_KEEP = b"connection: Keep-Alive\r\n"
_CLOSE = b"connection: Close\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: Close\r\n\r\n"


class Incoming:
    """A request while it is being read; the callbacks are those of httptools.

    A new one is made for each request of a connection.
    """

    __slots__ = ("body", "headers", "url")

    def __init__(self) -> None:
        self.url = b""
        self.headers: dict[str, str] = {}
        self.body: list[bytes] = []

    def request(self, method: bytes, region: str | None) -> Request:
        """Return the whole request.

        Raises:
            ValueError: Its body is not compressed as its header says.
        """
        path, _, query = self.url.decode("latin-1").partition("?")
        body = self.body[0] if len(self.body) == 1 else b"".join(self.body)
        encoding = self.headers.get("content-encoding")
        if encoding is not None and body:
            body = _inflated(body, encoding)
        return Request(method.decode(), path, _query(query), self.headers, body, region)


def _query(text: str) -> dict[str, str]:
    if not text:
        return {}
    if "%" in text or "+" in text:
        return dict(parse_qsl(text, keep_blank_values=True))
    pairs = (pair.partition("=") for pair in text.split("&"))
    return {name: value for name, _, value in pairs}


def _inflated(body: bytes, encoding: str) -> bytes:
    if encoding not in ("deflate", "gzip"):
        raise ValueError(f"unknown content encoding {encoding}")
    try:
        return zlib.decompress(body, wbits=47)
    except zlib.error as error:
        raise ValueError(f"broken {encoding} body") from error


def response_bytes(response: Response, *, is_head: bool, is_kept: bool) -> bytes:
    """Return the whole response."""
    status = response.status
    parts = [_STATUS_LINES[status], _COMMON, _KEEP if is_kept else _CLOSE]
    parts += [f"{name}: {value}\r\n".encode() for name, value in response.headers.items()]
    if status == HTTPStatus.NO_CONTENT or status == HTTPStatus.NOT_MODIFIED:
        parts.append(b"\r\n")
        return b"".join(parts)
    parts.append(b"content-length: %d\r\n\r\n" % len(response.body))
    if not is_head:
        parts.append(response.body)
    return b"".join(parts)
