"""The regions' own storage of resident data, out of reach while its region is lost."""

from __future__ import annotations

from pathlib import Path

from region_scheduler.assembly.in_process import directory_blobs
from region_scheduler.errors import Unavailable
from region_scheduler.ports.blobs import Blobs


class ReachedBlobs:
    """`ports.blobs.Blobs` of a region, as every region of a world reaches them.

    Args:
        region: Whose they are.
        directory: Where they lie.
        lost: The regions that are lost, at any time.
    """

    def __init__(self, region: str, directory: Path, lost: set[str]) -> None:
        self._region = region
        self._lost = lost
        self._blobs = directory_blobs(region, directory)

    def put(self, key: str, blob: bytes) -> None:
        """Keep a blob."""
        self._reached().put(key, blob)

    def get(self, key: str) -> bytes | None:
        """Return a blob; None if it is not there."""
        return self._reached().get(key)

    def _reached(self) -> Blobs:
        if self._region in self._lost:
            raise Unavailable(dependency="resident store", detail=f"{self._region} is lost")
        return self._blobs
