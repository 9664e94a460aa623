"""Real lease loops while the store is away for a while: all keep their lease, none in step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from region_scheduler.assembly.in_process import in_process_graph
from region_scheduler.assembly.instrumented import instrumented
from region_scheduler.assembly.member import Membership
from region_scheduler.domain.ids import Incarnation
from region_scheduler.domain.instance import Instance, Role
from region_scheduler.domain.lease import LeaseTimings
from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.runtime.system import SystemClock
from tests.services import eventually

REGION = "eu-west"
TIMINGS = LeaseTimings(ttl_s=4.5, grace_s=2.0, failover_s=1.7, stop_s=0.5, retry_s=0.5, kill_s=0.5)
COUNT = 12


def test_an_outage_costs_no_lease_and_all_come_back_at_different_times() -> None:
    engine = Engine(is_cluster=True, regions=(REGION,))
    renewed: dict[str, list[float]] = {}

    def note(point: str, call: Any) -> Any:
        answer = call()
        if point == "instances.write" and answer[0].value is not None:
            renewed.setdefault(answer[0].value.id, []).append(time.monotonic())
        return answer

    store = instrumented(in_process_graph(engine, REGION).instances, "instances", note)
    clock = SystemClock()
    keepers = [
        LeaseKeeper(store, _instance(f"worker:{n}", clock), TIMINGS, clock) for n in range(COUNT)
    ]
    with _members(keepers):
        eventually(lambda: len(renewed) == COUNT)
        FaultControl(engine).cut(REGION, is_refusing=True)
        renewed.clear()
        time.sleep(TIMINGS.failover_s)  # longer than the pause between two renewals
        assert renewed == {}
        assert all(keeper.may_act() for keeper in keepers)
        FaultControl(engine).heal(REGION)
        back_at = time.monotonic()
        eventually(lambda: len(renewed) == COUNT, timeout_s=10)
        assert all(keeper.may_act() for keeper in keepers)

    assert all(min(times) > back_at for times in renewed.values())
    firsts = sorted(min(times) - back_at for times in renewed.values())
    assert firsts[-1] <= TIMINGS.ttl_s
    assert firsts[-1] - firsts[0] > TIMINGS.retry_s / 10, "they did not come all at once"


@contextmanager
def _members(keepers: list[LeaseKeeper]) -> Iterator[None]:
    members = [Membership(keeper) for keeper in keepers]
    for member in members:
        member.start()
    try:
        yield
    finally:
        for member in members:
            member.stop()
        for member in members:
            member.join(5)


def _instance(name: str, clock: SystemClock) -> Instance:
    return Instance(
        id=Incarnation(name),
        roles=(Role.WORKER,),
        region=REGION,
        ttl_s=TIMINGS.ttl_s,
        stamped_at=clock.now(),
    )
