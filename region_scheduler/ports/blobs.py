"""A region's own storage for resident data."""

from __future__ import annotations

from typing import Protocol


class Blobs(Protocol):
    """Blobs under their hash, in one region's own storage."""

    def put(self, key: str, blob: bytes) -> None:
        """Keep a blob; twice is once.

        Raises:
            Unavailable, OutcomeUnknown: Perhaps kept; call again.
            InvalidInput: It may not lie there.
        """
        ...

    def get(self, key: str) -> bytes | None:
        """Return a blob; None if it is not there.

        Raises:
            Unavailable: No answer.
        """
        ...
