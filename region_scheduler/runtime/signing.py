"""Signatures (HMAC-SHA256) on what crosses a process border: attempt messages and wake-ups."""

from __future__ import annotations

import hmac
from typing import Final

ATTEMPT: Final = b"attempt"
WAKE: Final = b"wake"
READ: Final = b"read"
"""Of the path with the query of a read; one that is known may be read again, nothing else."""
RESIDENT: Final = b"resident"
RESIDENT_PATH: Final = "/v1/resident"
"""Where a region's API keeps and hands out resident blobs: PUT and GET of `KEY` below it."""
REGION_HEADER: Final = "x-region-scheduler-region"
WAKE_PATH: Final = "/v1/wake"
"""Where a region's API takes wake-ups: POST of `{"region": NAME}` with the header below."""
SIGNATURE_HEADER: Final = "x-region-scheduler-signature"


def signature_of(key: bytes, purpose: bytes, body: bytes) -> str:
    """Return the signature in hex; one made for another purpose never fits."""
    return hmac.digest(key, purpose + b"\0" + body, "sha256").hex()


def is_signed(key: bytes, purpose: bytes, body: bytes, signature: str) -> bool:
    """Say whether `signature` is that of `body`, in a time that tells nothing about the key."""
    expected = signature_of(key, purpose, body)
    return hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace"))


def signed_blob(method: str, key: str, region: str, body: bytes = b"") -> bytes:
    """Return what is signed of a request for a blob: all that it says."""
    return b"\0".join([method.encode(), key.encode(), region.encode(), body])
