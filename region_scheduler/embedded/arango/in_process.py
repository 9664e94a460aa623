"""The driver's HTTP client without HTTP: requests go to an engine in this process."""

from __future__ import annotations

import base64
from collections.abc import MutableMapping
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import urlsplit

from arango.http import HTTPClient
from arango.response import Response as DriverResponse
from requests import Session
from requests.structures import CaseInsensitiveDict

from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.embedded.arango.http.message import Request

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
    """

    def __init__(self, engine: Engine, region: str | None = None) -> None:
        self._engine = engine
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
        response = self._engine.handle(request)
        return DriverResponse(
            method=method,
            url=url,
            headers=CaseInsensitiveDict(response.headers),
            status_code=response.status,
            status_text=_PHRASES.get(response.status, ""),
            raw_body=response.body.decode(),
        )

    def _basic(self, auth: tuple[str, str]) -> str:
        token = self._tokens.get(auth)
        if token is None:
            encoded = base64.b64encode(f"{auth[0]}:{auth[1]}".encode()).decode()
            token = self._tokens[auth] = f"Basic {encoded}"
        return token
