"""Each thing that can keep a task is told by `explain`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.pause import Scope, ScopeKind
from region_scheduler.domain.region import Region, RegionStatus
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import LockNeed
from region_scheduler.domain.tenant import Level, Tenant, tenant_key
from region_scheduler.operations.explain import Explanation, explain
from region_scheduler.operations.pauses import pause
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, auditor, home, task_of
from tests.simulation.scenarios import HOME, LOCK, ZONE, a_plan, a_zone, graph_of, spec
from tests.unit.domain.samples import AT

pytestmark = pytest.mark.usefixtures("judged")


def told(world: World, run: Run, name: str) -> Explanation:
    ports = world.regions[HOME].ports
    task = task_of(world, run, name)
    return explain(ports.graph, task, world.clock.now(), ports.backlog, ports.queue)


def reasons(world: World, run: Run, name: str) -> Mapping[str, str]:
    return {one.kind: one.text for one in told(world, run, name).reasons}


def hold(world: World) -> None:
    """Let nothing be promoted at home."""
    pause(graph_of(world), auditor(world), world.clock, Scope(ScopeKind.REGION, HOME), "frozen")


def test_predecessors_and_what_stopped_them(world: World) -> None:
    world.log.fails["bad"] = 99
    plan = a_plan(
        [spec("ok"), spec("bad"), spec("mid"), spec("end")], "ok>mid", "bad>mid", "mid>end"
    )
    run = admit(world, plan)
    assert set(reasons(world, run, "mid")) == {"predecessor"}
    world.pass_time(20)

    assert reasons(world, run, "mid") == {
        "predecessor": f"bad is failed in {HOME}",
        "blocked": "blocked by bad, which failed",
    }
    assert reasons(world, run, "end")["blocked"] == "blocked by bad, which failed"
    assert told(world, run, "end").starts_in_s is None


def test_the_time_until_a_pending_task_is_its_longest_way_from_what_is_not_done(
    world: World,
) -> None:
    plan = a_plan(
        [
            spec("a", expected_s=10, remaining_s=35),
            spec("b", expected_s=20, remaining_s=25),
            spec("c", expected_s=5, remaining_s=5),
        ],
        "a>b",
        "b>c",
    )
    hold(world)
    run = admit(world, plan)

    assert told(world, run, "c").starts_in_s == 30
    assert told(world, run, "b").starts_in_s == 10


def test_a_zone_that_another_run_holds(world: World) -> None:
    graph_of(world).zones.insert([a_zone()])
    hold(world)
    first = admit(world, a_plan([spec("a")], zone=ZONE))
    second = admit(world, a_plan([spec("a")], zone=ZONE), key="second")

    assert reasons(world, second, "a") == {
        "zone": f"waits for zone prod, held by run {first.id}, round 1"
    }


def test_pauses_regions_pools_and_the_place_in_the_order(world: World) -> None:
    hold(world)
    run = admit(world, a_plan([spec("a", expected_s=8), spec("b"), spec("c", pool="rare")]))
    home(world).services.mender.tick()

    assert reasons(world, run, "a")["paused"] == "region paused by alice: frozen"
    assert reasons(world, run, "c")["pool"] == f"no live worker of {HOME} serves pool rare"
    assert "come before it" in reasons(world, run, "a")["order"]
    down = replace(region(world), status=RegionStatus.CORDONED, reason="moving house")
    commit_one(graph_of(world).regions, Change(HOME, lambda _: down))
    assert reasons(world, run, "a")["region"] == f"region {HOME} is cordoned: moving house"


def test_the_level_of_the_tenant(world: World) -> None:
    level = Level("tiny", in_flight_max=1)
    tenant = Tenant(id=tenant_key("acme"), name="acme", level=level, created_at=AT)
    graph_of(world).tenants.insert([tenant])
    run = admit(world, a_plan([spec("a"), spec("b")]))
    home(world).services.scheduler.tick()
    (waiting,) = graph_of(world).tasks.of_run(run.id, [TaskState.READY])

    assert reasons(world, run, waiting.spec.name)["level"] == (
        "tenant acme has 1 tasks in flight here; its level allows 1"
    )


def test_a_lock_and_who_has_it(world: World) -> None:
    run = admit(
        world, a_plan([spec("a", locks=(LockNeed(LOCK),)), spec("b", locks=(LockNeed(LOCK),))])
    )
    home(world).services.scheduler.tick()
    (waiting,) = graph_of(world).tasks.of_run(run.id, [TaskState.READY])
    (holder,) = graph_of(world).tasks.of_run(run.id, [TaskState.CLAIMED])

    assert reasons(world, run, waiting.spec.name)["lock"] == (
        f"lock {LOCK}: 0 of 1 units free, 1 needed; taken by {holder.spec.name} of run {run.id}"
    )


def test_a_pause_between_retries(world: World) -> None:
    world.log.fails["a"] = 1
    run = admit(world, a_plan([spec("a")]))
    world.fast_path()
    home(world).services.scheduler.tick()

    assert reasons(world, run, "a")["resting"].startswith("it rests for 1 s more")


def test_what_is_dispatched_runs_waits_for_a_person_or_is_over(world: World) -> None:
    plan = a_plan([spec("a"), spec("ask", runner="approval")], "a>ask")
    run = admit(world, plan)
    home(world).services.scheduler.tick()
    assert reasons(world, run, "a")["queued"] == (
        f"dispatched to pool default of {HOME}, 1 messages wait there"
    )
    seen: list[Mapping[str, str]] = []
    world.log.during["a"] = lambda _: seen.append(reasons(world, run, "a"))
    world.pass_time(5)

    assert seen[0]["running"].startswith("attempt 1 runs since 20")
    assert reasons(world, run, "a") == {"ended": "it is done"}
    assert reasons(world, run, "ask") == {"person": "waits for an answer"}


@pytest.mark.parametrize("name", ["a", "b"])
def test_what_nothing_keeps_is_said_to_start_at_once(world: World, name: str) -> None:
    run = admit(world, a_plan([spec("a"), spec("b")]))
    home(world).services.mender.tick()

    found = told(world, run, name)
    assert [one.kind for one in found.reasons] == ["order"]
    assert found.starts_in_s == 0


def region(world: World) -> Region:
    (found,) = graph_of(world).regions.read([HOME])
    assert found is not None
    return found
