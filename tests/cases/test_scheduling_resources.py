"""The handed cases about scarce things, each named by its id.

A "pool" of slots and a "semaphore" are a resource here, their size its capacity; who loses a slot
goes back to the backlog. "422" is a refusal by `Rejected` before any write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from region_scheduler.admission.importers.graph import GraphOptions, plan_of_graph
from region_scheduler.assembly.doctor import Unwell, resources_told
from region_scheduler.domain.ownership import Ownership
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import HELD, RunState, TaskState
from region_scheduler.domain.step import StopWish
from region_scheduler.domain.task import Exit, ExitKind, LockNeed, RetryPolicy
from region_scheduler.errors import InvalidGraph, InvalidInput
from region_scheduler.operations.explain import explain
from region_scheduler.operations.resources import change_capacity, find_units, usage
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import World
from tests.cases.troubled import Moments, TroubledWorld, once
from tests.simulation.acts import admit, another, auditor, effects, home, state_of, task_of
from tests.simulation.cancels import cancelled, zone_in
from tests.simulation.scenarios import HOME, REGIONS, ZONE, a_plan, graph_of, spec

POOL = "acme/aws:account-factory"
TWO = (HOME, "us-east")


@pytest.fixture
def moments() -> Moments:
    return Moments()


@pytest.fixture
def world(tmp_path: Path, moments: Moments) -> TroubledWorld:
    return TroubledWorld(tmp_path, TWO, hook=moments)


def needy(count: int, units: int, capacity: int, prefix: str = "t", **more: Any) -> list[Any]:
    need = LockNeed(POOL, capacity=capacity, units=units)
    return [spec(f"{prefix}{n}", locks=(need,), **more) for n in range(count)]


def held(world: World) -> int:
    return sum(slot.holder is not None for slot in graph_of(world).slots.of_resources([POOL]))


def watched(world: World, moments: Moments) -> list[int]:
    """Return how many units are held after every write to a slot, as they come."""
    seen: list[int] = []

    def look(*_: object) -> None:
        seen.append(held(world))

    moments.after["slots.write"] = look
    return seen


def until_done(world: World, run: Run, patience_s: float = 60.0) -> None:
    waited_s = 0.0
    while state_of(world, run) is RunState.RUNNING and waited_s < patience_s:
        world.pass_time(1)
        waited_s += 1
    assert state_of(world, run) is RunState.DONE


def retries(world: World, run: Run) -> set[tuple[int, int]]:
    return {(t.retries_used, t.losses) for t in graph_of(world).tasks.of_run(run.id)}


def test_rsc_001_units_are_counted_and_not_tasks(world: World, moments: Moments) -> None:
    seen = watched(world, moments)
    run = admit(world, a_plan(needy(6, units=3, capacity=6)))

    until_done(world, run)

    assert max(seen) == 6, "two run at once"
    assert min(seen) == 0
    assert Counter(effects(world)) == {f"t{n}": 1 for n in range(6)}
    assert held(world) == 0


@pytest.mark.parametrize("seed", range(2))
def test_rsc_003_no_interleaving_of_four_takers_gives_more_than_there_is(
    tmp_path: Path, seed: int
) -> None:
    """There is no `run now`: a fourth scheduler plays it. Others act before any write of one."""
    world = World(tmp_path, (HOME,), slots=40)
    chance, inside, most = Random(seed), [0], [0]

    def others_first(point: str, call: partial[Any]) -> Any:
        if point in {"tasks.write", "slots.write"} and inside[0] < 2 and chance.random() < 0.5:
            inside[0] += 1
            chance.choice(takers).scheduler.tick()
            inside[0] -= 1
        answer = call()
        most[0] = max(most[0], held(world)) if point == "slots.write" else most[0]
        return answer

    takers = [another(world, Ownership.NONE, others_first) for _ in range(4)]
    run = admit(world, a_plan(needy(40, units=1, capacity=8)))
    for _ in range(400):
        if state_of(world, run) is not RunState.RUNNING:
            break
        chance.choice(takers).scheduler.tick()
        home(world).workers[0].work()
        world.clock.advance(0.1)
        world.renew()
        for taker in takers:
            taker.keeper.renew()

    assert most[0] == 8
    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == {f"t{n}": 1 for n in range(40)}
    assert retries(world, run) == {(0, 0)}
    assert held(world) == 0
    assert graph_of(world).conflicts.recent(999), "some did lose"


def cancelled_while_it_runs(world: TroubledWorld, run: Run) -> Callable[[StopWish], Exit]:
    def during(should_stop: StopWish) -> Exit:
        cancelled(world, run)
        world.clock.advance(world.timings.renew_every_s)
        return Exit(kind=ExitKind.CANCELLED, message=should_stop())

    return during


def powered_off(world: TroubledWorld, _run: Run) -> Callable[[StopWish], None]:
    def during(_: StopWish) -> None:
        home(world).workers.clear()  # neither it nor its step does anything any more
        raise Crash("power")

    return during


def killed(world: TroubledWorld, _run: Run) -> Callable[[StopWish], None]:
    def during(_: StopWish) -> None:
        home(world).workers[:] = [world.worker(home(world))]
        raise Crash("kill -9")

    return during


def timed_out(_world: TroubledWorld, _run: Run) -> Callable[[StopWish], Exit]:
    return lambda _: Exit(kind=ExitKind.CAPPED, message="longer than its cap")


@pytest.mark.parametrize("end", [cancelled_while_it_runs, killed, timed_out, powered_off])
def test_rsc_004_whatever_ends_a_holder_its_slot_is_free_within_a_lease(
    world: TroubledWorld, end: Callable[[TroubledWorld, Run], Any]
) -> None:
    never = RetryPolicy(limit=0, losses_limit=0)
    run = admit(world, a_plan(needy(1, units=1, capacity=1, retry=never)))
    home(world).services.scheduler.tick()
    assert usage(POOL, find_units(graph_of(world), POOL)).held == held(world) == 1
    world.log.during["t0"] = end(world, run)
    worker, begin_s = home(world).workers[0], world.clock.seconds
    world.perform(home(world), worker.work)

    while held(world):
        world.pass_time(world.timings.renew_every_s / 2)

    assert world.clock.seconds - begin_s <= world.timings.lease_s + 2
    told = usage(POOL, find_units(graph_of(world), POOL))
    assert (told.held, told.capacity) == (0, 1), "what is shown is counted from the very slots"
    assert state_of(world, run) in {RunState.CANCELLED, RunState.FAILED}


def test_rsc_007_what_does_not_fit_together_waits(world: World, moments: Moments) -> None:
    seen = watched(world, moments)
    need = partial(LockNeed, POOL, 24)
    tasks = [spec(f"t{n}", locks=(need(n),), priority=-n + 20) for n in (12, 16)]
    tasks.append(spec("again", locks=(need(12),), priority=9))
    run = admit(world, a_plan(tasks))
    home(world).services.scheduler.tick()
    world.woken.clear()
    together = [t.spec.name for t in graph_of(world).tasks.of_run(run.id, list(HELD))]

    until_done(world, run)

    assert sorted(together) == ["again", "t12"]
    assert max(seen) == 24
    assert effects(world)[-1] == "t16"
    assert retries(world, run) == {(0, 0)}


OPTIONS = GraphOptions(
    tenant="acme", home_region=HOME, regions=REGIONS, serves={name: name for name in REGIONS}
)


def test_rsc_009_more_than_there_ever_is_is_refused_at_once(world: World) -> None:
    node = {"id": "a", "runner": "simulate"}
    lock = {"resource": POOL, "capacity": 2, "units": 4}
    with pytest.raises(InvalidInput, match=f"{POOL} has 2") as refused:
        plan_of_graph({"name": "g", "nodes": [{**node, "locks": [lock]}], "edges": []}, OPTIONS)
    assert refused.value.exit_code == 2
    assert refused.value.field == "nodes[0].locks[0].units"
    with pytest.raises(InvalidGraph, match=f"takes 4 units of '{POOL}', which has 2"):
        admit(world, a_plan(needy(1, units=4, capacity=2)))
    assert graph_of(world).runs.recent(9) == []


def test_rsc_009_a_task_that_no_longer_fits_says_so_and_raises_an_alert(world: World) -> None:
    graph = graph_of(world)
    run = admit(world, a_plan(needy(1, units=4, capacity=4)))
    world.woken.clear()
    settler = home(world).services.settler
    change_capacity(graph, settler, auditor(world), POOL, 4)
    assert resources_told(graph, HOME).startswith("1 known")
    change_capacity(graph, settler, auditor(world), POOL, 2)
    world.pass_time(5)

    task = task_of(world, run, "t0")
    assert task.state is TaskState.READY
    told = [str(reason.text) for reason in explain(graph, task, world.clock.now()).reasons]
    assert f"unschedulable: needs 4 units of {POOL}, total 2" in told
    with pytest.raises(Unwell, match=f"needs 4 units of {POOL}, total 2"):
        resources_told(graph, HOME)
    change_capacity(graph, settler, auditor(world), POOL, 4)
    assert resources_told(graph, HOME)
    until_done(world, run)


def test_rsc_011_what_is_on_its_way_to_a_worker_counts(tmp_path: Path) -> None:
    """A message lies in the queue for 3 s before a worker sees it."""
    world = World(tmp_path, (HOME,), slots=30)
    run = admit(world, a_plan(needy(30, units=5, capacity=10)))
    region, (worker,) = home(world), home(world).workers
    sent_at: dict[str, float] = {}
    most = 0
    while state_of(world, run) is RunState.RUNNING and world.clock.seconds < 1400:
        for id_ in region.services.scheduler.tick().dispatched:
            sent_at[id_] = world.clock.seconds
        most = max(most, len(graph_of(world).tasks.held(HOME)))
        for at in list(sent_at.values()):
            if world.clock.seconds - at >= 3 and worker.work():
                sent_at.pop(next(iter(sent_at)))
        world.clock.advance(0.5)
        world.renew()
        region.services.resource_manager.tick()

    assert most == 2, "claimed and running together"
    assert state_of(world, run) is RunState.DONE
    assert retries(world, run) == {(0, 0)}
    assert {t.attempt for t in graph_of(world).tasks.of_run(run.id)} == {1}


@pytest.mark.parametrize("count", [None, 0, -1, 10**9, "${pow(10, 6)}"], ids=str)
def test_rsc_013_there_is_no_number_by_which_a_task_is_multiplied(count: Any) -> None:
    node: dict[str, Any] = {"id": "a", "runner": "simulate"}
    for key in ("count", "replicas", "completions", "parallelism"):
        graph = {"name": "g", "nodes": [{**node, key: count}], "edges": []}
        with pytest.raises(InvalidInput, match=f"nodes\\[0\\].{key}.*not accepted"):
            plan_of_graph(graph, OPTIONS)
    retry = {"name": "g", "nodes": [{**node, "retry": {"limit": count}}], "edges": []}
    if count == 0:
        assert plan_of_graph(retry, OPTIONS).tasks[0].retry.limit == 0
    else:
        with pytest.raises(InvalidInput, match=r"nodes\[0\].retry.limit.*at most 100"):
            plan_of_graph(retry, OPTIONS)
    lock = {"resource": POOL, "capacity": count}
    with pytest.raises(InvalidInput, match=r"nodes\[0\].locks\[0\].capacity.*at most 10000"):
        plan_of_graph({"name": "g", "nodes": [{**node, "locks": [lock]}], "edges": []}, OPTIONS)


def test_rsc_013_attempts_are_bounded_by_the_retries_of_each_task(world: World) -> None:
    node = {"id": "a", "runner": "simulate"}
    plan = plan_of_graph({"name": "g", "nodes": [node], "edges": []}, OPTIONS)
    assert plan.tasks[0].retry.limit == RetryPolicy().limit == 3, "left out, the default counts"
    never = RetryPolicy(limit=2, delay_s=1.0)
    world.log.fails |= dict.fromkeys("abc", 99)
    run = admit(world, a_plan([spec(name, retry=never) for name in "abc"]))

    world.pass_time(20)

    assert state_of(world, run) is RunState.FAILED
    assert Counter(effects(world)) == dict.fromkeys("abc", 3)
    told = "it has 20001 nodes, at most 20000"
    many = {"name": "g", "nodes": [{**node, "id": f"n{n}"} for n in range(20_001)], "edges": []}
    with pytest.raises(InvalidGraph, match=told):
        plan_of_graph(many, OPTIONS)


ROUNDS = [3, pytest.param(50, marks=pytest.mark.slow)]


@pytest.mark.parametrize("rounds", ROUNDS)
def test_rsc_014_cancelling_everything_at_any_moment_gives_all_units_back(
    tmp_path: Path, rounds: int
) -> None:
    world, chance = World(tmp_path, (HOME,)), Random(rounds)
    region = home(world)
    for number in range(rounds):
        runs = [
            admit(world, a_plan(needy(1, 1, 3, f"{number}.{n}.")), f"k{number}.{n}")
            for n in range(20)
        ]
        for run in chance.sample(runs, len(runs)):
            for act in chance.sample(
                [region.services.scheduler.tick, region.workers[0].work], chance.randrange(3)
            ):
                act()
            if state_of(world, run) is RunState.RUNNING:
                cancelled(world, run)
        begin_s = world.clock.seconds
        while held(world):
            world.pass_time(world.timings.renew_every_s / 2)
        assert world.clock.seconds - begin_s <= 2
        assert {state_of(world, run) for run in runs} <= {RunState.CANCELLED, RunState.DONE}
        new = admit(world, a_plan(needy(1, 1, 3, f"{number}.new.")), f"k{number}.new")
        world.pass_time(1)
        assert state_of(world, new) is RunState.DONE
        assert max(Counter(effects(world)).values()) == 1


def test_dbl_008_two_runs_on_one_zone_come_one_after_the_other(world: World) -> None:
    """One mutating run a zone: the second waits, and says for which."""
    zone_in(world)
    zone = {"zone": ZONE, "zone_type": "aws-pci_dss"}
    seen: list[Any] = []

    def meanwhile() -> None:
        seen.append(admit(world, a_plan([spec("second")], **zone), "second"))
        world.pass_time(4)
        assert effects(world) == ["first"]
        (reason,) = explain(
            graph_of(world), task_of(world, seen[0], "second"), world.clock.now()
        ).reasons
        assert reason.kind == "zone"

    world.log.during["first"] = once(meanwhile)
    run = admit(world, a_plan([spec("first")], **zone), "first")
    world.fast_path()
    world.pass_time(3)

    assert effects(world) == ["first", "second"]
    assert state_of(world, run) is state_of(world, seen[0]) is RunState.DONE


def test_dbl_008_two_applies_of_one_terraform_state_never_overlap(world: World) -> None:
    """Each holds the lock of its state, as the catalogue gives it to every terraform step."""
    need = (LockNeed(f"tfstate:acme/prod/network@{HOME}"),)
    overlaps: list[str] = []

    def meanwhile() -> None:
        world.pass_time(4)
        overlaps.extend(effects(world)[1:])

    world.log.during["first"] = once(meanwhile)
    runs = [
        admit(world, a_plan([spec(name, region, locks=need)]), name)
        for name, region in (("first", HOME), ("second", "us-east"))
    ]
    home(world).services.scheduler.tick()
    world.fast_path()
    world.pass_time(5)

    assert overlaps == []
    assert effects(world) == ["first", "second"]
    assert {state_of(world, run) for run in runs} == {RunState.DONE}
