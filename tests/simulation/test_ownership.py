"""Several schedulers of one region: who promotes, also when one is lost or comes back."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest

from region_scheduler.assembly.services import Services
from region_scheduler.domain.ownership import Ownership
from region_scheduler.domain.region import Region
from region_scheduler.domain.states import RunState
from region_scheduler.errors import Fenced
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, another, effects, home, state_of
from tests.simulation.scenarios import HOME, a_plan, graph_of, spec

RUNS = 24


def region_of(world: World) -> Region:
    (region,) = graph_of(world).regions.read([HOME])
    assert region is not None
    return region


def many_runs(world: World) -> list[Any]:
    """Admit many small runs and let nobody promote yet."""
    runs = [admit(world, a_plan([spec("a"), spec("b")]), key=f"k{n}") for n in range(RUNS)]
    world.woken.clear()
    return runs


def work(world: World) -> None:
    for region in world.regions.values():
        while any(worker.work() for worker in region.workers):
            pass
    world.woken.clear()


def carry_out(world: World, schedulers: list[Services], rounds: int = 60) -> None:
    """Let `schedulers`, and no other, promote until nothing moves."""
    for _ in range(rounds):
        for one in schedulers:
            one.scheduler.tick()
        work(world)


def retire(world: World) -> None:
    """Take the world's own scheduler of the home region out, as a shutdown does."""
    home(world).services.keeper.surrender()


def test_with_ownership_off_five_schedulers_on_everything_do_nothing_twice(world: World) -> None:
    """Each claim of the last comes after a whole tick of the others: only conflicts rise."""
    runs = many_runs(world)
    others = [another(world, Ownership.NONE) for _ in range(4)]
    is_inside: list[bool] = []

    def all_at_once(point: str, call: partial[Any]) -> Any:
        if point == "tasks.write" and not is_inside:
            is_inside.append(True)
            for one in others:
                one.scheduler.tick()
            is_inside.clear()
        return call()

    last = another(world, Ownership.NONE, all_at_once)
    carry_out(world, [last])

    assert [state_of(world, run) for run in runs] == [RunState.DONE] * RUNS
    assert Counter(effects(world)) == {"a": RUNS, "b": RUNS}
    conflicts = graph_of(world).conflicts.recent(1000)
    assert {c.loser for c in conflicts if c.kind == "claim"} == {last.keeper.instance.id}


@pytest.mark.parametrize("mode", [Ownership.RUN, Ownership.TASK])
def test_partitioned_schedulers_promote_each_its_own_and_meet_nowhere(
    world: World, mode: Ownership
) -> None:
    runs = many_runs(world)
    home(world).services.mender.tick()
    retire(world)
    schedulers = [another(world, mode) for _ in range(3)]
    promoted = [one.scheduler.tick() for one in schedulers]
    work(world)

    assert all(p.dispatched for p in promoted)
    assert sum(p.claims_lost for p in promoted) == 0
    carry_out(world, schedulers)
    assert [state_of(world, run) for run in runs] == [RunState.DONE] * RUNS
    assert graph_of(world).conflicts.recent(10) == []


def test_the_part_of_a_dead_scheduler_is_promoted_by_the_others_within_its_lease(
    world: World,
) -> None:
    runs = many_runs(world)
    retire(world)
    live, dead = another(world, Ownership.RUN), another(world, Ownership.RUN)
    carry_out(world, [live], rounds=10)
    done_before = Counter(effects(world))
    assert 0 < done_before["a"] < RUNS, "the other's part waits for the other"

    for _ in range(round((world.timings.lease_s + 3) / world.timings.renew_every_s)):
        world.clock.advance(world.timings.renew_every_s)
        world.renew_workers()
        live.keeper.renew()
        live.resource_manager.tick()
        live.scheduler.tick()
        work(world)
    carry_out(world, [live], rounds=10)

    assert [state_of(world, run) for run in runs] == [RunState.DONE] * RUNS
    assert Counter(effects(world)) == {"a": RUNS, "b": RUNS}
    with pytest.raises(Fenced):
        dead.keeper.renew()
    assert dead.scheduler.tick().dispatched == ()


def test_one_leader_promotes_all_and_a_second_scheduler_nothing(world: World) -> None:
    runs = many_runs(world)
    first, second = another(world, Ownership.LEADER), another(world, Ownership.LEADER)

    assert first.scheduler.tick().dispatched
    assert second.scheduler.tick().dispatched == ()
    work(world)
    assert second.scheduler.tick().dispatched == ()
    carry_out(world, [first])

    assert [state_of(world, run) for run in runs] == [RunState.DONE] * RUNS
    assert region_of(world).leader == first.keeper.instance.id
    assert region_of(world).leader_epoch == 1


def test_the_lead_passes_on_once_when_its_holder_surrenders_or_dies(world: World) -> None:
    many_runs(world)
    first, second, third = (another(world, Ownership.LEADER) for _ in range(3))
    first.scheduler.tick()
    work(world)
    first.keeper.surrender()

    assert second.scheduler.tick().dispatched
    assert third.scheduler.tick().dispatched == ()
    assert region_of(world).leader == second.keeper.instance.id
    assert region_of(world).leader_epoch == 2
    assert first.scheduler.tick().dispatched == ()


def test_a_leader_that_only_slept_finds_itself_deposed_and_promotes_nothing(world: World) -> None:
    many_runs(world)
    sleeper, other = another(world, Ownership.LEADER), another(world, Ownership.LEADER)
    sleeper.scheduler.tick()
    work(world)
    lease_s = world.timings.lease_s + world.timings.ttl_s
    for _ in range(round(lease_s / world.timings.renew_every_s)):
        world.clock.advance(world.timings.renew_every_s)
        other.keeper.renew()
        world.renew_workers()
        other.resource_manager.tick()

    assert sleeper.scheduler.tick().dispatched == ()
    other.scheduler.tick()
    assert region_of(world).leader == other.keeper.instance.id
    with pytest.raises(Fenced):
        sleeper.keeper.renew()
