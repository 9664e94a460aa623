"""Which of the serving processes of all regions does what one of them has to do.

The leader is a function of the leases, read at the store's leader: no election, and no document
that could name a dead one. It is the first by name of those whose lease is not over, so that the
next one leads as soon as observers have fenced it. Two may believe to lead for a while, one of them
paused or cut off: what a leader does must be decided by conditional writes.
"""

from __future__ import annotations

from collections.abc import Iterable

from region_scheduler.domain.ids import Incarnation
from region_scheduler.domain.instance import Instance, Role


def leads(me: Incarnation, unfenced: Iterable[Instance]) -> bool:
    """Say whether `me` leads among the cluster managers of `unfenced`, as read at the leader."""
    managers = (one.id for one in unfenced if Role.CLUSTER_MANAGER in one.roles)
    return min(managers, default="") == me
