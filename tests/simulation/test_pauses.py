"""Paused scopes, released waves: nothing new is promoted, and what runs goes on."""

from __future__ import annotations

from datetime import timedelta

import pytest

from region_scheduler.domain.pause import EVERYTHING, Pause, Scope, ScopeKind
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.step import StopWish
from region_scheduler.errors import InvalidInput, NotFound
from region_scheduler.operations.pauses import pause, step, unpause
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, auditor, effects, home, state_of, task_of
from tests.simulation.scenarios import HOME, ZONE, a_plan, a_zone, graph_of, spec


def close(world: World, scope: Scope, **more: timedelta) -> Pause:
    until = world.clock.now() + more["lasting"] if more else None
    return pause(graph_of(world), auditor(world), world.clock, scope, "maintenance", until)


def reopen(world: World, scope: Scope) -> None:
    unpause(graph_of(world), home(world).services.settler, auditor(world), scope)


def release(world: World, run: Run) -> list[str]:
    stores = graph_of(world)
    tasks = step(stores, home(world).services.settler, auditor(world), world.clock, run)
    return sorted(task.spec.name for task in tasks)


def two_runs(world: World) -> tuple[Run, Run]:
    """Admit a run of a zone of one tenant, and one of another tenant elsewhere."""
    graph_of(world).zones.insert([a_zone()])
    plan = a_plan([spec("a"), spec("b")], "a>b", zone=ZONE)
    other = a_plan([spec("c", "us-east")], tenant="other")
    return admit(world, plan), admit(world, other, key="other")


@pytest.mark.parametrize("kind", list(ScopeKind))
def test_what_is_paused_waits_and_the_rest_does_not(world: World, kind: ScopeKind) -> None:
    run, other = two_runs(world)
    named = {"run": run.id, "zone": ZONE, "tenant": "acme", "region": HOME, "everything": ""}
    scope = Scope(kind, named[kind])
    close(world, scope)

    world.pass_time(5)

    assert effects(world) == ([] if scope == EVERYTHING else ["c"])
    assert task_of(world, run, "a").state is TaskState.READY
    reopen(world, scope)
    world.fast_path()  # lifting it wakes the schedulers: nobody waits for a slow poll
    assert sorted(effects(world)) == ["a", "b", "c"]
    assert [state_of(world, one) for one in (run, other)] == [RunState.DONE] * 2


def test_what_runs_when_a_run_is_paused_ends_and_unlocks_but_starts_nothing(world: World) -> None:
    run = admit(world, a_plan([spec("a"), spec("b")], "a>b"))

    def pause_while_it_runs(_: StopWish) -> None:
        close(world, Scope(ScopeKind.RUN, run.id))

    world.log.during["a"] = pause_while_it_runs

    world.pass_time(5)

    assert effects(world) == ["a"]
    assert task_of(world, run, "a").state is TaskState.DONE
    assert task_of(world, run, "b").state is TaskState.READY


def test_a_pause_ends_by_itself(world: World) -> None:
    run = admit(world, a_plan([spec("a")]))
    close(world, Scope(ScopeKind.RUN, run.id), lasting=timedelta(seconds=20))

    world.pass_time(15)
    assert effects(world) == []
    world.pass_time(20)
    assert state_of(world, run) is RunState.DONE


def test_each_step_of_a_paused_run_releases_one_wave(world: World) -> None:
    plan = a_plan(
        [spec("a"), spec("b"), spec("c", "us-east"), spec("d")], "a>b", "a>c", "b>d", "c>d"
    )
    run = admit(world, plan)
    close(world, Scope(ScopeKind.RUN, run.id))
    world.pass_time(3)
    seen: list[list[str]] = []
    for wave in (["a"], ["b", "c"], ["d"]):
        before = len(effects(world))
        assert release(world, run) == wave
        world.pass_time(5)
        seen.append(sorted(effects(world)[before:]))

    assert seen == [["a"], ["b", "c"], ["d"]]
    assert state_of(world, run) is RunState.DONE


def test_a_released_task_that_is_retried_needs_no_second_step(world: World) -> None:
    world.log.fails["a"] = 1
    run = admit(world, a_plan([spec("a"), spec("b")], "a>b"))
    close(world, Scope(ScopeKind.RUN, run.id))
    world.pass_time(2)
    release(world, run)

    world.pass_time(10)

    assert effects(world) == ["a", "a"]
    assert task_of(world, run, "b").state is TaskState.READY


def test_a_step_opens_no_other_pause(world: World) -> None:
    graph_of(world).zones.insert([a_zone()])
    run = admit(world, a_plan([spec("a")], zone=ZONE))
    close(world, Scope(ScopeKind.RUN, run.id))
    close(world, Scope(ScopeKind.ZONE, ZONE))
    world.pass_time(3)
    assert release(world, run) == ["a"]

    world.pass_time(5)

    assert effects(world) == []


def test_a_pause_that_begins_anew_closes_to_what_an_older_one_let_pass(world: World) -> None:
    run = admit(world, a_plan([spec("a")]))
    scope = Scope(ScopeKind.RUN, run.id)
    close(world, scope)
    close(world, Scope(ScopeKind.REGION, HOME))
    release(world, run)
    reopen(world, scope)
    close(world, scope)
    reopen(world, Scope(ScopeKind.REGION, HOME))

    world.pass_time(5)

    assert effects(world) == []


def test_a_pause_needs_a_reason_and_a_future(world: World) -> None:
    scope = Scope(ScopeKind.TENANT, "acme")
    with pytest.raises(InvalidInput, match="say why"):
        pause(graph_of(world), auditor(world), world.clock, scope, " ")
    with pytest.raises(InvalidInput, match="must be after now"):
        pause(graph_of(world), auditor(world), world.clock, scope, "x", world.clock.now())
    assert graph_of(world).pauses.on() == []
    assert graph_of(world).audit.recent(10) == []


def test_what_is_not_paused_cannot_be_lifted_or_stepped(world: World) -> None:
    run = admit(world, a_plan([spec("a")]))
    with pytest.raises(NotFound):
        reopen(world, Scope(ScopeKind.RUN, run.id))
    with pytest.raises(InvalidInput, match="not paused"):
        release(world, run)


def test_who_paused_and_why_is_in_the_audit(world: World) -> None:
    scope = Scope(ScopeKind.TENANT, "acme")
    close(world, scope)
    reopen(world, scope)

    entries = graph_of(world).audit.recent(10)
    assert {(e.actor, e.action, e.thing) for e in entries} == {
        ("alice", "tenant.pause", "acme"),
        ("alice", "tenant.unpause", "acme"),
    }
