"""What a check asserts, and that it can fail."""

from __future__ import annotations

from typing import Any

import pytest

from region_scheduler.catalog.assertions import failures
from region_scheduler.catalog.compose import expand, zone_types
from region_scheduler.domain.dag import Dag

DOCUMENT = {
    "inputs": {"regions": ["eu-west", "us-east"], "tier": "production", "count": 3, "no": None},
    "upstream": {"aws.tgw@eu-west": {"id": "network-1"}, "odd/~name": {"id": "x"}},
}


def assertion(path: str, op: str, value: object = None) -> dict[str, object]:
    return {"path": path, "op": op, "value": value}


@pytest.mark.parametrize(
    ("path", "op", "value"),
    [
        ("/inputs/tier", "present", None),
        ("/inputs/no", "present", None),
        ("/inputs/no", "eq", None),
        ("/inputs/tier", "eq", "production"),
        ("/inputs/tier", "ne", "sandbox"),
        ("/inputs/tier", "in", ["production", "staging"]),
        ("/inputs/regions", "subset", ["ap-south", "us-east", "eu-west"]),
        ("/inputs/regions/1", "eq", "us-east"),
        ("/inputs/count", "le", 3),
        ("/inputs/count", "ge", 3),
        ("/inputs/tier", "matches", "^prod"),
        ("/upstream/aws.tgw@eu-west/id", "eq", "network-1"),
        ("/upstream/odd~1~0name/id", "eq", "x"),
    ],
)
def test_it_holds(path: str, op: str, value: object) -> None:
    assert failures([assertion(path, op, value)], DOCUMENT) == []


@pytest.mark.parametrize(
    ("path", "op", "value", "reason"),
    [
        ("/inputs/nothing", "present", None, "is missing"),
        ("/inputs/nothing", "ne", "x", "is missing"),
        ("/inputs/regions/2", "present", None, "is missing"),
        ("/inputs/regions/-1", "present", None, "is missing"),
        ("/upstream/aws.tgw@us-east", "present", None, "is missing"),
        ("/inputs/tier", "eq", "sandbox", "is 'production', expected eq 'sandbox'"),
        ("/inputs/tier", "ne", "production", "expected ne"),
        ("/inputs/tier", "in", ["staging"], "expected in"),
        ("/inputs/regions", "subset", ["eu-west"], "expected subset"),
        ("/inputs/count", "le", 2, "is 3, expected le 2"),
        ("/inputs/count", "ge", 4, "is 3, expected ge 4"),
        ("/inputs/count", "le", "many", "expected le"),
        ("/inputs/count", "matches", "3", "expected matches"),
        ("/inputs/tier", "resembles", "production", "expected resembles"),
    ],
)
def test_it_fails_and_says_why(path: str, op: str, value: object, reason: str) -> None:
    (failure,) = failures([assertion(path, op, value)], DOCUMENT)

    assert failure.path == path
    assert reason in failure.reason


def test_every_check_of_every_type_passes_when_all_went_well_and_fails_when_one_did_not() -> None:
    checked = 0
    for of_type in zone_types():
        plan = expand(
            of_type.id, {"overlays": ["gdpr"]}, ["eu-west", "us-east"],
            zone="shop", tenant="acme", home_region="eu-west",
        )  # fmt: skip
        dag = Dag.checked([task.name for task in plan.tasks], plan.edges)
        for task in plan.tasks:
            if task.runner != "check":
                continue
            upstream: dict[str, Any] = {name: {} for name in dag.before[task.name]}
            document = {"inputs": task.inputs, "upstream": upstream}
            assert failures(task.inputs["assertions"], document) == []
            for name in upstream:
                others: dict[str, Any] = {other: {} for other in upstream if other != name}
                less = {"inputs": task.inputs, "upstream": others}
                assert [f.path for f in failures(task.inputs["assertions"], less)] == [
                    f"/upstream/{name}"
                ]
            checked += 1
    assert checked > 18 * 5


def test_the_residency_check_fails_for_a_region_outside() -> None:
    plan = expand(
        "aws-mas_trm", {}, ["ap-south"], zone="shop", tenant="acme", home_region="ap-south"
    )
    task = next(task for task in plan.tasks if task.name == "c.residency-check")
    inputs = {**task.inputs, "regions": ["ap-south", "us-east"]}

    found = failures(
        task.inputs["assertions"], {"inputs": inputs, "upstream": {"c.request-validate": {}}}
    )

    assert [failure.path for failure in found] == ["/inputs/regions"]
