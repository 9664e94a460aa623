"""What goes in and what comes out of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from region_scheduler.embedded.arango.errors import ArangoError, message_of, status_of
from region_scheduler.embedded.arango.storage.record import encode

_NOTHING: Mapping[str, str] = MappingProxyType({})
JSON_TYPE = "application/json; charset=utf-8"


@dataclass(slots=True)
class Request:
    """One HTTP request.

    Attributes:
        method: In capitals.
        path: As sent, without the query; may be percent-encoded.
        query: Decoded parameters.
        headers: By lower-case name.
        body: Uncompressed.
        region: The region whose coordinator got it; None for the only one.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    region: str | None = None


@dataclass(slots=True)
class Response:
    """One HTTP response.

    Attributes:
        headers: By lower-case name, without length and type.
        wait_s: How long its sender has to wait for it (a query that sleeps).
    """

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    wait_s: float = 0.0


def answer(status: int, headers: Mapping[str, str] = _NOTHING, /, **attributes: Any) -> Response:
    """Return a success with `error` and `code` in its body, as most of the API answers."""
    return Response(status, encode({"error": False, "code": status, **attributes}), headers)


def failure(error: ArangoError) -> Response:
    """Return the response that reports `error`."""
    status = error.status or status_of(error.number)
    body = {
        "error": True,
        "code": status,
        "errorNum": error.number,
        "errorMessage": error.message or message_of(error.number),
        **error.extra,
    }
    headers: dict[str, str] = {}
    if status == 412 and "_rev" in error.extra:
        headers["etag"] = f'"{error.extra["_rev"]}"'
    if status == 401:
        headers["www-authenticate"] = "Bearer, Basic"
    return Response(status, encode(body), headers)
