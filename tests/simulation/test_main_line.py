"""The main line in one process: graphs drained by three regions' schedulers and workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from region_scheduler.admission.importers.graph import GraphOptions, plan_of_graph
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import EventKind, ExitKind, LockNeed, OnLoss, TaskSpec, Verdict
from region_scheduler.operations.audit import Auditor
from region_scheduler.operations.runs import give_answer, resume_run
from region_scheduler.simulation.steps import EffectLog
from region_scheduler.simulation.world import World

REGIONS = ("eu-west", "us-east", "ap-south")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, REGIONS)


def graph(edges: list[tuple[str, str]], regions: dict[str, str] | None = None) -> Plan:
    names = dict.fromkeys(name for edge in edges for name in edge)
    document = {
        "name": "g",
        "nodes": [{"id": n, "runtime_s": 1, "region": (regions or {}).get(n, "")} for n in names],
        "edges": [list(edge) for edge in edges],
    }
    options = GraphOptions(
        tenant="acme",
        home_region="eu-west",
        regions=REGIONS,
        serves={name: name for name in REGIONS},
        is_simulated=True,
        time_scale=0,
    )
    return plan_of_graph(document, options)


def each(plan: Plan, change: Callable[[TaskSpec], TaskSpec]) -> Plan:
    return replace(plan, tasks=tuple(change(spec) for spec in plan.tasks))


def admit(world: World, plan: Plan, key: str = "k") -> Run:
    return world.regions["eu-west"].services.intake.admit(plan, key).run


def states(world: World, run: Run) -> dict[str, TaskState]:
    tasks = world.regions["eu-west"].ports.graph.tasks.of_run(run.id)
    return {task.spec.name: task.state for task in tasks}


def state_of(world: World, run: Run) -> RunState:
    (found,) = world.regions["eu-west"].ports.graph.runs.read([run.id])
    assert found is not None
    return found.state


DIAMOND = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]


def test_a_diamond_over_three_regions_runs_to_the_end_on_wake_ups_alone(world: World) -> None:
    run = admit(world, graph(DIAMOND, {"b": "us-east", "c": "ap-south"}))

    world.fast_path()

    assert state_of(world, run) is RunState.DONE
    order = [effect.name for effect in world.log.effects]
    assert order[0] == "a"
    assert order[-1] == "d"
    assert sorted(order) == ["a", "b", "c", "d"]
    assert {e.name: e.region for e in world.log.effects} == {
        "a": "eu-west",
        "b": "us-east",
        "c": "ap-south",
        "d": "eu-west",
    }


def test_with_every_wake_up_dropped_the_slow_loops_still_end_the_run(world: World) -> None:
    world.is_waking = False
    run = admit(world, graph(DIAMOND))

    world.pass_time(10)

    assert state_of(world, run) is RunState.DONE
    assert len(world.log.effects) == 4


def test_dependents_see_the_outputs_of_their_predecessors(world: World) -> None:
    run = admit(world, graph(DIAMOND))

    world.fast_path()

    tasks = world.regions["eu-west"].ports.graph.tasks
    last = tasks.named(run.id, "d")
    assert last is not None
    assert last.outputs["seen"] == {"b": "b", "c": "c"}


def test_the_unlock_records_the_completion_tokens_of_all_predecessors(world: World) -> None:
    run = admit(world, graph(DIAMOND))

    world.fast_path()

    tasks = {t.spec.name: t for t in world.regions["eu-west"].ports.graph.tasks.of_run(run.id)}
    unlocked = next(e for e in tasks["d"].history if e.kind is EventKind.UNLOCKED)
    assert unlocked.seen == {tasks[n].id: str(tasks[n].token) for n in ("b", "c")}


def test_a_retryable_failure_rests_and_runs_again(world: World) -> None:
    world.log.fails["b"] = 2
    run = admit(world, graph(DIAMOND))

    world.fast_path()
    assert states(world, run)["b"] is TaskState.READY

    world.pass_time(70)
    assert state_of(world, run) is RunState.DONE
    assert [e.name for e in world.log.effects].count("b") == 3


def test_a_failed_task_blocks_its_dependents_and_resume_runs_only_what_is_left(
    world: World,
) -> None:
    world.log.fails["b"] = 4
    run = admit(world, graph(DIAMOND))
    world.pass_time(150)
    assert state_of(world, run) is RunState.FAILED
    assert states(world, run) == {
        "a": TaskState.DONE,
        "b": TaskState.FAILED,
        "c": TaskState.DONE,
        "d": TaskState.PENDING,
    }

    region = world.regions["eu-west"]
    auditor = Auditor(region.ports.graph, "alice", world.clock, world.chance)
    before = len(world.log.effects)
    resume_run(region.ports.graph, region.services.settler, auditor, world.clock, run.id)
    world.fast_path()

    assert state_of(world, run) is RunState.DONE
    assert [e.name for e in world.log.effects[before:]] == ["b", "d"]


def test_a_lock_is_held_by_one_task_at_a_time_and_all_run(world: World) -> None:
    plan = graph([("root", f"t{i}") for i in range(12)])
    plan = each(plan, lambda spec: replace(spec, locks=(LockNeed("acme/aws:organizations"),)))
    run = admit(world, plan)

    world.pass_time(5)

    assert state_of(world, run) is RunState.DONE
    assert len(world.log.effects) == 13
    assert world.regions["eu-west"].ports.graph.slots.taken() == []


def test_one_key_is_one_run(world: World) -> None:
    first = admit(world, graph(DIAMOND), "same")
    second = world.regions["us-east"].services.intake.admit(graph(DIAMOND), "same")

    assert second.is_repeat
    assert second.run.id == first.id


def test_a_lost_scheduler_and_its_dispatched_work_come_back(world: World) -> None:
    run = admit(world, graph(DIAMOND))
    region = world.regions["eu-west"]
    region.services.scheduler.tick()
    assert region.broker.take() is not None  # the message is lost with the broker

    world.pass_time(world.timings.dispatch_s + 3)

    assert state_of(world, run) is RunState.DONE
    assert [e.name for e in world.log.effects].count("a") == 1


class Died(Exception):
    pass


def _die(*_: object) -> None:
    raise Died


def test_a_worker_that_dies_in_a_step_is_fenced_and_its_task_inspected(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = each(graph(DIAMOND), lambda spec: replace(spec, on_loss=OnLoss.INSPECT))
    world.log.verdict = Verdict.NOT_DONE
    run = admit(world, plan)
    region = world.regions["eu-west"]
    region.services.scheduler.tick()
    message = region.broker.take()
    assert message is not None
    dead = world.worker(region)  # renews never: it dies right after its start

    with monkeypatch.context() as patch:
        patch.setattr(EffectLog, "run", _die)
        with pytest.raises(Died):
            dead.handler.handle(message)
    assert states(world, run)["a"] is TaskState.RUNNING

    world.pass_time(world.timings.lease_s + 3)

    assert state_of(world, run) is RunState.DONE
    assert [e.name for e in world.log.inspected] == ["a"]
    tasks = world.regions["eu-west"].ports.graph.tasks
    lost = tasks.named(run.id, "a")
    assert lost is not None
    assert lost.losses == 1
    assert lost.attempt == 2
    ends = [e for e in lost.history if e.kind is EventKind.ENDED]
    assert [e.detail for e in ends] == [ExitKind.OK]


def spec(name: str, runner: str = "simulate") -> TaskSpec:
    return TaskSpec(name=name, runner=runner, region="eu-west", allowed_regions=REGIONS)


def test_an_approval_waits_holding_nothing_and_goes_on_when_answered(world: World) -> None:
    plan = Plan(
        name="approval",
        tenant="acme",
        home_region="eu-west",
        regions=REGIONS,
        tasks=(spec("ask", runner="approval"), spec("go")),
        edges=(("ask", "go"),),
    )
    run = admit(world, plan)
    world.fast_path()
    region = world.regions["us-east"]
    waiting = region.ports.graph.tasks.named(run.id, "ask")
    assert waiting is not None
    assert waiting.state is TaskState.AWAITING
    assert waiting.holder is None

    auditor = Auditor(region.ports.graph, "bob", world.clock, world.chance)
    give_answer(
        region.ports.graph,
        region.services.settler,
        auditor,
        world.clock,
        waiting,
        is_yes=True,
        outputs={},
    )
    world.fast_path()

    assert state_of(world, run) is RunState.DONE
