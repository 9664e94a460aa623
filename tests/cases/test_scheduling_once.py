"""The handed cases about one task that several would run, each named by its id.

"Node" is a task here, "dispatched" is claimed, and a run's tasks exist once: under a key made of
the run and the name. What runs is told by the world's own log of effects.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.admission.importers.graph import GraphOptions, parsed, plan_of_graph
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.ids import ClaimId, task_id
from region_scheduler.domain.ownership import Ownership
from region_scheduler.domain.retention import RETENTION
from region_scheduler.domain.states import FINAL, RunState, TaskState
from region_scheduler.domain.task import EventKind, Exit, ExitKind, RetryPolicy, Task
from region_scheduler.domain.transitions import claim, complete, start, unlock
from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.errors import Fenced, InvalidInput, LostRace
from region_scheduler.simulation.world import World
from tests.cases.troubled import Moments, happened
from tests.simulation.acts import admit, another, effects, home, state_of, task_of
from tests.simulation.scenarios import HOME, REGIONS, a_plan, graph_of, spec
from tests.unit.domain.samples import AT, OTHER, STAMP, WORKER, running

CHAIN = a_plan([spec("a"), spec("b"), spec("c")], "a>b", "b>c")
OPTIONS = GraphOptions(
    tenant="acme", home_region=HOME, regions=REGIONS, serves={name: name for name in REGIONS}
)


@pytest.fixture
def moments() -> Moments:
    return Moments()


@pytest.fixture
def world(tmp_path: Path, moments: Moments) -> World:
    return World(tmp_path, REGIONS, hook=moments)


def submitted(world: World, document: Any, region: str = HOME) -> Any:
    plan = plan_of_graph(parsed(json.dumps(document).encode(), "body"), OPTIONS)
    return admit(world, plan, region=region)


def a_node(**more: Any) -> dict[str, Any]:
    return {"name": "g", "nodes": [{"id": "a", "runner": "simulate", **more}], "edges": []}


@pytest.mark.parametrize("region", REGIONS)
def test_dbl_002_a_task_without_a_region_runs_in_exactly_one(world: World, region: str) -> None:
    """To run in all regions it would have to be written down for each: nothing fans out."""
    run = submitted(world, a_node(), region)
    world.pass_time(10)

    assert state_of(world, run) is RunState.DONE
    (effect,) = world.log.effects
    assert effect.region == HOME
    for key in ("fan_out", "count", "everywhere"):
        with pytest.raises(InvalidInput, match=f"nodes\\[0\\].{key}"):
            plan_of_graph(a_node(**{key: "all"}), OPTIONS)


def test_dbl_009_a_sweep_that_looked_before_the_task_went_on_moves_nothing(
    world: World, moments: Moments
) -> None:
    """The sweep read the task as claimed for too long; before it writes, a worker runs it."""
    run = admit(world, CHAIN)
    home(world).services.scheduler.tick()
    home(world).workers[0].work()
    home(world).services.scheduler.tick()
    world.woken.clear()
    manager, (worker,) = home(world).services.resource_manager, home(world).workers
    manager.tick()
    for _ in range(round(world.timings.dispatch_s / world.timings.renew_every_s) + 1):
        world.clock.advance(world.timings.renew_every_s)
        world.renew()
    seen: list[TaskState] = []

    def go_on(_call: object, held: Any) -> None:
        if not seen:
            seen.extend(task.state for task in held)
            worker.work()

    moments.after["tasks.held"] = go_on
    swept = manager.tick()
    world.pass_time(3)

    assert seen == [TaskState.CLAIMED]
    assert swept.moved == ()
    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == {"a": 1, "b": 1, "c": 1}
    assert happened(world, run, "b", EventKind.CLAIMED, EventKind.REQUEUED) == [EventKind.CLAIMED]


def test_dbl_013_a_key_that_comes_again_after_its_run_has_ended_is_that_run(world: World) -> None:
    """Keys are kept for as long as is documented: `retention.admissions_days`, 90 by default."""
    run = admit(world, a_plan([spec("a")]), "k")
    world.fast_path()
    assert state_of(world, run) is RunState.DONE

    world.clock.advance((RETENTION.admissions_days - 1) * 86_400)
    for region in world.regions.values():
        world.restart(region)
        region.services.collector.tick()
    for region in world.regions.values():
        again = region.services.intake.admit(a_plan([spec("a")]), "k")
        assert again.is_repeat
        assert again.run.id == run.id
    world.pass_time(5)

    assert [one.id for one in graph_of(world).runs.recent(9)] == [run.id]
    assert effects(world) == ["a"]


def nested() -> tuple[list[str], list[tuple[str, str]]]:
    """Return 2x2x2 leaves, a join for every two, four and all eight, and a chain of three."""
    leaves = ["".join(bits) for bits in product("01", repeat=3)]
    joins = ["".join(bits) for size in (2, 1) for bits in product("01", repeat=size)]
    edges = [(f"leaf.{leaf}", f"join.{leaf[:2]}") for leaf in leaves]
    edges += [(f"join.{join}", f"join.{join[:-1]}") for join in joins]
    tail = ["join.", "tail.1", "tail.2", "tail.3"]
    edges += pairwise(tail)
    return list(dict.fromkeys(name for edge in edges for name in edge)), edges


@pytest.mark.parametrize("is_repeating", [False, True], ids=["once", "every message twice"])
def test_dbl_014_nested_joins_run_once_and_in_order(world: World, is_repeating: bool) -> None:
    names, edges = nested()
    places = {name: REGIONS[n % 3] for n, name in enumerate(names)}
    run = admit(world, a_plan([spec(n, places[n]) for n in names], *(f"{b}>{a}" for b, a in edges)))
    for _ in range(40):
        for region in world.regions.values():
            region.services.scheduler.tick()
            while (message := region.broker.take()) is not None:
                for _ in range(1 + is_repeating):
                    region.workers[0].handler.handle(message)

    assert len(names) == 8 + 7 + 3
    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == dict.fromkeys(names, 1)
    order = {name: number for number, name in enumerate(effects(world))}
    assert all(order[before] < order[after] for before, after in edges)
    for task in graph_of(world).tasks.of_run(run.id):
        ends = [e.detail for e in task.history if e.kind is EventKind.ENDED]
        assert (task.attempt, ends) == (1, [ExitKind.OK])


def test_dbl_015_two_ends_at_the_same_instant_let_their_join_go_once(
    world: World, moments: Moments
) -> None:
    """The completion of b is acknowledged; before b's worker looks, that of c is, and both look."""
    plan = a_plan(
        [spec("a"), spec("b", "us-east"), spec("c", "ap-south"), spec("d")],
        "a>b", "a>c", "b>d", "c>d",
    )  # fmt: skip
    run = admit(world, plan)
    home(world).services.scheduler.tick()
    home(world).workers[0].work()
    for region in ("us-east", "ap-south"):
        world.regions[region].services.scheduler.tick()
    looked: list[str] = []

    def look_before_it(call: partial[Any]) -> None:
        if "c" not in looked:
            looked.append("c")
            assert world.regions["ap-south"].workers[0].work()
            assert task_of(world, run, "d").state is TaskState.READY, "c's worker has let it go"

    moments.before["tasks.unlocked_by"] = look_before_it
    assert world.regions["us-east"].workers[0].work()
    world.woken.add(HOME)
    published: list[str] = []
    moments.before["queue.publish"] = lambda call: published.extend(m.task for m in call.args[0])
    world.pass_time(3)

    (d,) = [task for task in graph_of(world).tasks.of_run(run.id) if task.spec.name == "d"]
    assert d.id == task_id(run.id, "d")
    assert d.attempt == 1
    assert published == [d.id]
    assert happened(world, run, "d").count(EventKind.UNLOCKED) == 1
    assert Counter(effects(world)) == {"a": 1, "b": 1, "c": 1, "d": 1}


