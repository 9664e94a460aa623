"""A region is silent once none of its processes has beaten for ttl + grace, by one's own count."""

from __future__ import annotations

from dataclasses import replace

from region_scheduler.domain.ids import Incarnation
from region_scheduler.domain.instance import Instance, Role
from region_scheduler.domain.lease import LOCAL_TIMINGS
from region_scheduler.domain.region import Region
from region_scheduler.regions.silence import RegionWatch
from tests.unit.domain.samples import AT

LEASE_S = LOCAL_TIMINGS.lease_s
EU, US = Region(id="eu"), Region(id="us")


def member(name: str, region: str = "eu", **more: object) -> Instance:
    given = {"roles": (Role.WORKER,), "region": region, "ttl_s": LOCAL_TIMINGS.ttl_s}
    return Instance(id=Incarnation(name), stamped_at=AT, **{**given, **more})  # type: ignore[arg-type]


def silent(watch: RegionWatch, now: float, *members: Instance, since: float = 0.0) -> list[str]:
    return [one.id for one in watch.silent([EU, US], members, now, since)]


def test_a_region_is_silent_after_a_lease_without_a_beat() -> None:
    watch, one, other = RegionWatch(LOCAL_TIMINGS), member("a"), member("b", "us")

    assert silent(watch, 100.0, one, other) == []
    assert silent(watch, 100.0 + LEASE_S - 0.1, one, replace(other, beat=1)) == []
    assert silent(watch, 100.0 + LEASE_S, one, replace(other, beat=2)) == ["eu"]


def test_one_process_that_beats_is_enough() -> None:
    watch, other = RegionWatch(LOCAL_TIMINGS), member("b", "us")
    silent(watch, 100.0, member("a"), member("c"), other)

    assert silent(watch, 100.0 + LEASE_S, member("a"), member("c", beat=1), other) == ["us"]


def test_processes_that_left_count_like_those_that_died() -> None:
    watch = RegionWatch(LOCAL_TIMINGS)
    silent(watch, 100.0, member("a"), member("b", "us"))

    assert silent(watch, 101.0) == []
    assert silent(watch, 100.0 + LEASE_S) == ["eu", "us"]
    assert silent(watch, 101.0 + LEASE_S, member("d"), member("e", "us")) == []


def test_the_count_begins_anew_where_the_observers_own_lease_had_a_gap() -> None:
    watch = RegionWatch(LOCAL_TIMINGS)
    silent(watch, 100.0)

    assert silent(watch, 100.0 + LEASE_S, since=103.0) == []
    assert silent(watch, 103.0 + LEASE_S, since=103.0) == ["eu", "us"]


def test_a_process_with_a_longer_ttl_is_given_its_own() -> None:
    watch, slow = RegionWatch(LOCAL_TIMINGS), member("a", ttl_s=60.0)
    silent(watch, 100.0, slow, member("b", "us"))

    assert silent(watch, 100.0 + LEASE_S, slow, member("b", "us", beat=1)) == []
    assert silent(watch, 160.0 + LOCAL_TIMINGS.grace_s, slow, member("b", "us", beat=2)) == ["eu"]
