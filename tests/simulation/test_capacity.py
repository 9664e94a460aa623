"""How many units a resource has, changed while tasks hold them: never over-given, never stuck."""

from __future__ import annotations

import pytest

from region_scheduler.domain.run import Run
from region_scheduler.domain.slot import Slot
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import LockNeed, WhenHolderLost
from region_scheduler.errors import InvalidInput, NotFound
from region_scheduler.operations.resources import Usage, change_capacity, find_units, usage
from region_scheduler.resources.assign import unit_of
from region_scheduler.resources.capacity import set_capacity
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, auditor, effects, home, state_of
from tests.simulation.scenarios import a_plan, graph_of, spec

pytestmark = pytest.mark.usefixtures("judged")

POOL = "acme/aws:account-factory"


def needy(world: World, count: int, units: int = 1, capacity: int = 4) -> Run:
    lock = LockNeed(POOL, capacity=capacity, units=units)
    return admit(world, a_plan([spec(f"t{n}", locks=(lock,)) for n in range(count)]))


def change(world: World, capacity: int) -> Usage:
    settler = home(world).services.settler
    return usage(POOL, change_capacity(graph_of(world), settler, auditor(world), POOL, capacity))


def held(world: World) -> int:
    return usage(POOL, find_units(graph_of(world), POOL)).held


def work_once(world: World) -> None:
    """Let one attempt end, and the scheduler promote what that lets run."""
    region = home(world)
    region.workers[0].work()
    region.services.scheduler.notice()
    region.services.scheduler.tick()


def test_below_what_is_in_use_units_go_when_they_are_released(world: World) -> None:
    run = needy(world, 8)
    home(world).services.scheduler.tick()
    world.woken.clear()
    assert held(world) == 4

    assert change(world, 1) == Usage(POOL, capacity=1, held=4, reserved=0, retiring=3)
    seen = [held(world)]
    while seen[-1] > 1:
        work_once(world)
        seen.append(held(world))

    assert seen == [4, 3, 2, 1], "what is released by a retiring unit is taken by nobody"
    for _ in range(30):
        world.clock.advance(1)
        world.renew()
        work_once(world)
        assert held(world) <= 1
    assert state_of(world, run) is RunState.DONE
    assert sorted(effects(world)) == [f"t{n}" for n in range(8)]


def test_free_units_go_first_and_come_back_first(world: World) -> None:
    run = needy(world, 1)
    home(world).services.scheduler.tick()
    (holder,) = [slot for slot in find_units(graph_of(world), POOL) if slot.holder]

    change(world, 1)
    (left,) = [slot for slot in find_units(graph_of(world), POOL) if not slot.is_retiring]
    assert left.id == holder.id
    assert change(world, 6) == Usage(POOL, capacity=6, held=1, reserved=0, retiring=0)
    assert [slot.unit for slot in find_units(graph_of(world), POOL)] == list(range(6))
    world.pass_time(3)
    assert state_of(world, run) is RunState.DONE


def test_more_units_let_more_run_at_once(world: World) -> None:
    needy(world, 4, capacity=1)
    home(world).services.scheduler.tick()
    assert held(world) == 1

    change(world, 3)
    world.clock.advance(1)
    world.renew()
    home(world).services.scheduler.notice()
    home(world).services.scheduler.tick()

    assert held(world) == 3


def test_a_task_that_needs_more_than_is_left_waits_until_there_is_more(world: World) -> None:
    """It was admitted while there were as many; one that comes now would be refused."""
    run = needy(world, 1, units=4, capacity=4)
    set_capacity(graph_of(world).slots, POOL, 2)
    world.pass_time(20)

    (task,) = graph_of(world).tasks.of_run(run.id)
    assert task.state is TaskState.READY
    assert task.retries_used == 0
    change(world, 4)
    world.pass_time(30)
    assert state_of(world, run) is RunState.DONE


def test_a_reservation_is_never_on_a_unit_that_retires(world: World) -> None:
    units = set_capacity(graph_of(world).slots, POOL, 2)
    (free, other) = units
    assert all(isinstance(slot, Slot) for slot in units)
    run = needy(world, 1, capacity=2)
    home(world).services.scheduler.tick()
    world.woken.clear()
    change(world, 1)
    (left,) = [slot for slot in find_units(graph_of(world), POOL) if not slot.is_retiring]
    assert left.holder is not None
    assert left.id in {free.id, other.id}
    many = needy_again(world)
    world.pass_time(60)
    assert state_of(world, run) is state_of(world, many) is RunState.DONE


def needy_again(world: World) -> Run:
    lock = LockNeed(POOL, capacity=2)
    plan = a_plan([spec(f"again{n}", locks=(lock,)) for n in range(6)])
    return admit(world, plan, key="again")


def test_the_same_change_twice_and_a_resource_that_nobody_knows(world: World) -> None:
    store = graph_of(world).slots
    made = set_capacity(store, POOL, 70)

    assert [slot.unit for slot in made] == list(range(70))
    assert set_capacity(store, POOL, 70) == made
    with pytest.raises(NotFound):
        find_units(graph_of(world), "nobody's")


def test_a_resource_that_was_made_in_part_is_made_whole_by_the_next_call(world: World) -> None:
    """A call that dies between its inserts leaves holes, anywhere."""
    store = graph_of(world).slots
    store.insert([unit_of(POOL, unit, WhenHolderLost.KEEP) for unit in (3, 5, 69)])

    made = set_capacity(store, POOL, 70)

    assert [slot.unit for slot in made] == list(range(70))
    assert {slot.when_holder_lost for slot in made} == {WhenHolderLost.KEEP}


@pytest.mark.parametrize("capacity", [0, -1, 10_001])
def test_a_capacity_out_of_range_is_refused_before_anything_is_written(
    world: World, capacity: int
) -> None:
    with pytest.raises(InvalidInput, match="from 1 to 10000"):
        change(world, capacity)
    assert graph_of(world).slots.all() == []
    assert graph_of(world).audit.recent(5) == []
