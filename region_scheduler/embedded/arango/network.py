"""The ways between clients, coordinators and leaders: delays, cuts and faults."""

from __future__ import annotations

from random import Random

from region_scheduler.embedded.arango.delivery import Delivery, refusal
from region_scheduler.embedded.arango.faults import FaultRules, is_write
from region_scheduler.embedded.arango.http.message import Request
from region_scheduler.embedded.arango.regions import Region, Regions

_HELD_MAX = 1000
_LOCAL_AREAS = ("/_api/version", "/_api/engine", "/_admin/")


class Network:
    """Decides what becomes of each request. Callers hold the engine's lock.

    Args:
        regions: Where requests come in.
        chance: For faults.
    """

    def __init__(self, regions: Regions, chance: Random) -> None:
        self._regions = regions
        self.rules = FaultRules(chance)

    def plan(self, request: Request) -> Delivery | None:
        """Return what becomes of a request; None if it is simply executed and answered."""
        region = self._regions.region(request.region)
        if "/_admin/faults" in request.path:
            return None
        if not self.rules and not region.is_cut and not region.rtt_s:
            return None
        is_local = is_answered_locally(request)
        travel_s = 0.0 if is_local else region.rtt_s / 2
        fault = self.rules.meets(request, region.name) if self.rules else None
        if region.is_cut and not is_local:
            if not region.is_refusing and len(region.held) < _HELD_MAX:
                region.held.append(request)
            return _cut_off(region)
        if fault is not None:
            return fault.delivery(travel_s)
        return Delivery(wait_s=travel_s, answer_wait_s=travel_s) if travel_s else None


def is_answered_locally(request: Request) -> bool:
    """Return whether a coordinator answers a request without reaching any other region."""
    if any(area in request.path for area in _LOCAL_AREAS):
        return True
    if "/_api/cursor/" in request.path:  # a further batch: the coordinator has the result
        return True
    is_dirty = request.headers.get("x-arango-allow-dirty-read") == "true"
    return is_dirty and not is_write(request)


def _cut_off(region: Region) -> Delivery:
    if region.is_refusing:
        return Delivery(is_executed=False, answer=refusal(1478))
    return Delivery(is_executed=False, is_answered=False, is_hanging=True)
