"""Instances: the running processes that hold things, and the leases by which they are alive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from region_scheduler.domain.ids import Incarnation, ReceiptId
from region_scheduler.domain.task import SCHEMA
from region_scheduler.errors import Fenced


class Role(StrEnum):
    """What a process does."""

    API = "api"
    SCHEDULER = "scheduler"
    RESOURCES = "resources"
    CLUSTER_MANAGER = "cluster-manager"
    SUBMITTER = "submitter"
    WORKER = "worker"


class FenceKind(StrEnum):
    """Why an incarnation was fenced; says when its tasks are taken (docs/protocol.md section 3)."""

    EXPIRED = "expired"
    UNRESPONSIVE = "unresponsive"
    SURRENDERED = "surrendered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """The end of an incarnation's lease."""

    kind: FenceKind
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One incarnation's lease document; never overwritten by another incarnation.

    Attributes:
        id: The incarnation.
        ttl_s: Seconds between beats after which observers begin to doubt, as its owner has it.
        beat: Rises by one with every renewal.
        receipts: Attempts that the process answers for.
        capacity: Attempts a worker can run at once, by pool.
        url: Where its HTTP surface answers; empty if it has none.
        stamped_at: Its wall clock at the beat; for display and clock-skew alerts only.
        swept_ago_s: How long before the beat its resource manager had finished a sweep, by its own
            monotonic clock; None if it carries none.
        settings_digest: Digest of what must be equal in a whole cluster (keys, tokens, ttl rules).
    """

    id: Incarnation
    rev: str = ""
    schema: int = SCHEMA
    roles: tuple[Role, ...]
    region: str
    ttl_s: float
    beat: int = 0
    receipts: tuple[ReceiptId, ...] = ()
    capacity: Mapping[str, int] = field(default_factory=dict)
    pid: int = 0
    host: str = ""
    url: str = ""
    stamped_at: datetime
    swept_ago_s: float | None = None
    settings_digest: str = ""
    fenced: Fence | None = None

    @property
    def slots(self) -> int:
        """Attempts that it can run at once, in all its pools together; 0 if it is no worker."""
        return max(self.capacity.values(), default=0)


def renewed(
    instance: Instance,
    receipts: tuple[ReceiptId, ...],
    stamped_at: datetime,
    swept_ago_s: float | None = None,
) -> Instance:
    """Return the next beat.

    Raises:
        Fenced: The lease is over; this incarnation must stop what it holds.
    """
    if instance.fenced is not None:
        raise Fenced(held=instance.id, current=f"fenced ({instance.fenced.kind})")
    return replace(
        instance,
        beat=instance.beat + 1,
        receipts=receipts,
        stamped_at=stamped_at,
        swept_ago_s=swept_ago_s,
    )


def fenced(instance: Instance, beat: int, fence: Fence) -> Instance:
    """Return the instance fenced, if its beat is still the one that was judged.

    Raises:
        Fenced: It beat again: it lives.
    """
    if instance.fenced is not None:
        return instance
    if instance.beat != beat:
        raise Fenced(held=f"beat {beat}", current=f"beat {instance.beat}")
    return replace(instance, fenced=fence)
