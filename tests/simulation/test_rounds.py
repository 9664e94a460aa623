"""Zones pass from run to run, rounds open once, runs end when nothing can move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.assembly.services import Stores
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.ids import RunId
from region_scheduler.domain.run import Run, RunMode, Zone
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import (
    EventKind,
    ExitKind,
    RetryPolicy,
)
from region_scheduler.errors import IllegalMove
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.operations.runs import give_answer, resume_run
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import World
from tests.simulation.acts import (
    admit,
    answered,
    auditor,
    effects,
    home,
    resumed,
    state_of,
    task_of,
)
from tests.simulation.scenarios import REGIONS, ZONE, a_plan, a_zone, graph_of, spec


@pytest.fixture
def zone(world: World) -> Zone:
    zone = a_zone()
    graph_of(world).zones.insert([zone])
    return zone


def zoned(*tasks: Any, **more: Any) -> Plan:
    return a_plan(tasks or [spec("a")], zone=ZONE, zone_type="aws-pci_dss", **more)


def holder_of(world: World) -> str:
    (zone,) = graph_of(world).zones.read([ZONE])
    assert zone is not None
    return zone.active_run


@pytest.mark.usefixtures("zone")
def test_a_zone_has_one_mutating_run_and_passes_to_the_one_that_waited_longest(
    world: World,
) -> None:
    runs: list[Run] = []
    for key in ("first", "second", "third"):
        runs.append(admit(world, zoned(spec("ask", runner="approval")), key))
        world.clock.advance(1)

    while runs:
        world.fast_path()
        assert holder_of(world) == runs[0].id
        states = [task_of(world, run, "ask").state for run in runs]
        assert states == [TaskState.AWAITING, *[TaskState.PENDING] * (len(runs) - 1)]
        answered(world, task_of(world, runs[0], "ask"), is_yes=True)
        assert state_of(world, runs.pop(0)) is RunState.DONE
    assert holder_of(world) == ""


@pytest.mark.usefixtures("zone")
def test_a_run_that_only_plans_neither_waits_for_a_zone_nor_takes_it(world: World) -> None:
    holding = admit(world, zoned(spec("ask", runner="approval")), "one")
    planning = admit(world, zoned(mode=RunMode.PLAN), "two")
    world.fast_path()
    world.pass_time(3)

    assert state_of(world, planning) is RunState.PLANNED
    assert holder_of(world) == holding.id


@pytest.mark.usefixtures("zone")
def test_the_zone_of_a_run_that_is_gone_is_freed(world: World) -> None:
    def held_by_ghost(zone: Zone) -> Zone:
        return replace(zone, active_run=RunId("ghost"), active_round=3)

    commit_one(graph_of(world).zones, Change(ZONE, held_by_ghost))
    run = admit(world, zoned())
    world.pass_time(3)

    assert state_of(world, run) is RunState.DONE
    assert holder_of(world) == ""


def test_resume_called_twice_opens_one_round(world: World) -> None:
    world.log.fails["a"] = 3
    run = admit(world, a_plan([spec("a")]))
    world.pass_time(8)
    assert state_of(world, run) is RunState.FAILED

    again, moved = resumed(world, run)
    assert (again.state, again.round, [t.spec.name for t in moved]) == (RunState.RUNNING, 2, ["a"])
    with pytest.raises(IllegalMove):
        resumed(world, run)

    world.fast_path()
    assert state_of(world, run) is RunState.DONE
    audited = len(graph_of(world).audit.recent(100))
    with_end, moved = resumed(world, run)
    assert (with_end.state, with_end.round, moved) == (RunState.DONE, 2, [])
    assert len(graph_of(world).audit.recent(100)) == audited


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("point", ["runs.write", "zones.write", "tasks.write"])
def test_a_round_whose_opener_died_is_opened_by_the_reconciler(world: World, point: str) -> None:
    world.log.fails["a"] = 3
    run = admit(world, zoned(spec("a")))
    world.pass_time(8)
    assert state_of(world, run) is RunState.FAILED

    def die_after(at: str, call: partial[Any]) -> Any:
        done = call()
        if at == point:
            raise Crash(at)
        return done

    graph = home(world).ports.through(die_after).graph
    settler = home(world).services.settler
    with pytest.raises(Crash):
        resume_run(graph, settler, auditor(world), world.clock, run.id)
    assert state_of(world, run) is RunState.ADMITTED
    settler.finish(run.id)
    assert state_of(world, run) is RunState.ADMITTED, "it must not end on what the last round left"

    world.pass_time(3)

    assert state_of(world, run) is RunState.DONE
    assert holder_of(world) == ""
    assert effects(world) == ["a"] * 4


@pytest.mark.usefixtures("zone")
def test_a_resumed_run_waits_for_its_zone_and_then_goes_on(world: World) -> None:
    world.log.fails["a"] = 3
    failed = admit(world, zoned(spec("a")), "one")
    world.pass_time(8)
    other = admit(world, zoned(spec("ask", runner="approval")), "two")
    world.fast_path()
    assert holder_of(world) == other.id

    waiting, moved = resumed(world, failed)
    assert (waiting.state, moved) == (RunState.ADMITTED, [])
    world.pass_time(2)
    assert task_of(world, failed, "a").state is TaskState.FAILED

    answered(world, task_of(world, other, "ask"), is_yes=True)
    world.pass_time(3)
    assert state_of(world, failed) is RunState.DONE


def without(point: str) -> Callable[[str, partial[Any]], Any]:
    """Return a hook for which a question of that point always finds nothing."""
    return lambda at, call: [] if at == point else call()


def test_a_run_does_not_end_while_a_dependent_is_being_unlocked(tmp_path: Path) -> None:
    """One branch has failed; the other is unlocked between the two questions of an end."""
    once = RetryPolicy(limit=0)
    plan = a_plan([spec("bad", retry=once), spec("good"), spec("next")], "good>next")
    world = World(tmp_path, REGIONS, hook=without("tasks.unlocked_by"))
    world.log.fails["bad"] = 1
    run = admit(world, plan)
    world.fast_path()
    assert task_of(world, run, "next").state is TaskState.PENDING
    plain = Settler(graph_of(world), home(world).broker, world.clock, "plain")

    def unlock_meanwhile(point: str, call: partial[Any]) -> Any:
        if point == "tasks.ready":
            plain.unlock_run(run)
        return call()

    graph = Stores.of(graph_of(world), unlock_meanwhile)
    assert Settler(graph, home(world).broker, world.clock, "ender").finish(run.id) is None

    assert task_of(world, run, "next").state is TaskState.READY
    assert state_of(world, run) is RunState.RUNNING
    world.fast_path()
    assert state_of(world, run) is RunState.FAILED
    assert sorted(effects(world)) == ["bad", "good", "next"]


def test_a_refused_approval_can_be_given_after_a_resume(world: World) -> None:
    run = admit(world, a_plan([spec("ask", runner="approval"), spec("go")], "ask>go"))
    world.fast_path()
    answered(world, task_of(world, run, "ask"), is_yes=False)
    assert state_of(world, run) is RunState.FAILED

    resumed(world, run)
    world.fast_path()
    assert task_of(world, run, "ask").state is TaskState.AWAITING, "the old no closed its question"
    answered(world, task_of(world, run, "ask"), is_yes=True)
    world.fast_path()

    assert state_of(world, run) is RunState.DONE
    kinds = [e.kind for e in task_of(world, run, "ask").history]
    assert kinds.count(EventKind.ANSWERED) == 2


def test_an_answer_that_comes_first_is_found_by_the_task(world: World) -> None:
    run = admit(world, a_plan([spec("ask", runner="approval")]))
    answered(world, task_of(world, run, "ask"), is_yes=True)
    answered(world, task_of(world, run, "ask"), is_yes=False, actor="bob")
    world.fast_path()

    assert task_of(world, run, "ask").state is TaskState.DONE
    assert state_of(world, run) is RunState.DONE
    ends = [e for e in task_of(world, run, "ask").history if e.kind is EventKind.ENDED]
    assert [e.detail for e in ends] == [ExitKind.AWAIT]


def test_an_answer_whose_giver_died_before_it_moved_the_task_is_found_by_the_reconciler(
    world: World,
) -> None:
    run = admit(world, a_plan([spec("ask", runner="approval")]))
    world.fast_path()

    def die_after_recording(point: str, call: partial[Any]) -> Any:
        done = call()
        if point == "answers.insert":
            raise Crash(point)
        return done

    graph = home(world).ports.through(die_after_recording).graph
    waiting = task_of(world, run, "ask")
    settler = home(world).services.settler
    with pytest.raises(Crash):
        give_answer(graph, settler, auditor(world), world.clock, waiting, is_yes=True, outputs={})
    assert task_of(world, run, "ask").state is TaskState.AWAITING

    world.pass_time(1)

    assert state_of(world, run) is RunState.DONE
