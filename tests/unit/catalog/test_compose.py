"""Expansion: regions, barriers, residence, times, locks and what each runner is given."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from region_scheduler.catalog.compose import expand, multiply, zone_types
from region_scheduler.catalog.resolve import resolve
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.dag import Dag
from region_scheduler.domain.ids import zone_key
from region_scheduler.domain.task import Json, OnLoss, TaskSpec, WhenHolderLost
from region_scheduler.errors import InvalidInput

RESOLVED: dict[str, Any] = json.loads((Path(__file__).parent / "resolved_types.json").read_text())
REGIONS = ("eu-west", "us-east", "ap-south")
NAMES = sorted(RESOLVED)


def plan_of(
    name: str = "aws-pci_dss",
    regions: Sequence[str] = REGIONS,
    parameters: Mapping[str, Json] | None = None,
    home_region: str = "eu-west",
    serves: Mapping[str, str] | None = None,
) -> Plan:
    return expand(
        name,
        parameters or {},
        regions,
        zone="shop",
        tenant="acme",
        home_region=home_region,
        serves=serves,
    )


def tasks_of(plan: Plan) -> dict[str, TaskSpec]:
    return {task.name: task for task in plan.tasks}


def predecessors(plan: Plan, name: str) -> set[str]:
    return {before for before, after in plan.edges if after == name}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [1, 3])
def test_counts_waves_and_longest_path_are_those_worked_out_elsewhere(
    name: str, count: int
) -> None:
    stats = RESOLVED[name]["stats"]["1_region" if count == 1 else "3_regions"]

    plan = plan_of(name, REGIONS[:count])

    dag = Dag.checked([task.name for task in plan.tasks], plan.edges)
    assert len(plan.tasks) == stats["vertices"]
    assert len(plan.edges) == stats["edges"]
    assert len(dag.waves) == stats["waves"]
    assert max(map(len, dag.waves)) == stats["max_wave_width"]
    assert max(task.remaining_s for task in plan.tasks) == 60 * stats["critical_path_min_p50"]
    assert sum(task.expected_s for task in plan.tasks) == 60 * stats["serial_sum_min_p50"]


@given(name=st.sampled_from(NAMES), count=st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_edges_stay_in_the_region_or_wait_for_all_of_them(name: str, count: int) -> None:
    template = resolve(name)
    regions = [f"region-{n}" for n in range(count)]

    tasks, edges = multiply(template, regions)

    found = set(edges)
    assert len(found) == len(edges)
    for task, (step, region) in tasks.items():
        before = {first for first, then in found if then == task}
        assert {tasks[first][0].id for first in before} == {
            first for first, then in template.edges if then == step.id
        }
        for first in {tasks[one][0].id for one in before if tasks[one][0].is_per_region}:
            here = {one for one in before if tasks[one][0].id == first}
            wanted = [region] if step.is_per_region else regions
            assert here == {f"{first}@{word}" for word in wanted}


def test_a_step_that_runs_once_is_a_barrier_over_the_regions_before_it() -> None:
    plan = plan_of()

    assert predecessors(plan, "aws.log-buckets") == {f"aws.kms-keys@{r}" for r in REGIONS}
    assert predecessors(plan, "aws.kms-keys@us-east") == {"aws.bootstrap-region@us-east"}
    assert predecessors(plan, "aws.bootstrap-region@ap-south") == {"aws.ou-tree"}


def test_per_region_tasks_are_pinned_and_all_may_go_to_every_region_of_the_zone() -> None:
    tasks = tasks_of(plan_of(home_region="us-east"))

    regional, once = tasks["aws.tgw@ap-south"], tasks["aws.ou-tree"]
    assert regional.region == "ap-south"
    assert (regional.is_pinned, regional.target_region) == (True, "ap-south")
    assert (once.region, once.is_pinned, once.target_region) == ("us-east", False, "")
    for task in (regional, once):
        assert task.allowed_regions == ("us-east", "eu-west", "ap-south")


def test_a_target_region_runs_where_it_is_served_else_at_home() -> None:
    serves = {"eu-west-1": "eu-west", "eu-central-1": "eu-west", "us-east-1": "us-east"}
    words = ("eu-central-1", "us-east-1", "ap-south-1", "us-east")

    plan = plan_of(regions=words, serves=serves, home_region="us-east")

    tasks = tasks_of(plan)
    ran = {word: tasks[f"aws.tgw@{word}"].region for word in words}
    assert ran == {
        "eu-central-1": "eu-west",
        "us-east-1": "us-east",
        "ap-south-1": "us-east",
        "us-east": "us-east",
    }
    assert tasks["aws.tgw@ap-south-1"].target_region == "ap-south-1"
    assert plan.regions == ("us-east", "eu-west")


def test_locks_carry_their_scope_their_region_and_their_capacity() -> None:
    tasks = tasks_of(plan_of())

    tgw = {lock.resource: lock for lock in tasks["aws.tgw@us-east"].locks}
    assert set(tgw) == {"acme/aws:tgw@us-east", "tfstate:acme/shop/aws.tgw@us-east"}
    assert tgw["tfstate:acme/shop/aws.tgw@us-east"].when_holder_lost is WhenHolderLost.KEEP
    assert tgw["acme/aws:tgw@us-east"].when_holder_lost is WhenHolderLost.FREE
    vended = tasks["aws.workload-account"].locks
    assert [(lock.resource, lock.capacity) for lock in vended] == [("acme/aws:account-factory", 5)]


def test_locks_of_two_tenants_organisations_or_zones_are_apart() -> None:
    named = {
        lock.resource
        for task in plan_of(parameters={"organisation": "acme-labs"}).tasks
        for lock in task.locks
    }

    assert "acme/acme-labs/aws:organizations" in named
    assert "acme/ipam:global" in named
    assert "acme/shop/tfstate:aws/securityhub" in tasks_lock(plan_of("aws-nist80053"))
    assert {name.removeprefix("tfstate:").split("/")[0] for name in named} == {"acme"}


def tasks_lock(plan: Plan) -> set[str]:
    return {lock.resource for task in plan.tasks for lock in task.locks}


@pytest.mark.parametrize("name", NAMES)
def test_each_terraform_task_has_a_state_of_its_own_and_holds_it(name: str) -> None:
    plan = plan_of(name)

    states = {task.state_key: task for task in plan.tasks if task.runner == "terraform"}
    assert len(states) == sum(task.runner == "terraform" for task in plan.tasks)
    for key, task in states.items():
        assert key == f"acme/shop/{task.step}@{task.target_region or 'global'}"
        assert f"tfstate:{key}" in {lock.resource for lock in task.locks}
    assert {task.state_key for task in plan.tasks if task.runner != "terraform"} == {""}


@pytest.mark.parametrize("name", NAMES)
def test_every_task_can_be_admitted_as_it_is(name: str) -> None:
    plan = plan_of(name, parameters={"overlays": ["gdpr"]})

    assert json.loads(json.dumps([dict(task.inputs) for task in plan.tasks]))
    for task in plan.tasks:
        assert task.region in task.allowed_regions
        assert task.expected_s > 0
        assert task.cap_s >= 3 * task.expected_s
        assert task.delay_tolerance_s >= 60
        assert task.retry.limit == 3
        assert len({lock.resource for lock in task.locks}) == len(task.locks)


def test_the_longest_path_alone_tolerates_no_more_than_the_least_delay() -> None:
    plan = plan_of()
    tasks = tasks_of(plan)
    weight = {name: task.expected_s for name, task in tasks.items()}
    dag = Dag.checked(tasks, plan.edges)

    assert {tasks[name].delay_tolerance_s for name in dag.critical_path(weight)} == {60.0}
    # Late by all it tolerates beyond the least, a task would be on a longest path itself.
    for name in ("aws.budget-tags", "pci.key-ceremony", "aws.tgw-peering"):
        late = {**weight, name: weight[name] + tasks[name].delay_tolerance_s - 60}
        assert name in set(late_path(dag, late))


def late_path(dag: Dag, weight: Mapping[str, float]) -> list[str]:
    remaining = dag.remaining(weight)
    whole = max(remaining.values())
    start: dict[str, float] = {}
    for name in dag.order:
        start[name] = max((start[p] + weight[p] for p in dag.before[name]), default=0.0)
    return [name for name in dag.order if start[name] + remaining[name] == whole]


@pytest.mark.parametrize(
    ("name", "task", "runner", "on_loss"),
    [
        ("aws-pci_dss", "aws.ou-tree", "terraform", OnLoss.INSPECT),
        ("aws-pci_dss", "aws.ct-landing-zone", "command", OnLoss.INSPECT),
        ("aws-pci_dss", "aws.quota-raise", "external-wait", OnLoss.RETRY),
        ("aws-pci_dss", "c.change-approval", "approval", OnLoss.RETRY),
        ("aws-pci_dss", "c.cidr-reserve", "command", OnLoss.RETRY),
        ("aws-pci_dss", "pci.evidence", "command", OnLoss.RETRY),
        ("aws-pci_dss", "aws.cis-scan", "check", OnLoss.RETRY),
        ("aws-pci_dss", "aws.cis-gate", "check", OnLoss.RETRY),
        ("aws-pci_dss", "aws.ct-prereqs", "check", OnLoss.RETRY),
        ("azure-soc2", "az.mg-settle", "verify", OnLoss.RETRY),
    ],
)
def test_each_kind_has_its_runner_and_what_follows_a_loss(
    name: str, task: str, runner: str, on_loss: OnLoss
) -> None:
    spec = tasks_of(plan_of(name))[task]

    assert (spec.runner, spec.on_loss) == (runner, on_loss)


def test_runners_get_what_they_need() -> None:
    tasks = tasks_of(plan_of())

    applied = tasks["aws.tgw@us-east"].inputs
    assert applied["module"] == "catalog:network"
    assert applied["variables"]["step"] == "aws.tgw"
    assert applied["variables"]["inputs"]["region"] == "us-east"
    vended = tasks["aws.workload-account"].inputs
    assert vended["argv"][:2] == ["{python}", "-m"]
    assert vended["verify"]["argv"] == [*vended["argv"], "--poll"]
    assert vended["verify"]["timeout_s"] == tasks["aws.workload-account"].cap_s
    assert tasks["c.signoff"].inputs["question"].endswith("(zone shop)")
    assert tasks["aws.quota-raise"].inputs["event"] == "aws.quota-raise"
    residency = tasks["c.residency-check"].inputs["assertions"]
    assert residency[0] == {"path": "/inputs/regions", "op": "subset", "value": list(REGIONS)}
    assert residency[1] == {"path": "/upstream/c.request-validate", "op": "present"}
    polled = tasks_of(plan_of("azure-soc2"))["az.mg-settle"].inputs
    assert set(polled) >= {"argv", "every_s", "timeout_s"}


def test_a_step_that_needs_an_approval_besides_its_work_carries_the_question() -> None:
    tasks = tasks_of(plan_of("gcp-soc2"))

    assert {name for name, task in tasks.items() if "approval" in task.inputs} == {
        "gcp.bootstrap-iam",
        "gcp.perimeter-enforce",
    }


def test_the_same_request_gives_the_same_plan() -> None:
    assert plan_of("gcp-hipaa") == plan_of("gcp-hipaa")
    plan = plan_of("gcp-hipaa")
    assert (plan.name, plan.zone, plan.tenant) == ("shop", zone_key("acme", "shop"), "acme")
    assert (plan.zone_type, plan.home_region) == ("gcp-hipaa", "eu-west")


@pytest.mark.parametrize(
    ("regions", "value", "way_out"),
    [
        ([], "", "name 1 to 64 target regions"),
        ("eu-west", "e,u,-,w,e,s,t", "name 1 to 64 target regions"),
        ([f"r{n}" for n in range(65)], "r0,r1", "name 1 to 64 target regions"),
        (["eu-west", "eu-west"], "eu-west", "name each region once"),
        (["EU West"], "EU West", "small letters, digits and single dashes"),
        (["eu--west"], "eu--west", "small letters, digits and single dashes"),
        (["eu-west\n"], "eu-west\n", "small letters, digits and single dashes"),
        ([""], "", "small letters, digits and single dashes"),
        (["eu-wst"], "eu-wst", "one that is served here (ap-south, eu-west, us-east)"),
        (["westeurope"], "westeurope", "or a region of Amazon Web Services, such as eu-west-1"),
    ],
)
def test_region_words_are_refused_with_the_way_out(
    regions: Sequence[str], value: str, way_out: str
) -> None:
    serves = {name: name for name in REGIONS}

    with pytest.raises(InvalidInput) as refused:
        plan_of(regions=regions, serves=serves)

    assert refused.value.field == "regions"
    assert refused.value.value.startswith(value)
    assert way_out in refused.value.expected


def test_each_cloud_knows_its_own_region_names() -> None:
    words = {"aws": "ap-southeast-1", "azure": "southeastasia", "gcp": "asia-southeast1"}
    for of_type in zone_types():
        plan = plan_of(of_type.id, [words[of_type.cloud]], serves={})
        assert plan.regions == ("eu-west",)


def test_regions_outside_the_residency_are_refused() -> None:
    with pytest.raises(InvalidInput, match="residency allows only eu-west") as refused:
        plan_of(parameters={"residency": "eu-west"})

    assert (refused.value.field, refused.value.value) == ("regions", "us-east")


@pytest.mark.parametrize("bad", ["", "a/b", "..", "-x", "x" * 64, "Zürich", "a b", "a\n"])
def test_names_that_cannot_stand_in_a_state_key_are_refused(bad: str) -> None:
    for field in ("zone", "tenant"):
        names = {"zone": "shop", "tenant": "acme", field: bad}
        with pytest.raises(InvalidInput) as refused:
            expand(
                "aws-soc2",
                {},
                ["eu-west"],
                zone=names["zone"],
                tenant=names["tenant"],
                home_region="eu-west",
            )
        assert (refused.value.field, refused.value.value) == (field, bad)
