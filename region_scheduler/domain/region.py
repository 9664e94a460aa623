"""Regions: data centres with a scheduler of their own, and what each may do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from region_scheduler.domain.task import SCHEMA
from region_scheduler.errors import IllegalMove, LostRace

REPLICA_AGE_MAX_S: Final = 10.0
"""How old the local follower's view may be unless it is set."""


class RegionStatus(StrEnum):
    """What a region may do."""

    ACTIVE = "active"
    CORDONED = "cordoned"
    DRAINING = "draining"
    DOWN = "down"


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A data centre with its own scheduler.

    Attributes:
        serves: Target regions (cloud regions) that its workers reach.
        epoch: Rises with every `down` and every return from it.
        url: Base address of its API, for wake-ups from other regions.
        reason: Why it is not active, for people.
        status_by: The actor who made it what it is; empty if the failover did.
        is_evacuating: What nobody holds there goes to other regions, though it lives.
        moves_per_s: How many tasks of an evacuation move a second; 0 for no bound.
        leader: The incarnation that promotes, where one does it alone.
        leader_epoch: Rises with every change of the leader.
    """

    id: str
    rev: str = ""
    schema: int = SCHEMA
    status: RegionStatus = RegionStatus.ACTIVE
    epoch: int = 1
    serves: tuple[str, ...] = ()
    url: str = ""
    reason: str = ""
    status_by: str = ""
    is_evacuating: bool = False
    moves_per_s: float = 0.0
    leader: str = ""
    leader_epoch: int = 0

    @property
    def is_leaving(self) -> bool:
        """Whether what nobody holds there goes to other regions."""
        return self.is_evacuating or self.status is RegionStatus.DOWN


def led_by(region: Region, successor: str, dead: str) -> Region:
    """Give the lead of a region to `successor`, if it is still with `dead`.

    Raises:
        LostRace: Another took it before.
    """
    if region.leader == successor:
        return region
    if region.leader != dead:
        raise LostRace(thing=f"lead of {region.id}", winner=region.leader)
    return replace(region, leader=successor, leader_epoch=region.leader_epoch + 1)


def cordoned(region: Region, reason: str, by: str) -> Region:
    """Let a living region take nothing new; what is in flight there goes on.

    Raises:
        IllegalMove: It is down: it must return first.
    """
    return _closed(region, RegionStatus.CORDONED, reason, by)


def draining(region: Region, reason: str, by: str) -> Region:
    """Let a living region finish what is in flight, and then nothing more.

    Raises:
        IllegalMove: It is down: it must return first.
    """
    return _closed(region, RegionStatus.DRAINING, reason, by)


def evacuating(region: Region, moves_per_s: float, reason: str, by: str) -> Region:
    """Drain a region, and let what nobody holds there go to other regions; if down, it does so.

    Args:
        region: As read at the leader.
        moves_per_s: Tasks a second, at least 0; 0 for no bound.
        reason: For people.
        by: The actor.
    """
    if region.status is RegionStatus.DOWN:
        return region
    closed = draining(region, reason, by)
    return replace(closed, is_evacuating=True, moves_per_s=moves_per_s)


def failed(region: Region, reason: str, by: str = "") -> Region:
    """Give a region up: it is down in a new epoch, until it returns.

    Args:
        region: As read at the leader.
        reason: For people.
        by: The actor; empty for the failover, which lets it return by itself.
    """
    if region.status is not RegionStatus.DOWN:
        down = replace(region, status=RegionStatus.DOWN, epoch=region.epoch + 1)
    elif by and not region.status_by:
        down = region  # found by the failover, and from now on a person's: it waits for one
    else:
        return region
    return replace(down, is_evacuating=False, moves_per_s=0.0, reason=reason, status_by=by)


def returned(region: Region, by: str = "") -> Region:
    """Let a region take work again; one that was down does so in a new epoch. What moved stays.

    Args:
        region: As read at the leader.
        by: The actor; empty for the region itself, which ends only what the failover began.
    """
    is_down = region.status is RegionStatus.DOWN
    is_its_own = is_down and not region.status_by
    if region.status is RegionStatus.ACTIVE or not (by or is_its_own):
        return region
    return replace(
        region,
        status=RegionStatus.ACTIVE,
        epoch=region.epoch + 1 if is_down else region.epoch,
        is_evacuating=False,
        moves_per_s=0.0,
        reason="",
        status_by=by,
    )


def _closed(region: Region, status: RegionStatus, reason: str, by: str) -> Region:
    if region.status is RegionStatus.DOWN:
        target = f"{status}; let it return first"
        raise IllegalMove(thing=f"region {region.id}", current="down", target=target)
    wanted = replace(region, status=status, reason=reason, status_by=by)
    return region if wanted == region else replace(wanted, is_evacuating=False, moves_per_s=0.0)
