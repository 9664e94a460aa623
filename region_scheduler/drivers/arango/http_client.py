"""python-arango's HTTP client, on keep-alive connections, telling "not sent" from "answer lost".

The driver sends a request again, to the next host, whenever it sees `requests.ConnectionError`,
writes included. This client therefore never raises one, also not by way of the driver, which makes
one of its own from an answer that says 503 twice.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Mapping, MutableMapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlencode

from arango.http import HTTPClient
from arango.resolver import HostResolver
from arango.response import Response
from requests.exceptions import ConnectTimeout, RequestException

from region_scheduler.drivers.arango.connection import Address, Answer, Connection
from region_scheduler.drivers.arango.errors import AnswerLost, NotSent

_IDLE_MAX: Final = 16
_SAYS_503: Final = '"errorNum":503'


class Coordinators(HostResolver):
    """Stays with one coordinator until it fails; never has the driver try a second one itself."""

    def __init__(self, host_count: int) -> None:
        super().__init__(host_count)
        self._index = 0

    @property
    def max_tries(self) -> int:
        """One: what follows a failure is decided by who knows what the request was."""
        return 1

    def get_host_index(self, indexes_to_filter: set[int] | None = None) -> int:  # noqa: ARG002
        """Return the coordinator in use."""
        return self._index

    def failed(self) -> None:
        """Turn to the next coordinator for the requests to come."""
        self._index = (self._index + 1) % self.host_count


class Session:
    """Idle connections to one coordinator; safe to use from several threads.

    Attributes:
        verify: As python-arango sets it: check certificates, or the file of authorities.
    """

    def __init__(self, url: str, connect_timeout_s: float, read_timeout_s: float) -> None:
        self.url = url
        self.verify: bool | str = True
        self.host = url.partition("://")[2]
        self._timeouts = (connect_timeout_s, read_timeout_s)
        self._address: Address | None = None
        self._idle: deque[Connection] = deque(maxlen=_IDLE_MAX)
        self._pid = os.getpid()

    def taken(self) -> tuple[Connection, bool]:
        """Return a connection and whether it was used before.

        Raises:
            NotSent: There is none to be had.
        """
        if self._pid != os.getpid():  # a forked child must not speak on its parent's connections
            self.close()
            self._pid = os.getpid()
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was quicker
                break
            if connection.is_alive:
                return connection, True
            connection.close()
        if self._address is None:
            self._address = Address.parsed(self.url, *self._timeouts, self.verify)
        return Connection(self._address), False

    def give_back(self, connection: Connection) -> None:
        """Keep the connection for the next request, or close it."""
        if connection.is_reusable and len(self._idle) < _IDLE_MAX:
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()


class KeepAliveHTTPClient(HTTPClient):
    """HTTP client to hand to `ArangoClient`.

    Args:
        connect_timeout_s: Longest wait for a connection, seconds.
        read_timeout_s: Longest silence of the server within an answer, seconds.
        on_failure: Called when a request was not sent, or its answer was lost.

    Attributes:
        sent: How many requests it was given so far.
    """

    def __init__(
        self,
        connect_timeout_s: float = 1.0,
        read_timeout_s: float = 10.0,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self._timeouts = (connect_timeout_s, read_timeout_s)
        self._on_failure = on_failure
        self.sent = 0
        self._authorizations: dict[tuple[str, str], str] = {}

    def create_session(self, host: str) -> Any:
        """Return the connections to `host`, a URL."""
        return Session(host, *self._timeouts)

    def send_request(
        self,
        session: Any,
        method: str,
        url: str,
        headers: MutableMapping[str, str] | None = None,
        params: MutableMapping[str, str] | None = None,
        data: Any = None,
        auth: tuple[str, str] | None = None,
    ) -> Response:
        """Send one request, once, and return the answer.

        Raises:
            NotSent: The server cannot have acted on it.
            AnswerLost: It may have.
        """
        request = self._encoded(session, method, url, headers or {}, params, data, auth)
        self.sent += 1
        try:
            status, answer = _exchanged(session, request, method == "head")
        except (NotSent, AnswerLost):
            self._on_failure()
            raise
        # Bytes are what the deserialiser wants; the driver only passes them on.
        body: Any = answer.body
        return _checked(Response(method, url, Headers(answer.headers), status, answer.reason, body))

    def _encoded(
        self,
        session: Session,
        method: str,
        url: str,
        headers: Mapping[str, str],
        params: Mapping[str, str] | None,
        data: str | bytes | None,
        auth: tuple[str, str] | None,
    ) -> bytes:
        target = url[len(session.url) :]
        if params:
            target += _query(tuple(params.items()))
        body = data.encode() if isinstance(data, str) else data or b""
        head = [f"{method.upper()} {target} HTTP/1.1", f"host: {session.host}"]
        head += [f"{name}: {value}" for name, value in headers.items()]
        if auth is not None:
            head.append(f"authorization: {self._authorization(auth)}")
        head += [f"content-length: {len(body)}", "", ""]
        return "\r\n".join(head).encode("latin-1") + body

    def _authorization(self, auth: tuple[str, str]) -> str:
        known = self._authorizations.get(auth)
        if known is None:
            known = "Basic " + b64encode(":".join(auth).encode()).decode()
            self._authorizations[auth] = known
        return known


class TellingHTTPClient(HTTPClient):
    """Makes another HTTP client, such as one without a socket, tell what ours tells.

    Args:
        inner: Raises `ConnectTimeout` of requests if nothing was sent.
    """

    def __init__(self, inner: HTTPClient) -> None:
        self._inner = inner

    def create_session(self, host: str) -> Any:
        """Return what `inner` calls a session."""
        return self._inner.create_session(host)

    def send_request(self, *request: Any, **more: Any) -> Response:
        """Send one request, once, and return the answer.

        Raises:
            NotSent: The server cannot have acted on it.
            AnswerLost: It may have.
        """
        try:
            return _checked(self._inner.send_request(*request, **more))
        except ConnectTimeout as error:
            raise NotSent(str(error)) from error
        except RequestException as error:
            raise AnswerLost(str(error)) from error


class Headers(dict[str, str]):
    """Headers of an answer, whose names come in lower case and are asked for in any."""

    def __getitem__(self, name: str) -> str:
        """Return the value of a header that is there."""
        return super().__getitem__(name.lower())

    def __contains__(self, name: object) -> bool:
        """Say whether the header is there."""
        return isinstance(name, str) and super().__contains__(name.lower())

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a header, or `default`."""
        return super().get(name.lower(), default)


def _checked(response: Response) -> Response:
    """Return the answer, unless the driver would take it for a connection that broke."""
    if response.status_code == 503:
        raw: Any = response.raw_body
        text: str = raw.decode() if isinstance(raw, bytes) else raw
        if _SAYS_503 in text.replace(" ", ""):
            raise AnswerLost("the server answered 503")
    return response


@lru_cache(maxsize=256)
def _query(params: tuple[tuple[str, str], ...]) -> str:
    return "?" + urlencode(params)


def _exchanged(session: Session, request: bytes, is_without_body: bool) -> tuple[int, Answer]:
    """Send the request, over a second connection if a used one took not all of it."""
    while True:
        connection, is_used = session.taken()
        try:
            result = connection.exchange(request, is_without_body)
        except NotSent:
            connection.close()
            if not is_used:
                raise
        except AnswerLost:
            connection.close()
            raise
        else:
            session.give_back(connection)
            return result
