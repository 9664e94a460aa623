"""Read routes: any region's API shows all regions, from what is near, and says how old that is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from region_scheduler.api.refusals import refusal
from region_scheduler.errors import InvalidInput, NotFound, NotYet, RegionSchedulerError
from region_scheduler.operations.views import View, Views
from region_scheduler.runtime.signing import READ, SIGNATURE_HEADER, is_signed

_STATUS: Final[tuple[tuple[type[RegionSchedulerError], int], ...]] = (
    (NotFound, 404),
    (InvalidInput, 422),
    (RegionSchedulerError, 503),
)
Seen = Annotated[str, Query(max_length=64)]


def read_routes(key: bytes, views: Views) -> APIRouter:
    """Return the routes; each request is signed with the key of the cluster.

    `seen` is the version of an answer that the caller had: what comes is as new, or `not_yet`.
    """
    router = APIRouter(prefix="/v1")

    @router.get("/regions")
    def regions(request: Request, seen: Seen = "") -> Response:
        return _shown(key, request, lambda: views.regions(seen))

    @router.get("/runs")
    def runs(
        request: Request, limit: Annotated[int, Query(ge=1, le=1000)] = 100, seen: Seen = ""
    ) -> Response:
        return _shown(key, request, lambda: views.runs(limit, seen))

    @router.get("/runs/{run_id}")
    def run(run_id: str, request: Request, seen: Seen = "") -> Response:
        return _shown(key, request, lambda: views.run(run_id, seen))

    return router


def _shown(key: bytes, request: Request, show: Callable[[], View]) -> Response:
    target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    if not is_signed(key, READ, target.encode(), request.headers.get(SIGNATURE_HEADER, "")):
        return refusal(403, "bad_signature", "sign the path with the key of this cluster")
    try:
        view = show()
    except RegionSchedulerError as error:
        status = next(status for kind, status in _STATUS if isinstance(error, kind))
        answer = refusal(status, error.code, str(error))
        if isinstance(error, NotYet):
            answer.headers["retry-after"] = "1"
        return answer
    return JSONResponse(
        {
            **view.content,
            "view": {
                "source": view.source.value,
                "age_s": math.ceil(view.age_s * 1000) / 1000,
                "is_stale": view.is_stale,
                "version": view.version,
            },
        }
    )
