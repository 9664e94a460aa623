"""The submission form: the parser, the JSON Schema and the page say the same."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from region_scheduler.admission.importers import node as node_form
from region_scheduler.admission.importers.graph import (
    TOP_KEYS,
    GraphOptions,
    found_in,
    parsed,
    plan_of_graph,
)
from region_scheduler.admission.rules import RUNNERS
from region_scheduler.catalog.assertions import OPS
from region_scheduler.domain.limits import LIMITS, Limits
from region_scheduler.domain.task import LockNeed, OnLoss, RetryPolicy, WhenHolderLost
from region_scheduler.errors import InvalidGraph, InvalidInput, Rejected
from region_scheduler.worker.runners import registry
from tests.unit.admission.importers.forms import GRAPHS, OPTIONS, a_document, a_node, admissible

SCHEMA: dict[str, Any] = json.loads(
    (resources.files("region_scheduler.admission.importers") / "submission.schema.json").read_text()
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
PAGE = (Path(__file__).parents[4] / "docs" / "submission-schema.md").read_text()
IS_BIG = {"path": "/upstream/a/size", "op": "ge", "value": 10}
FULL = a_document(
    a_node("a"),
    a_node(
        "b é\\,'\"(*){} 👩‍🚀",
        purpose="Make it.",
        labels={"team": "net"},
        runner="terraform",
        inputs={"module": "x", "variables": {"n": [1, 2.5, None, True]}},
        region="us-east-1",
        regions=["us-east"],
        pool="big",
        locks=[{"resource": "acme/x", "capacity": 3, "units": 2, "when_holder_lost": "keep"}],
        retry={"limit": 1, "delay_s": 0.5, "losses_limit": 2, "inspections_limit": 0},
        priority=7,
        delay_tolerance_s=60,
        on_loss="hold",
        cap_s=10,
        runtime_s=4,
        is_irreversible=True,
        is_resident=True,
        condition=[IS_BIG, {"path": "/upstream/a/x~1y/0", "op": "present"}],
    ),
    edges=[("a", "b é\\,'\"(*){} 👩‍🚀")],
    source="s",
    licence="MIT",
    kind="k",
    notes="n",
    dangling_edges=[["x", "a"]],
    unresolved=[["local.x", "a"]],
    oddities=[["a", "odd"]],
    module_paths={"a": "m"},
)


def test_a_full_node_becomes_a_task_with_all_of_it() -> None:
    task = admissible(FULL).tasks[1]

    assert task.name == "b é\\,'\"(*){} 👩‍🚀"
    assert (task.region, task.allowed_regions, task.is_pinned) == ("us-east", ("us-east",), True)
    assert (task.target_region, task.pool, task.runner) == ("us-east-1", "big", "terraform")
    assert task.locks == (LockNeed("acme/x", 3, 2, WhenHolderLost.KEEP),)
    assert task.retry == RetryPolicy(1, 0.5, 2, 0)
    assert (task.priority, task.delay_tolerance_s, task.on_loss) == (7, 60.0, OnLoss.HOLD)
    assert (task.cap_s, task.expected_s, task.is_irreversible) == (10.0, 4.0, True)
    assert task.is_resident
    assert task.condition[0] == IS_BIG


def test_what_a_node_does_not_say_has_the_defaults_of_the_page() -> None:
    (task,) = admissible(a_document({"id": "a", "runner": "command"})).tasks

    assert (task.region, task.allowed_regions) == ("eu-west", ("eu-west", "us-east"))
    assert (task.pool, task.retry, task.cap_s) == ("default", RetryPolicy(3, 30.0, 5, 5), 3600.0)
    assert (task.on_loss, task.is_pinned, task.condition) == (OnLoss.INSPECT, False, ())


# Where in FULL, what to put there, the place that the refusal names.
BAD: list[tuple[list[Any], Any, str]] = [
    (["nmae"], "x", "graph.nmae"),
    (["name"], "", "name"),
    (["name"], 3, "name"),
    (["nodes"], {}, "nodes"),
    (["nodes"], [], "no nodes"),
    (["edges"], None, "edges"),
    (["edges", 0], ["a"], "edges[0]"),
    (["edges", 0], "ab", "edges[0]"),
    (["edges", 0], ["a", 1], "edges[0]"),
    (["dangling_edges"], [["a"]], "dangling_edges[0]"),
    (["unresolved"], [1], "unresolved[0]"),
    (["notes"], 1, "notes"),
    (["source"], [], "source"),
    (["kind"], 1, "kind"),
    (["nodes", 1], "a", "nodes[1]"),
    (["nodes", 1, "id"], "", "nodes[1].id"),
    (["nodes", 1, "id"], 5, "nodes[1].id"),
    (["nodes", 1, "after"], ["a"], "nodes[1].after"),
    (["nodes", 1, "purpose"], 1, "nodes[1].purpose"),
    (["nodes", 1, "labels"], [], "nodes[1].labels"),
    (["nodes", 1, "labels", "x"], 1, "nodes[1].labels.x"),
    (["nodes", 1, "runner"], 1, "nodes[1].runner"),
    (["nodes", 1, "runner"], "nothing", "nodes[1].runner"),
    (["nodes", 1, "inputs"], [], "nodes[1].inputs"),
    (["nodes", 1, "region"], 1, "nodes[1].region"),
    (["nodes", 1, "regions"], "us-east", "nodes[1].regions"),
    (["nodes", 1, "regions"], [], "nodes[1].regions"),
    (["nodes", 1, "regions"], [""], "nodes[1].regions[0]"),
    (["nodes", 1, "pool"], "", "nodes[1].pool"),
    (["nodes", 1, "pool"], "Not/a pool", "nodes[1].pool"),
    (["nodes", 1, "locks"], {}, "nodes[1].locks"),
    (["nodes", 1, "locks", 0], "x", "nodes[1].locks[0]"),
    (["nodes", 1, "locks", 0, "resource"], "", "nodes[1].locks[0].resource"),
    (["nodes", 1, "locks", 0, "capcity"], 1, "nodes[1].locks[0].capcity"),
    (["nodes", 1, "locks", 0, "capacity"], 0, "nodes[1].locks[0].capacity"),
    (["nodes", 1, "locks", 0, "capacity"], True, "nodes[1].locks[0].capacity"),
    (["nodes", 1, "locks", 0, "units"], 1.5, "nodes[1].locks[0].units"),
    (["nodes", 1, "locks", 0, "when_holder_lost"], "x", "nodes[1].locks[0].when_holder_lost"),
    (["nodes", 1, "retry"], 3, "nodes[1].retry"),
    (["nodes", 1, "retry", "limit"], -1, "nodes[1].retry.limit"),
    (["nodes", 1, "retry", "max"], 1, "nodes[1].retry.max"),
    (["nodes", 1, "retry", "delay_s"], "1", "nodes[1].retry.delay_s"),
    (["nodes", 1, "priority"], 1.5, "nodes[1].priority"),
    (["nodes", 1, "priority"], 2**54, "nodes[1].priority"),
    (["nodes", 1, "delay_tolerance_s"], -1, "nodes[1].delay_tolerance_s"),
    (["nodes", 1, "delay_tolerance_s"], 2e9, "nodes[1].delay_tolerance_s"),
    (["nodes", 1, "cap_s"], 2e9, "nodes[1].cap_s"),
    (["nodes", 1, "on_loss"], "ignore", "nodes[1].on_loss"),
    (["nodes", 1, "cap_s"], 0, "nodes[1].cap_s"),
    (["nodes", 1, "runtime_s"], "4", "nodes[1].runtime_s"),
    (["nodes", 1, "runtime_s"], True, "nodes[1].runtime_s"),
    (["nodes", 1, "is_irreversible"], 1, "nodes[1].is_irreversible"),
    (["nodes", 1, "condition"], {}, "nodes[1].condition"),
    (["nodes", 1, "condition", 0], "x", "nodes[1].condition[0]"),
    (["nodes", 1, "condition", 0, "pth"], "x", "nodes[1].condition[0].pth"),
    (["nodes", 1, "condition", 0, "path"], "/inputs/x", "condition[0]"),
    (["nodes", 1, "condition", 0, "path"], 1, "condition[0]"),
    (["nodes", 1, "condition", 0, "op"], "matches", "condition[0]"),
    (["nodes", 1, "condition", 0, "op"], "almost", "condition[0]"),
    (["nodes", 1, "condition", 1, "value"], 1, "condition[1]"),
]


def changed(path: list[Any], value: Any) -> Any:
    document = copy.deepcopy(FULL)
    at = document
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return document


@pytest.mark.parametrize(("path", "value", "place"), BAD, ids=lambda part: str(part)[:60])
def test_the_parser_and_the_schema_refuse_the_same(path: list[Any], value: Any, place: str) -> None:
    document = changed(path, value)

    assert not VALIDATOR.is_valid(document)
    with pytest.raises(Rejected) as refused:
        admissible(document)
    assert place in str(refused.value)


@pytest.mark.parametrize(
    ("path", "key"),
    [([], "name"), ([], "nodes"), ([], "edges"), (["nodes", 1], "id"),
     (["nodes", 1, "locks", 0], "resource"), (["nodes", 1, "condition", 0], "path"),
     (["nodes", 1, "condition", 0], "op"), (["nodes", 1, "condition", 0], "value")],
)  # fmt: skip
def test_what_is_needed_is_missed_by_both(path: list[Any], key: str) -> None:
    document = copy.deepcopy(FULL)
    at: Any = document
    for step in path:
        at = at[step]
    del at[key]

    assert not VALIDATOR.is_valid(document)
    with pytest.raises(Rejected):
        admissible(document)


@pytest.mark.parametrize("key", ["priority", "cap_s", "locks", "condition", "retry", "labels"])
def test_what_may_be_left_out_is_missed_by_neither(key: str) -> None:
    document = copy.deepcopy(FULL)
    del document["nodes"][1][key]

    VALIDATOR.validate(document)
    admissible(document)


@pytest.mark.parametrize("path", sorted(GRAPHS.glob("*.json")), ids=lambda path: path.stem)
def test_the_schema_takes_every_given_graph(path: Path) -> None:
    VALIDATOR.validate(json.loads(path.read_text()))


def test_the_schema_is_one_and_takes_the_full_document() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    VALIDATOR.validate(FULL)


def test_the_keys_are_the_same_everywhere() -> None:
    definitions = SCHEMA["$defs"]

    assert set(SCHEMA["properties"]) == TOP_KEYS
    assert set(definitions["node"]["properties"]) == node_form.NODE_KEYS
    assert set(definitions["lock"]["properties"]) == node_form.LOCK_KEYS
    assert set(definitions["retry"]["properties"]) == node_form.RETRY_KEYS
    assert set(definitions["assertion"]["properties"]) == node_form.ASSERTION_KEYS
    assert set(definitions["assertion"]["properties"]["op"]["enum"]) == OPS - {"matches"}
    for key in TOP_KEYS | node_form.NODE_KEYS | node_form.LOCK_KEYS | node_form.RETRY_KEYS:
        assert f"`{key}`" in PAGE


def test_the_page_tells_every_limit_and_runner() -> None:
    assert set(registry.RUNNERS) | {"terragrunt"} == RUNNERS
    for limit in fields(LIMITS):
        assert f"| `{limit.name}` | {getattr(LIMITS, limit.name):,} |" in PAGE
    for runner in RUNNERS:
        assert f"`{runner}`" in PAGE
        assert runner in SCHEMA["$defs"]["node"]["properties"]["runner"]["enum"]


def test_the_example_of_the_page_is_admissible() -> None:
    example = json.loads(PAGE.partition("```json\n")[2].partition("```")[0])

    VALIDATOR.validate(example)
    assert [task.name for task in admissible(example).tasks] == ["plan", "apply", "report"]


@pytest.mark.parametrize("body", [b"", b"{", b'{"a": NaN}', b'"\xff"', b'{"a": "\\ud800"}'])
def test_what_is_no_json_is_refused_with_its_place(body: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"x\.json: .* not JSON: line 1, column \d+"):
        parsed(body, "x.json")


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**30])
@pytest.mark.parametrize("depth", [1, 900])
def test_a_number_that_would_be_rounded_is_refused(number: int, depth: int) -> None:
    body = b'{"a":' * depth + str(number).encode() + b"}" * depth

    with pytest.raises(InvalidInput, match=rf"x\.json: '{number}' .* 64 bits"):
        parsed(body, "x.json")


def test_what_fits_into_64_bits_is_kept() -> None:
    body = b'[18446744073709551615, -9223372036854775808, 1.000000000000000000000001, "1%030d"]' % 0

    assert parsed(body, "x.json") == [2**64 - 1, -(2**63), 1.0, "1" + "0" * 30]


@pytest.mark.parametrize(("key", "value"), [("runner", "nothing"), ("on_loss", "ignore")])
def test_a_simulation_hides_no_mistake(key: str, value: str) -> None:
    simulated = replace(OPTIONS, is_simulated=True)

    with pytest.raises(InvalidInput, match=rf"nodes\[0\]\.{key}: '{value}'"):
        admissible(a_document(a_node(**{key: value})), simulated)


@pytest.mark.parametrize("tenant", ["", "X Y", "a/b", "\0", "x" * 1000])
def test_a_tenant_has_a_name_as_zones_demand(tenant: str) -> None:
    with pytest.raises(InvalidInput, match="tenant"):
        admissible(a_document(a_node("a")), replace(OPTIONS, tenant=tenant))


def test_json_of_any_depth_is_no_fault_of_ours() -> None:
    with pytest.raises(InvalidInput, match="not JSON"):
        parsed(b"[" * 1_000_000, "x.json")


def test_a_big_body_is_refused_before_it_is_read() -> None:
    with pytest.raises(InvalidInput, match="body_bytes_max"):
        parsed(b" " * 101, "x.json", Limits(body_bytes_max=100))


def test_numbers_must_be_finite() -> None:
    with pytest.raises(InvalidInput, match=r"nodes\[0\]\.runtime_s"):
        admissible(a_document(a_node(runtime_s=math.nan)))
    with pytest.raises(InvalidInput, match=r"nodes\[0\]\.cap_s"):
        admissible(a_document(a_node(cap_s=math.inf)))


def test_repeated_edges_are_kept_once() -> None:
    plan = admissible(a_document(a_node("a"), a_node("b"), edges=[("a", "b")] * 3))

    assert plan.edges == (("a", "b"),)


def test_a_region_that_residency_forbids_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"nodes\[0\]\.regions.*'mars'"):
        admissible(a_document(a_node(regions=["mars"])))
    with pytest.raises(InvalidInput, match=r"nodes\[0\]\.region: 'us-east-1'.*us-east serves it"):
        admissible(a_document(a_node(region="us-east-1", regions=["eu-west"])))


@pytest.mark.parametrize(
    ("node", "region"),
    [
        ({"region": "us-east-1"}, "us-east"),
        ({"region": "mars-north-1"}, "eu-west"),
        ({"region": "mars-north-1", "regions": ["us-east"]}, "us-east"),
        ({"regions": ["us-east", "eu-west"]}, "eu-west"),
    ],
)
def test_a_task_runs_where_its_target_is_served_or_else_at_home(
    node: dict[str, Any], region: str
) -> None:
    assert admissible(a_document(a_node(**node))).tasks[0].region == region


KNOWN = replace(OPTIONS, capacities=lambda names: {name: 4 for name in names if name == "x"})


def with_locks(*locks: dict[str, Any]) -> Any:
    return a_document(*(a_node(f"t{n}", locks=[lock]) for n, lock in enumerate(locks)))


def test_a_resource_must_be_known_or_given_its_capacity() -> None:
    with pytest.raises(InvalidInput, match=r"nodes\[0\]\.locks\[0\]\.resource: 'x'"):
        admissible(with_locks({"resource": "x"}))

    both = admissible(with_locks({"resource": "x"}, {"resource": "x", "capacity": 2}))
    assert [task.locks[0].capacity for task in both.tasks] == [2, 2]
    assert admissible(with_locks({"resource": "x"}), KNOWN).tasks[0].locks[0].capacity == 4


def test_what_exists_decides_over_what_a_graph_says() -> None:
    """An operator may have changed it since the graph was written."""
    lock = {"resource": "x", "capacity": 2, "units": 3}
    (task,) = admissible(with_locks(lock), KNOWN).tasks
    assert (task.locks[0].capacity, task.locks[0].units) == (4, 3)

    with pytest.raises(InvalidInput) as refused:
        admissible(with_locks({"resource": "y"} | lock | {"resource": "x", "units": 5}), KNOWN)

    assert refused.value.field == "nodes[0].locks[0].units"
    assert refused.value.expected == "x has 4 (`resources show`)"


def test_nobody_is_asked_for_what_a_graph_says_itself() -> None:
    def ask(_names: Sequence[str]) -> Mapping[str, int]:
        raise AssertionError("one unit fits whatever there is")

    admissible(with_locks({"resource": "x", "capacity": 1}), replace(OPTIONS, capacities=ask))


@pytest.mark.parametrize(
    "locks",
    [
        ({"resource": "x", "capacity": 2, "units": 3},),
        ({"resource": "x", "capacity": 2}, {"resource": "x", "units": 3}),
        ({"resource": "x", "capacity": 2}, {"resource": "x", "capacity": 3}),
    ],
)
def test_a_need_above_the_capacity_is_refused(locks: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(InvalidInput, match=r"locks\[0\].*x has \d"):
        admissible(with_locks(*locks))


def test_units_of_one_resource_are_added_up() -> None:
    lock = {"resource": "x", "capacity": 3, "units": 2}
    with pytest.raises(InvalidGraph, match="takes 4 units of 'x', which has 3"):
        admissible(a_document(a_node(locks=[lock, lock])))


def test_a_runner_is_needed_unless_it_is_simulated() -> None:
    document = a_document({"id": "a", "runtime_s": 3})
    with pytest.raises(InvalidInput, match=r"nodes\[0\]\.runner"):
        admissible(document)
    options = GraphOptions(
        tenant="t", home_region="r", regions=("r",), serves={}, is_simulated=True, time_scale=2
    )

    (task,) = plan_of_graph(document, options).tasks
    assert (task.runner, task.inputs) == ("simulate", {"duration_s": 6})


def test_places_count_in_what_was_found() -> None:
    found = found_in(a_document(a_node("a"), edges=[("a", "x"), ("a", "x"), ("a", "y")]))

    assert found.places[("a", "x")] == "edges[0]"
    assert found.places[("a", "y")] == "edges[2]"
