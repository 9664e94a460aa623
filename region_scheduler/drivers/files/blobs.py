"""`ports.blobs.Blobs` in a directory of the region, readable by its owner only."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from region_scheduler.domain.residence import key_of, regions_of
from region_scheduler.errors import InvalidInput, Unavailable

_KEY: Final = re.compile(r"[0-9a-f]{64}")


class DirectoryBlobs:
    """Blobs as files named by their hash.

    Args:
        region: Whose storage it is; what may not lie there is refused.
        directory: Made when the first comes.
    """

    def __init__(self, region: str, directory: Path) -> None:
        self._region = region
        self._directory = directory

    def put(self, key: str, blob: bytes) -> None:
        """Keep a blob; it is there whole, or not at all."""
        if not _KEY.fullmatch(key) or key_of(blob) != key:
            raise InvalidInput(field="blob", value=key, expected="its key is its sha256 in hex")
        if self._region not in regions_of(blob):
            told = f"it may not lie in {self._region}"
            raise InvalidInput(field="blob", value=key, expected=told)
        path, part = self._directory / key, self._directory / f"{key}.{os.getpid()}.part"
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.exists():
                return
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as f:
                f.write(blob)
                f.flush()
                os.fsync(f.fileno())
            part.replace(path)
        except OSError as refused:
            raise Unavailable(dependency="resident store", detail=str(refused)) from refused

    def get(self, key: str) -> bytes | None:
        """Return a blob; None if it is not there."""
        if not _KEY.fullmatch(key):
            return None
        try:
            return (self._directory / key).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as refused:
            raise Unavailable(dependency="resident store", detail=str(refused)) from refused
