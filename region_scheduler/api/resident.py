"""Resident blobs, handed only to regions that they may lie in."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Request, Response
from fastapi.params import Depends

from region_scheduler.api.refusals import refusal
from region_scheduler.domain.residence import regions_of
from region_scheduler.errors import InvalidInput, RegionSchedulerError
from region_scheduler.ports.blobs import Blobs
from region_scheduler.runtime.signing import (
    REGION_HEADER,
    RESIDENT,
    RESIDENT_PATH,
    SIGNATURE_HEADER,
    is_signed,
    signed_blob,
)

_BODY_BYTES_MAX: Final = 1 << 20


def resident_routes(key: bytes, blobs: Blobs) -> APIRouter:
    """Return the routes; each request is signed with the key of the cluster."""
    router = APIRouter(prefix=RESIDENT_PATH)

    @router.put("/{name}")
    def put(name: str, body: Annotated[bytes, Depends(_body)], request: Request) -> Response:
        if not _is_genuine(key, name, request, body):
            return refusal(403, "bad_signature", "sign with the key of this cluster")
        try:
            blobs.put(name, body)
        except InvalidInput as refused:
            return refusal(422, refused.code, str(refused))
        except RegionSchedulerError as failed:
            return refusal(503, failed.code, str(failed))
        return Response(status_code=204)

    @router.get("/{name}")
    def get(name: str, request: Request) -> Response:
        if not _is_genuine(key, name, request, b""):
            return refusal(403, "bad_signature", "sign with the key of this cluster")
        try:
            blob = blobs.get(name)
        except RegionSchedulerError as failed:
            return refusal(503, failed.code, str(failed))
        if blob is None:
            return refusal(404, "not_found", "there is no such blob here")
        if request.headers.get(REGION_HEADER, "") not in regions_of(blob):
            return refusal(403, "not_resident", "it may not lie in that region")
        return Response(blob, media_type="application/octet-stream")

    return router


def _is_genuine(key: bytes, name: str, request: Request, body: bytes) -> bool:
    said = signed_blob(request.method, name, request.headers.get(REGION_HEADER, ""), body)
    return is_signed(key, RESIDENT, said, request.headers.get(SIGNATURE_HEADER, ""))


async def _body(request: Request) -> bytes:
    """Return the body, cut off above what any blob may have, so that its signature fails."""
    whole = bytearray()
    async for piece in request.stream():
        whole += piece
        if len(whole) > _BODY_BYTES_MAX:
            break
    return bytes(whole[: _BODY_BYTES_MAX + 1])
