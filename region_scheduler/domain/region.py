"""Regions: data centres with a scheduler of their own, and what each may do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from region_scheduler.domain.task import SCHEMA
from region_scheduler.errors import LostRace


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
        epoch: Rises with every `down` and return.
        url: Base address of its API, for wake-ups from other regions.
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
    leader: str = ""
    leader_epoch: int = 0


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
