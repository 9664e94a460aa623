"""An engine on a clock of one's own, and short calls to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.embedded.arango.http.message import Request, Response

ROOT = {"authorization": "Basic cm9vdDo="}


class HandClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def pass_s(self, seconds: float) -> None:
        self.now += seconds


class Calls:
    """An engine in memory, as one client sees it."""

    def __init__(self, *, is_cluster: bool = False, **options: Any) -> None:
        self.clock = HandClock()
        self.engine = Engine(is_cluster=is_cluster, clock=self.clock, seed=7, **options)

    def response(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        region: str | None = None,
        **headers: str,
    ) -> Response:
        """Send a request; header names are given with underscores."""
        return self.engine.handle(request(method, path, body, region=region, **headers))

    def __call__(
        self, method: str, path: str, body: Any = None, *, expect: int, **more: Any
    ) -> Any:
        """Send a request that must be answered with a status, or with a status and errorNum."""
        response = self.response(method, path, body, **more)
        decoded = json.loads(response.body) if response.body else None
        assert response.status == expect, decoded
        return decoded

    def error(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, int]:
        """Send a request that must fail; return status and error number."""
        response = self.response(method, path, body, **more)
        decoded = json.loads(response.body)
        assert decoded["error"] is True, decoded
        assert decoded["code"] == response.status
        return response.status, decoded["errorNum"]

    def rows(self, query: str, **more: Any) -> list[Any]:
        """Run a query and return its result."""
        bind = more.pop("bind", {})
        body = {"query": query, "bindVars": bind, "batchSize": 1_000_000}
        rows: list[Any] = self("POST", "/_api/cursor", body, expect=201, **more)["result"]
        return rows


def request(
    method: str, path: str, body: Any = None, *, region: str | None = None, **headers: str
) -> Request:
    place, _, query = path.partition("?")
    sent = {**ROOT, **{name.replace("_", "-"): value for name, value in headers.items()}}
    raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request(method, place, dict(parse_qsl(query)), sent, raw, region)


def filled(calls: Calls, name: str, documents: list[dict[str, Any]], **properties: Any) -> None:
    """Create a collection with documents."""
    calls("POST", "/_api/collection", {"name": name, **properties}, expect=200)
    calls("POST", f"/_api/document/{name}?silent=1", documents, expect=202)


def numbered(count: int) -> Iterator[dict[str, Any]]:
    for n in range(count):
        yield {"_key": f"k{n}", "n": n}