def test_dbl_019_a_readiness_pass_on_an_old_view_does_not_take_a_running_task_back(
    world: World, moments: Moments
) -> None:
    """There is no `run now`; a scheduler that is quicker than the pass plays its part."""
    run = admit(world, a_plan([spec("a"), spec("b")], "a>b"))
    a = complete_only(world)
    started: list[Task] = []

    def start_it(_call: object, found: Any) -> None:
        if found and not started:
            assert [one.task.state for one in found] == [TaskState.PENDING]
            home(world).services.settler.settle([a])
            started.append(start_next(world))

    moments.after["tasks.ready"] = start_it
    passed = home(world).services.reconciler.tick()

    (begun,) = started
    assert begun.state is TaskState.RUNNING
    assert task_of(world, run, "b") == begun, "what the pass wanted to write was refused"
    assert passed.unlocked == ()
    assert [e.kind for e in begun.history] == [
        EventKind.UNLOCKED,
        EventKind.CLAIMED,
        EventKind.STARTED,
    ]


def start_next(world: World) -> Task:
    """Let the home region's scheduler dispatch, and start what it did under a foreign receipt."""
    home(world).services.scheduler.tick()
    message = home(world).broker.take()
    assert message is not None
    begin = partial(start, token=message.token, holder=WORKER, at=AT)
    begun: Task = commit_one(graph_of(world).tasks, Change(message.task, begin))
    return begun


