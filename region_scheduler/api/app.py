"""The routes: thin, and without a decision of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import FastAPI, Request, Response
from fastapi.params import Depends
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, ValidationError

from region_scheduler.api.reading import read_routes
from region_scheduler.api.refusals import refusal
from region_scheduler.api.resident import resident_routes
from region_scheduler.operations.views import Views
from region_scheduler.ports.blobs import Blobs
from region_scheduler.runtime.signing import SIGNATURE_HEADER, WAKE, WAKE_PATH, is_signed

_BODY_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What `/healthz` tells.

    Attributes:
        is_ok: Whether the process may act: its lease covers this moment.
        lease_left_s: Seconds until its deadline, negative once it has passed.
        replica_age_s: How old the local follower's view of the graph store is at most; None if
            nobody looks.
        is_replica_stale: It is older than allowed, and not read from.
    """

    is_ok: bool
    region: str
    instance: str
    roles: tuple[str, ...]
    lease_left_s: float
    replica_age_s: float | None = None
    is_replica_stale: bool = False


class WakeUp(BaseModel):
    """The body of a wake-up."""

    model_config = ConfigDict(extra="ignore")
    region: str


def build_api(
    region: str,
    key: bytes,
    health: Callable[[], Health],
    on_wake: Callable[[], None],
    views: Views | None = None,
    blobs: Blobs | None = None,
) -> FastAPI:
    """Return the application of one serving process.

    Args:
        region: Wake-ups for another one are refused.
        key: Signs wake-ups.
        health: Asked at every `/healthz`.
        on_wake: Told of every genuine wake-up; returns at once.
        views: What the read routes show; without it there are none.
        blobs: This region's resident data; without it none is handed out.
    """
    app = FastAPI(title="region-scheduler", docs_url=None, redoc_url=None, openapi_url=None)

    if views is not None:
        app.include_router(read_routes(key, views))
    if blobs is not None:
        app.include_router(resident_routes(key, blobs))

    @app.get("/healthz")
    def healthz() -> JSONResponse:
        found = health()
        content: dict[str, Any] = {
            "status": "ok" if found.is_ok else "no lease",
            "region": found.region,
            "instance": found.instance,
            "roles": list(found.roles),
            "lease_left_s": round(found.lease_left_s, 3),
        }
        if found.replica_age_s is not None:
            content["replica"] = "replica stale" if found.is_replica_stale else "current"
            content["replica_age_s"] = round(found.replica_age_s, 3)
        return JSONResponse(content, 200 if found.is_ok else 503)

    @app.post(WAKE_PATH)
    def wake(body: Annotated[bytes, Depends(_body)], request: Request) -> Response:
        if not is_signed(key, WAKE, body, request.headers.get(SIGNATURE_HEADER, "")):
            return refusal(403, "bad_signature", "sign with the key of this cluster")
        try:
            wanted = WakeUp.model_validate_json(body)
        except ValidationError:
            return refusal(422, "invalid_input", 'send {"region": NAME}')
        if wanted.region != region:
            return refusal(421, "misdirected", f"this is {region}")
        on_wake()
        return Response(status_code=204)

    return app


async def _body(request: Request) -> bytes:
    """Return the body, cut off above what any wake-up needs, so that its signature fails."""
    whole = b""
    async for piece in request.stream():
        whole += piece
        if len(whole) > _BODY_BYTES_MAX:
            break
    return whole[: _BODY_BYTES_MAX + 1]
