"""What a region may do, and where its tasks go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from region_scheduler.domain.ids import Incarnation
from region_scheduler.domain.instance import Instance, Role
from region_scheduler.domain.region import (
    Region,
    RegionStatus,
    cordoned,
    draining,
    evacuating,
    failed,
    returned,
)
from region_scheduler.domain.relocation import Site, destinations, relocate, sites
from region_scheduler.domain.states import FINAL, HELD, TaskState
from region_scheduler.domain.task import EventKind
from region_scheduler.errors import IllegalMove, LostRace
from tests.unit.domain.samples import AT, IN_STATE, STAMP, a_spec, a_task

EU = Region(id="eu")
DOWN = failed(EU, "fire", "anna")
EVERYWHERE = ("eu", "us", "ap")


def worker(region: str, capacity: int = 4, pool: str = "default") -> Instance:
    return Instance(
        id=Incarnation(f"{region}.{pool}:1"),
        roles=(Role.WORKER,),
        region=region,
        ttl_s=4.0,
        capacity={pool: capacity},
        stamped_at=AT + timedelta(seconds=1),
    )


def site(region: str, slots: int = 4, load: int = 0, *serves: str) -> Site:
    return Site(region, {"default": slots}, frozenset({region, *serves}), load)


def test_each_verb_gives_its_status_and_remembers_who_and_why() -> None:
    assert cordoned(EU, "patch", "anna").status is RegionStatus.CORDONED
    assert draining(EU, "patch", "anna").status is RegionStatus.DRAINING
    moving = evacuating(EU, 5.0, "patch", "anna")
    assert (moving.status, moving.is_leaving, moving.moves_per_s) == ("draining", True, 5.0)
    assert (moving.reason, moving.status_by) == ("patch", "anna")
    assert returned(moving, "anna") == replace(EU, status_by="anna")


def test_down_and_the_return_from_it_are_new_epochs_and_nothing_else_is() -> None:
    assert [one.epoch for one in (EU, DOWN, returned(DOWN, "anna"))] == [1, 2, 3]
    assert returned(cordoned(EU, "patch", "anna"), "anna").epoch == 1


@pytest.mark.parametrize("verb", [cordoned, draining])
def test_a_region_that_is_down_must_return_first(
    verb: Callable[[Region, str, str], Region],
) -> None:
    with pytest.raises(IllegalMove, match="return first"):
        verb(DOWN, "patch", "anna")


def test_repeating_a_verb_changes_nothing() -> None:
    verbs: list[Callable[[Region], Region]] = [
        lambda region: cordoned(region, "patch", "anna"),
        lambda region: draining(region, "patch", "anna"),
        lambda region: evacuating(region, 2.0, "patch", "anna"),
        lambda region: failed(region, "fire", "anna"),
        lambda region: failed(region, "silent"),
        lambda region: returned(region, "anna"),
    ]
    for once in verbs:
        assert once(once(EU)) == once(EU)


def test_a_drain_ends_an_evacuation() -> None:
    assert not draining(evacuating(EU, 0.0, "patch", "anna"), "enough", "anna").is_leaving


def test_what_the_failover_gave_up_returns_by_itself_unless_a_person_takes_it_over() -> None:
    found = failed(EU, "silent")

    assert returned(found).status is RegionStatus.ACTIVE
    assert returned(failed(found, "fire", "anna")).status is RegionStatus.DOWN
    assert failed(found, "fire", "anna").epoch == found.epoch
    assert failed(DOWN, "silent") is DOWN, "the failover takes nothing over from a person"
    assert returned(cordoned(EU, "patch", "anna")).status is RegionStatus.CORDONED


def test_sites_are_active_regions_with_live_workers() -> None:
    regions = [EU, Region(id="us", serves=("us-1",)), Region(id="ap"), failed(Region(id="sa"), "x")]
    members = [worker("us"), worker("us", 2, "gpu"), worker("sa"), worker("eu")]

    found = sites(regions, members, {"us": 7})

    assert [one.region for one in found] == ["eu", "us"]
    assert found[1] == Site("us", {"default": 4, "gpu": 2}, frozenset({"us", "us-1"}), 7)


def test_tasks_spread_by_room_and_what_is_chosen_counts_for_the_next() -> None:
    spec = a_spec(allowed_regions=EVERYWHERE)
    tasks = [a_task(f"t{n}", spec=replace(spec, name=f"t{n}")) for n in range(9)]

    chosen = destinations(tasks, [site("eu", 100), site("us", 4), site("ap", 8)])

    assert sorted(chosen.to.values()) == ["ap"] * 6 + ["us"] * 3
    assert not chosen.waiting


def test_the_region_that_reaches_the_target_comes_first_however_full_it_is() -> None:
    task = a_task(spec=a_spec(allowed_regions=EVERYWHERE, target_region="us-1"))

    chosen = destinations([task], [site("us", 1, 99, "us-1"), site("ap", 50)])

    assert chosen.to == {task.id: "us"}


def test_what_no_region_may_or_can_take_waits() -> None:
    bound = a_task("bound", spec=a_spec("bound", allowed_regions=("eu",)))
    gpu = a_task("gpu", spec=a_spec("gpu", allowed_regions=EVERYWHERE, pool="gpu"))

    assert destinations([bound, gpu], [site("us")]).waiting == (bound.id, gpu.id)


@pytest.mark.parametrize("state", list(TaskState))
def test_only_what_nobody_holds_and_has_not_ended_moves(state: TaskState) -> None:
    found = IN_STATE[state]()
    task = replace(found, spec=replace(found.spec, allowed_regions=EVERYWHERE))

    if state in HELD | FINAL:
        with pytest.raises(LostRace):
            relocate(task, "eu", "us", STAMP)
        return
    moved = relocate(task, "eu", "us", STAMP)
    assert (moved.region, moved.state, moved.token) == ("us", state, task.token)
    assert moved.seq == task.seq + 1
    assert (moved.history[-1].kind, moved.history[-1].region) == (EventKind.MOVED, "us")
    assert relocate(moved, "eu", "us", STAMP) is moved


def test_a_task_that_went_elsewhere_meanwhile_or_may_not_go_is_left() -> None:
    task = a_task(spec=a_spec(allowed_regions=EVERYWHERE))

    with pytest.raises(LostRace):
        relocate(replace(task, region="ap"), "eu", "us", STAMP)
    with pytest.raises(LostRace, match="residency"):
        relocate(a_task(spec=a_spec(allowed_regions=("eu",))), "eu", "us", STAMP)
