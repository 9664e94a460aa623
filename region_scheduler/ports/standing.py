"""How a region stands: all that a batch of its scheduler rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from region_scheduler.domain.calendar import Calendar
from region_scheduler.domain.ids import RunId
from region_scheduler.domain.instance import Instance, Role
from region_scheduler.domain.pause import Pause
from region_scheduler.domain.region import Region
from region_scheduler.domain.tenant import Level
from region_scheduler.ports.tasks import InFlight


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """All that one batch of a region's scheduler rests on, as seen in one look.

    Attributes:
        region: None if there is no such region.
        pauses: Those that were not lifted, of all scopes.
        calendars: Those that were not removed, of all scopes.
        zone_runs: The unended runs of each zone that a pause or a calendar names.
        in_flight: What is claimed or running there.
        members: Its unfenced instances.
        levels: Of the tenants asked for; None for one without a document.
    """

    region: Region | None
    pauses: Sequence[Pause]
    calendars: Sequence[Calendar]
    zone_runs: Mapping[str, Sequence[RunId]]
    in_flight: InFlight
    members: Sequence[Instance]
    levels: Mapping[str, Level | None]

    @property
    def workers(self) -> list[Instance]:
        """The region's workers."""
        return [one for one in self.members if Role.WORKER in one.roles]

    @property
    def schedulers(self) -> list[Instance]:
        """The region's schedulers."""
        return [one for one in self.members if Role.SCHEDULER in one.roles]
