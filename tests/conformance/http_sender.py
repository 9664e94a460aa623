"""Requests to a server at a URL, in the shape that the case runners send them."""

from __future__ import annotations

import base64
import http.client
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

from tests.conformance.http_runner import Reply, Send

_TIMEOUT_S = 60.0


@contextmanager
def http_sender(url: str) -> Iterator[Send]:
    """Yield a sender over one connection.

    Args:
        url: `http://user:password@host:port`; the user is root without a password by default.
    """
    parts = urlsplit(url)
    user = f"{parts.username or 'root'}:{parts.password or ''}"
    authorization = "Basic " + base64.b64encode(user.encode()).decode()
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "127.0.0.1", parts.port or 8529, timeout=_TIMEOUT_S)

    def send(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        sent = {"authorization": authorization, **headers}
        connection.request(method, path, body=body or None, headers=sent)
        response = connection.getresponse()
        return Reply(response.status, dict(response.getheaders()), response.read())

    with closing(connection):
        yield send
