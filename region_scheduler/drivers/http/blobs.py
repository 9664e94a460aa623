"""`ports.blobs.Blobs` of another region, through its API."""

from __future__ import annotations

import httpx

from region_scheduler.errors import InvalidInput, OutcomeUnknown, Unavailable
from region_scheduler.runtime.signing import (
    REGION_HEADER,
    RESIDENT,
    RESIDENT_PATH,
    SIGNATURE_HEADER,
    signature_of,
    signed_blob,
)

_DEPENDENCY = "resident store"


class HttpBlobs:
    """Blobs in another region's storage, which looks itself whether they may lie here and there.

    Args:
        region: Who asks.
        url: Base address of the other region's API.
        key: Signs the requests; the same in all regions.
        timeout_s: For connecting, and again for the answer.
    """

    def __init__(self, region: str, url: str, key: bytes, *, timeout_s: float = 2.0) -> None:
        self._region = region
        self._url = url.rstrip("/")
        self._key = key
        is_tls = not url.startswith("http://")
        self._client = httpx.Client(timeout=timeout_s, trust_env=False, verify=is_tls)

    def put(self, key: str, blob: bytes) -> None:
        """Keep a blob there."""
        answer = self._ask("PUT", key, blob)
        if answer.status_code in {403, 413, 422}:
            told = "that region refuses it: the signing keys differ, or it may not lie there"
            raise InvalidInput(field="blob", value=key, expected=told)
        if answer.is_error:
            raise OutcomeUnknown(dependency=_DEPENDENCY, detail=f"answer {answer.status_code}")

    def get(self, key: str) -> bytes | None:
        """Return a blob; None if it is not there, or not for us."""
        answer = self._ask("GET", key)
        if answer.status_code in {403, 404}:
            return None
        if answer.is_error:
            raise Unavailable(dependency=_DEPENDENCY, detail=f"answer {answer.status_code}")
        return answer.content

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _ask(self, method: str, key: str, body: bytes = b"") -> httpx.Response:
        signed = signature_of(self._key, RESIDENT, signed_blob(method, key, self._region, body))
        headers = {SIGNATURE_HEADER: signed, REGION_HEADER: self._region}
        url = f"{self._url}{RESIDENT_PATH}/{key}"
        try:
            return self._client.request(method, url, content=body, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as failed:
            raise Unavailable(dependency=_DEPENDENCY, detail=str(failed)) from failed
