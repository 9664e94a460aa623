"""A submission in numbers, and with steps that only take time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from region_scheduler.domain.admission import Plan
from region_scheduler.domain.region import Region
from region_scheduler.domain.task import LockNeed, OnLoss, TaskSpec
from region_scheduler.errors import CyclicGraph, InvalidGraph, InvalidInput, UnknownZoneType
from region_scheduler.operations.plans import checked_zone, plan_of, simulated, summary

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
KNOWN = [Region(id="eu-west"), Region(id="us-east", serves=("us-east-1",))]


def spec(name: str, runner: str = "terraform", **more: Any) -> TaskSpec:
    given: dict[str, Any] = {
        "name": name,
        "runner": runner,
        "region": "r",
        "allowed_regions": ("r",),
    }
    return TaskSpec(**(given | more))


LOCK = LockNeed("acme/one-at-a-time", capacity=1)
PLAN = Plan(
    name="p",
    tenant="acme",
    home_region="r",
    regions=("r",),
    tasks=(
        spec("plan", "check", expected_s=60.0),
        spec("say-yes", "approval"),
        spec("net", expected_s=300.0, locks=(LOCK,), on_loss=OnLoss.INSPECT, state_key="k"),
        spec("fw", expected_s=120.0, locks=(LOCK,), is_irreversible=True),
    ),
    edges=(("plan", "say-yes"), ("say-yes", "net"), ("say-yes", "fw")),
)


def test_a_plan_in_numbers() -> None:
    found = summary(PLAN)

    assert (found["tasks"], found["dependencies"]) == (4, 3)
    assert found["waves"] == [["plan"], ["say-yes"], ["net", "fw"]]
    assert found["critical_path"] == {"seconds": 360.0, "tasks": ["plan", "say-yes", "net"]}
    assert found["locks"] == [
        {"resource": "acme/one-at-a-time", "capacity": 1, "tasks": ["net", "fw"]}
    ]
    assert (found["approvals"], found["irreversible"]) == (["say-yes"], ["fw"])
    assert found["regions"] == {"r": 4}
    assert found["runners"] == {"terraform": 2, "check": 1, "approval": 1}


@pytest.mark.parametrize(
    ("plan", "error"),
    [
        (replace(PLAN, tasks=(), edges=()), InvalidGraph),
        (replace(PLAN, edges=(("net", "fw"), ("fw", "net"))), CyclicGraph),
    ],
)
def test_what_would_be_refused_is_refused_in_a_dry_run(plan: Plan, error: type[Exception]) -> None:
    with pytest.raises(error):
        summary(plan)


def test_simulated_steps_take_their_expected_time_and_nothing_else() -> None:
    plan = simulated(PLAN, 0.5)

    assert [task.runner for task in plan.tasks] == ["simulate"] * 4
    assert [task.inputs["duration_s"] for task in plan.tasks] == [30, 0, 150, 60]
    assert {task.on_loss for task in plan.tasks} == {OnLoss.RETRY}
    assert {task.state_key for task in plan.tasks} == {""}
    assert (plan.edges, plan.tasks[2].locks) == (PLAN.edges, (LOCK,))


def test_some_steps_may_stay_real() -> None:
    plan = simulated(PLAN, 0, lambda task: task.runner == "terraform")

    assert plan.tasks[:2] == PLAN.tasks[:2]
    assert [task.inputs for task in plan.tasks[2:]] == [{"duration_s": 0}] * 2


def test_a_long_simulation_is_not_cut_off_by_its_cap() -> None:
    (task, *_) = simulated(PLAN, 1000).tasks

    assert task.cap_s >= 2 * task.inputs["duration_s"]


def test_a_zone_goes_everywhere_unless_told_and_is_at_home_in_its_first_region() -> None:
    everywhere = checked_zone(KNOWN, "z", "aws-soc2", [], [], "acme", NOON)
    told = checked_zone(KNOWN, "z", "aws-soc2", ["us-east-1", "eu-west"], [], "acme", NOON)

    assert everywhere.regions == ("eu-west", "us-east")
    assert plan_of(everywhere, KNOWN).home_region == "eu-west"
    assert plan_of(told, KNOWN).home_region == "us-east"
    assert {task.region for task in plan_of(told, KNOWN).tasks} == {"us-east", "eu-west"}


@pytest.mark.parametrize(
    ("type_name", "regions", "pairs", "error"),
    [
        ("aws-nothing", [], [], UnknownZoneType),
        ("aws-soc2", ["mars"], [], InvalidInput),
        ("aws-soc2", [], ["colour=red"], InvalidInput),
        ("aws-soc2", [], ["cidr"], InvalidInput),
    ],
)
def test_a_zone_that_could_not_be_planned_is_refused(
    type_name: str, regions: list[str], pairs: list[str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        checked_zone(KNOWN, "z", type_name, regions, pairs, "acme", NOON)


def test_a_zone_whose_region_is_gone_is_refused() -> None:
    zone = checked_zone(KNOWN, "z", "aws-soc2", ["us-east"], [], "acme", NOON)

    with pytest.raises(InvalidInput, match="us-east"):
        plan_of(zone, KNOWN[:1])
