"""A task that may not start before an instant is ready, and waits for it with a reason."""

from __future__ import annotations

import pytest

from region_scheduler.admission.importers.graph import GraphOptions, plan_of_graph
from region_scheduler.assembly.doctor import Unwell, clocks_told, schedules_told
from region_scheduler.domain.states import TaskState
from region_scheduler.errors import InvalidInput
from region_scheduler.operations.explain import explain
from region_scheduler.operations.plans import held_until
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit, effects, home, task_of
from tests.simulation.scenarios import HOME, REGIONS, a_plan, graph_of, spec
from tests.simulation.timekeeping import SECOND, put_schedule, tick, wall
from tests.unit.domain.samples import AT

OPTIONS = GraphOptions(
    tenant="acme", home_region=HOME, regions=REGIONS, serves={name: name for name in REGIONS}
)


def test_it_waits_ready_with_a_reason_and_starts_when_it_may(world: World) -> None:
    until = world.clock.now() + 30 * SECOND
    plan = a_plan([spec("a"), spec("b", not_before=until), spec("c")], "a>b", "b>c")
    run = admit(world, plan)
    world.pass_time(20)

    task = task_of(world, run, "b")
    told = explain(graph_of(world), task, world.clock.now(), home(world).ports.backlog)
    assert (task.state, effects(world)) == (TaskState.READY, ["a"])
    assert {one.kind: one.text for one in told.reasons}["not-before"] == (
        f"it may not start before {until}"
    )
    assert told.starts_in_s == pytest.approx((until - world.clock.now()).total_seconds())

    world.pass_time(20)
    assert effects(world) == ["a", "b", "c"]
    (start,) = [entry for entry in task_of(world, run, "b").history if entry.kind == "started"]
    assert start.at >= until


def test_the_slow_path_alone_keeps_it_too(world: World) -> None:
    """A lost relational store is refilled by the mender, which knows of the instant as well."""
    until = world.clock.now() + 30 * SECOND
    admit(world, held_until(a_plan([spec("a")]), until))
    home(world).ports.backlog.clear()
    world.pass_time(20)

    assert effects(world) == []
    world.pass_time(20)
    assert effects(world) == ["a"]


def test_a_run_holds_every_task_back_and_lets_none_go_sooner() -> None:
    early, late = AT + 10 * SECOND, AT + 20 * SECOND

    plan = held_until(a_plan([spec("a"), spec("b", not_before=late)]), early)

    assert [task.not_before for task in plan.tasks] == [early, late]


def test_a_graph_says_when_a_node_may_start_with_an_offset() -> None:
    node = {"id": "a", "runner": "simulate", "not_before": "2027-03-14T02:30:00+01:00"}
    document = {"name": "g", "nodes": [node], "edges": []}

    (task,) = plan_of_graph(document, OPTIONS).tasks
    assert task.not_before is not None
    assert task.not_before.isoformat() == "2027-03-14T01:30:00+00:00"

    node["not_before"] = "2027-03-14T02:30:00"
    with pytest.raises(InvalidInput, match="offset from UTC") as refused:
        plan_of_graph(document, OPTIONS)
    assert refused.value.field == "nodes[0].not_before"


def test_the_doctor_names_a_clock_that_is_ahead_and_a_schedule_that_nobody_fires(
    world: World,
) -> None:
    graph, timings = graph_of(world), world.timings
    put_schedule(world, "* * * * *")
    assert "none is more than 4 s ahead" in clocks_told(graph, timings.skew_max_s)
    assert schedules_told(graph, wall(world), timings).startswith("1, the next at 2026-01-01")

    world.clocks["us-east"].ahead_s = 3600
    world.clock.advance(120)
    world.renew()
    with pytest.raises(Unwell, match=r"us-east.* by 36\d\d"):
        clocks_told(graph, timings.skew_max_s)
    with pytest.raises(Unwell, match="nobody fires s"):
        schedules_told(graph, wall(world), timings)

    tick(world)
    assert "0 occurrences missed" in schedules_told(graph, wall(world), timings)
