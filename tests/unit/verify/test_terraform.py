"""A state counts when it was applied and somebody made use of it, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from region_scheduler.domain.ids import RunId, TaskId
from region_scheduler.domain.task import Task, TaskSpec
from region_scheduler.verify.terraform import applied

NETWORK, FIREWALL = TaskId("tasks/run.1"), TaskId("tasks/run.2")
BEFORE = {FIREWALL: [NETWORK]}


def state(id_: str, *parents: str, serial: int = 3) -> dict[str, Any]:
    resource = {
        "mode": "managed",
        "type": "terraform_data",
        "instances": [{"attributes": {"output": {"id": id_, "parents": list(parents)}}}],
    }
    return {"serial": serial, "resources": [resource], "outputs": {"id": {"value": id_}}}


def task(id_: TaskId, state_key: str, outputs: dict[str, Any] | None = None) -> Task:
    spec = TaskSpec(name=id_, runner="x", region="r", allowed_regions=("r",), state_key=state_key)
    return Task(
        id=id_,
        run=RunId("run"),
        tenant="acme",
        spec=spec,
        needs=0,
        region="r",
        outputs=outputs or {},
    )


TASKS = [task(NETWORK, "a/network"), task(FIREWALL, "a/firewall")]


def test_a_state_whose_output_stands_in_a_dependents_state_counts() -> None:
    states = {"a/network": state("net-1"), "a/firewall": state("fw-1", "net-1")}

    assert applied(states, TASKS, BEFORE) == ["a/network"]


def test_a_state_whose_output_stands_in_a_dependents_outputs_counts() -> None:
    tasks = [TASKS[0], task(FIREWALL, "", {"of": ["net-1"]})]

    assert applied({"a/network": state("net-1")}, tasks, BEFORE) == ["a/network"]


@pytest.mark.parametrize(
    "network",
    [
        state("net-1", serial=0),
        {**state("net-1"), "resources": []},
        {**state("net-1"), "outputs": {}},
        {**state("net-1"), "outputs": {"id": {"value": "made-up"}}},
    ],
    ids=["never applied", "no resource", "no output", "an output that no resource gave"],
)
def test_a_state_that_shows_no_apply_does_not_count(network: dict[str, Any]) -> None:
    states = {"a/network": network, "a/firewall": state("fw-1", "net-1", "made-up")}

    assert applied(states, TASKS, BEFORE) == []


def test_an_output_that_nobody_reads_does_not_count() -> None:
    states = {"a/network": state("net-1"), "a/firewall": state("fw-1")}

    assert applied(states, TASKS, BEFORE) == []


def test_a_task_without_a_state_is_no_apply() -> None:
    assert applied({}, TASKS, BEFORE) == []


def test_a_key_that_two_tasks_share_counts_once() -> None:
    states = {"a/network": state("net-1"), "a/firewall": state("fw-1", "net-1")}
    third = task(TaskId("tasks/run.3"), "a/network")

    assert applied(states, [*TASKS, third], {FIREWALL: [NETWORK, third.id]}) == ["a/network"]
