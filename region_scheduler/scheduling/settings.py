"""How one region's scheduler works."""

from __future__ import annotations

from dataclasses import dataclass

from region_scheduler.domain.ownership import Ownership
from region_scheduler.domain.tenant import LEVEL_DEFAULT, Level


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """How one region's scheduler works.

    Attributes:
        region: The region.
        look_ahead: Tasks that wait in the queue for each worker slot.
        batch_max: Most tasks promoted in one tick.
        in_flight_max: Most claimed and running tasks of the region.
        scan_limit: Most ready tasks looked at in one tick, and rows of one tenant.
        look_every_s: Least pause between two looks into the graph while the backlog fills the room.
        level_default: Of tenants that have no document.
        ownership: How the region's schedulers share its work.
        back_off_s: Least pause of a task that lost a slot; jittered up to four times that.
    """

    region: str
    look_ahead: int = 1
    batch_max: int = 200
    in_flight_max: int = 10_000
    scan_limit: int = 2_000
    look_every_s: float = 1.0
    back_off_s: float = 0.1
    level_default: Level = LEVEL_DEFAULT
    ownership: Ownership = Ownership.RUN
