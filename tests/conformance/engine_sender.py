"""Requests to an engine in this process, in the shape that the case runners send them."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.embedded.arango.http.message import Request
from tests.conformance.http_runner import Reply, Send

_ROOT = {"authorization": "Basic cm9vdDo="}


def engine_sender(engine: Engine | None = None) -> Send:
    """Return a sender to an engine; to a new one with a single server's rules for None."""
    if engine is None:
        engine = Engine(is_cluster=False, seed=1)

    asked = engine

    def send(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        place, _, query = path.partition("?")
        lowered = {name.lower(): value for name, value in headers.items()}
        response = asked.handle(
            Request(
                method,
                place,
                dict(parse_qsl(query, keep_blank_values=True)),
                {**_ROOT, **lowered},
                body,
            )
        )
        return Reply(response.status, response.headers, response.body)

    return send
