"""Which scheduler of a region promotes what.

Ownership saves conflicts and decides nothing: two schedulers that both believe to own a task cost a
lost claim. Work is spread over a fixed number of buckets, and each bucket belongs to the live
scheduler with the highest weight for it (rendezvous hashing: Thaler and Ravishankar, "Using
name-based mappings to increase hit rates", 1998), so that one that comes or goes moves only its own
part and nobody has to agree on anything.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Collection
from enum import StrEnum
from functools import lru_cache
from typing import Final

BUCKETS: Final = 256
_VIEWS_KEPT: Final = 64


class Ownership(StrEnum):
    """How the schedulers of a region share its work."""

    LEADER = "leader"
    RUN = "run"
    TENANT = "tenant"
    TASK = "task"
    NONE = "none"


def bucket_of(name: str) -> int:
    """Return the bucket of a run, tenant or task: the same on every machine, for ever."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass")) % BUCKETS


@lru_cache(maxsize=_VIEWS_KEPT)
def owners(peers: frozenset[str]) -> tuple[str, ...]:
    """Return the owner of each bucket among `peers`, at least one."""
    return tuple(max(peers, key=lambda peer: _weight(bucket, peer)) for bucket in range(BUCKETS))


def share_of(room: int, me: str, sharers: Collection[str]) -> int:
    """Return my part of `room` tasks that `sharers` promote at the same time, rounded up.

    Together they may pass `room` by one less than they are; rounded down, the last free place could
    stay empty, and handed out by turns it would need an agreement.

    Args:
        room: At least 0.
        me: One of `sharers`, or nothing is left for me.
        sharers: Those that have something to promote.
    """
    return -(-room // len(sharers)) if me in sharers else 0


def _weight(bucket: int, peer: str) -> bytes:
    return hashlib.blake2b(f"{bucket}:{peer}".encode(), digest_size=8).digest()
