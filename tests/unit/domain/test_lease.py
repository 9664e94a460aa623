"""Lease arithmetic, and the relations under which nothing may start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from region_scheduler.domain.lease import LOCAL_TIMINGS, LeaseTimings
from region_scheduler.errors import Misconfigured


@pytest.mark.parametrize("timings", [LeaseTimings(), LOCAL_TIMINGS], ids=["default", "local"])
def test_the_shipped_timings_keep_the_relations_with_room(timings: LeaseTimings) -> None:
    assert timings.grace_s >= 2 * timings.drift * timings.ttl_s + timings.kill_s
    assert timings.ttl_s >= (
        timings.failover_s + timings.ttl_s / 3 + timings.retry_s + timings.stop_s
    )
    assert timings.renew_every_s * 3 == timings.ttl_s
    assert timings.lease_s == timings.ttl_s + timings.grace_s


def test_a_deadline_counts_from_when_it_was_asked() -> None:
    assert LeaseTimings().deadline(100.0) == 160.0


def test_a_holder_has_stopped_before_an_observer_calls_it_dead() -> None:
    """With the fastest observer and the slowest holder that the drift allows."""
    for timings in (LeaseTimings(), LOCAL_TIMINGS):
        stopped = (timings.ttl_s + timings.kill_s) * (1 + timings.drift)
        called_dead = timings.lease_s * (1 - timings.drift)
        assert stopped <= called_dead


def test_too_little_grace_is_refused_with_the_figure() -> None:
    with pytest.raises(Misconfigured, match=r"grace_s=2 must be at least .* = 2.2"):
        LeaseTimings(grace_s=2.0)


def test_a_ttl_that_a_failover_would_outlast_is_refused() -> None:
    with pytest.raises(Misconfigured, match=r"ttl_s=50 must be at least .* = 54.6"):
        LeaseTimings(ttl_s=50.0)


def test_all_problems_come_at_once() -> None:
    with pytest.raises(Misconfigured) as refused:
        LeaseTimings(ttl_s=10.0, grace_s=0.1)
    assert len(refused.value.problems) == 2


@pytest.mark.parametrize("drift", [0.0, 0.05, 0.1])
def test_the_bounds_themselves_are_allowed(drift: float) -> None:
    timings = LeaseTimings(drift=drift, grace_s=2 * drift * 60.0 + 1.0)

    with pytest.raises(Misconfigured):
        replace(timings, grace_s=timings.grace_s - 0.001)