def complete_only(world: World) -> Task:
    """Start the next task and complete it, as a worker that dies before it looks further."""
    begun = start_next(world)
    ended = Exit(kind=ExitKind.OK)
    finish = partial(complete, token=begun.token, holder=WORKER, ended=ended, at=AT)
    after: Task = commit_one(graph_of(world).tasks, Change(begun.id, finish))
    return after


@pytest.mark.parametrize("kind", list(ExitKind))
def test_dbl_019_no_attempt_goes_from_running_to_ready_and_on(kind: ExitKind) -> None:
    """Where a running task becomes ready its attempt is over: its token has moved."""
    before = running()
    after = complete(before, before.token, WORKER, Exit(kind=kind), AT)

    assert after.state is not TaskState.RUNNING
    if after.state not in FINAL:
        assert after.token.number == before.token.number + 1
    with pytest.raises(Fenced):
        complete(after, before.token, OTHER, Exit(kind=ExitKind.OK), AT)
    assert unlock(before, {}, STAMP) is before


def test_dbl_035_what_is_done_is_not_done_again_when_what_follows_it_is_retried(
    world: World,
) -> None:
    """There are no nested graphs, and so no retry of one: each task has a retry of its own."""
    group = a_node(nodes=[{"id": "x"}, {"id": "y"}], retry={"limit": 3})
    with pytest.raises(InvalidInput, match=r"nodes\[0\].nodes"):
        plan_of_graph(group, OPTIONS)
    world.log.fails["y"] = 2
    plan = a_plan([spec("x"), spec("y", retry=RetryPolicy(limit=3, delay_s=1.0))], "x>y")
    run = admit(world, plan)

    world.pass_time(10)

    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == {"x": 1, "y": 3}
    assert (task_of(world, run, "x").attempt, task_of(world, run, "y").attempt) == (1, 3)
    assert task_of(world, run, "x").submission == 1, "only `tasks clear` makes it run anew"


def test_dbl_036_a_follower_that_lags_makes_nobody_claim_a_second_time(world: World) -> None:
    control = FaultControl(world.engine)
    run = admit(world, a_plan([spec("a")]))
    control.set_lag(HOME, 5.0)
    world.woken.clear()
    scheduler, other = home(world).services.scheduler, another(world, Ownership.NONE).scheduler
    world.clock.advance(1)
    world.renew()
    published = [scheduler.tick().dispatched]
    before = graph_of(world).tasks.marks_claimable(HOME)
    for _ in range(4):
        world.clock.advance(1)
        world.renew()
        scheduler.notice()
        home(world).services.mender.tick()
        published += [scheduler.tick().dispatched, other.tick().dispatched]

    task = task_of(world, run, "a")
    assert list(before) == [task.id], "the follower still shows it as ready"
    assert [tasks for tasks in published if tasks] == [(task.id,)]
    control.set_lag(HOME, 0.0)
    world.pass_time(3)
    assert effects(world) == ["a"]
    assert task_of(world, run, "a").attempt == 1


def test_dbl_036_a_claim_on_an_old_view_is_a_conditional_write_that_fails(world: World) -> None:
    run = admit(world, a_plan([spec("a")]))
    world.woken.clear()
    old = task_of(world, run, "a")
    assert home(world).services.scheduler.tick().dispatched
    again = partial(
        claim, claim_id=ClaimId("late"), scheduler=WORKER.incarnation, region=HOME, at=AT
    )

    with pytest.raises(LostRace, match="claimed"):
        commit_one(graph_of(world).tasks, Change(old.id, again, known=old))
    (answer,) = graph_of(world).tasks.write([(old, again(old))])

    assert answer.result.value == "conflict"
    world.fast_path()
    assert effects(world) == ["a"]
    assert task_of(world, run, "a").state in FINAL
