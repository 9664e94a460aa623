"""The driver's HTTP client without HTTP: requests go to an engine in this process."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, MutableMapping
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import urlsplit

from arango.http import HTTPClient
from arango.response import Response as DriverResponse
from requests import Session
from requests.exceptions import ConnectionError, ConnectTimeout, ReadTimeout
from requests.structures import CaseInsensitiveDict

from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.embedded.arango.http.message import Request, Response

_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class _Session:
    """What the driver asks of a session: it can be closed."""

    verify: Any = True

    def close(self) -> None:
        """Do nothing: nothing is open."""


class InProcessHTTPClient(HTTPClient):
    """Give this to `ArangoClient(http_client=…)`; any host name does. Thread-safe.

    Args:
        engine: Answers the requests.
        region: The region whose coordinator this is; None for the first.
        timeout_s: How long a request that hangs is waited for.
        sleep: Waits for the seconds that a request travels; a simulation gives its own.
    """

    def __init__(
        self,
        engine: Engine,
        region: str | None = None,
        *,
        timeout_s: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._engine = engine
        self._timeout_s = timeout_s
        self._wait = sleep
        self._region = region
        self._tokens: dict[tuple[str, str], str] = {}

    def create_session(self, host: str) -> Session:  # noqa: ARG002  # the driver calls it so
        """Return something that can be closed."""
        return cast(Session, _Session())

    def send_request(
        self,
        session: Session,  # noqa: ARG002  # the driver calls it so
        method: str,
        url: str,
        headers: MutableMapping[str, str] | None = None,
        params: MutableMapping[str, str] | None = None,
        data: Any = None,
        auth: tuple[str, str] | None = None,
    ) -> DriverResponse:
        """Answer a request.

        Raises:
            ConnectTimeout: A fault: the request was not sent, nothing was done.
            ConnectionError: A fault: the connection broke before the answer.
            ReadTimeout: A fault: the answer did not come in time.
            LogFailed: The engine's log cannot be written.
        """
        sent = {name.lower(): value for name, value in headers.items()} if headers else {}
        if auth is not None:
            sent["authorization"] = self._basic(auth)
        if data is None:
            body = b""
        elif isinstance(data, str):
            body = data.encode()
        elif isinstance(data, bytes):
            body = data
        else:
            body = data.to_string()
        request = Request(
            method.upper(), urlsplit(url).path, params or {}, sent, body, self._region
        )
        response = self._deliver(request)
        return DriverResponse(
            method=method,
            url=url,
            headers=CaseInsensitiveDict(response.headers),
            status_code=response.status,
            status_text=_PHRASES.get(response.status, ""),
            raw_body=response.body.decode(),
        )

    def _deliver(self, request: Request) -> Response:
        engine = self._engine
        with engine.lock:
            delivery = engine.network.plan(request)
        if delivery is None:
            answered = engine.handle(request)
            self._sleep(answered.wait_s)
            return answered
        late_s = delivery.late_s
        if late_s is None and delivery.is_executed and delivery.wait_s > self._timeout_s:
            late_s = delivery.wait_s  # it arrives after its sender has given up
        if late_s is not None:
            with engine.lock:
                engine.postpone(request, late_s)
            self._sleep(min(late_s, self._timeout_s))
            raise ReadTimeout("the answer did not come in time")
        if delivery.is_hanging:
            self._sleep(self._timeout_s)
            raise ReadTimeout("the answer did not come in time")
        self._sleep(delivery.wait_s)
        answer = delivery.answer
        if delivery.is_executed:
            answered = engine.handle(request, is_disturbed=delivery.is_disturbed)
            answer = answer or answered
            self._sleep(answered.wait_s)
        elif answer is None:
            raise ConnectTimeout("the request was not sent")
        if not delivery.is_answered or answer is None:
            raise ConnectionError("the connection was closed before the answer")
        self._sleep(delivery.answer_wait_s)
        return answer

    def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            self._wait(seconds)

    def _basic(self, auth: tuple[str, str]) -> str:
        token = self._tokens.get(auth)
        if token is None:
            encoded = base64.b64encode(f"{auth[0]}:{auth[1]}".encode()).decode()
            token = self._tokens[auth] = f"Basic {encoded}"
        return token
