"""The scheduling bench: what it tells, and the one figure that no busy machine can spoil."""

from __future__ import annotations

from region_scheduler.bench import scheduling
from region_scheduler.bench.promoting import REGION, yard
from region_scheduler.runtime.system import SystemClock
from region_scheduler.scheduling.settings import SchedulerSettings


def test_a_batch_takes_at_most_six_round_trips_to_the_store_locks_and_a_look_included() -> None:
    with yard(50) as here:
        here.fill(100, is_locking=True)
        here.scheduler.notice()
        here.scheduler.tick()  # the first of a tenant asks for its level
        trips = []
        for is_new in (False, True, False):
            if is_new:
                here.fill(100, is_locking=True)
                SystemClock().pause(SchedulerSettings(REGION).look_every_s)  # a look is due
            here.scheduler.notice()
            before = here.round_trips()
            assert len(here.scheduler.tick().dispatched) == 50
            trips.append(here.round_trips() - before)
        assert max(trips) <= scheduling.ROUND_TRIPS
        assert min(trips) >= 4, "look at the region, look at the slots, claim, assign"
        here.work_off()
        assert here.ports.queue.length("default") == 0
        assert here.ports.graph.slots.taken() == []


def test_each_figure_stands_beside_what_limits_it() -> None:
    figures = scheduling.measure(0.1)

    assert [f.target for f in figures if f.unit == "tasks/s"] == [3_000, 3_000, 700]
    assert all(f.value > 0 and "bare round trips" in f.limit for f in figures)
