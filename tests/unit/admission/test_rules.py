"""What admission refuses whatever made the plan, and how it names the place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from region_scheduler.admission.rules import checked, id_problem, value_problem
from region_scheduler.domain.limits import LIMITS, Limits
from region_scheduler.domain.task import LockNeed
from region_scheduler.errors import InvalidGraph
from tests.simulation.scenarios import a_plan, spec

CONDITION = {"path": "/upstream/a/x", "op": "present"}


def told(plan: Any, limits: Limits = LIMITS, **more: Any) -> str:
    with pytest.raises(InvalidGraph) as refused:
        checked(plan, limits, **more)
    return str(refused.value)


@pytest.mark.parametrize(
    ("task", "text"),
    [
        (spec("x" * 1_025), "takes 1025 bytes, at most 1024 (limit id_bytes_max)"),
        (spec("é" * 513), "takes 1026 bytes"),
        (spec(""), "is empty"),
        (spec("a\0b"), "holds the character NUL"),
        (spec("a\ud800"), "half of a surrogate pair"),
        (spec("a", purpose="\0"), "'a' holds the character NUL"),
        (spec("a", inputs={"x": [{"y\0": 1}]}), "holds the character NUL in [1].'x'[0].'y\\x00'"),
        (spec("a", inputs={"x": "\udfff"}), "half of a surrogate pair in [1].'x'"),
        (spec("a", inputs={"x": 2**64}), "is no JSON"),
        (spec("a", inputs={"x": "y" * 300_000}), "limit task_bytes_max"),
        (spec("a", runner="terrafrom"), "'a' names runner 'terrafrom'; there are approval,"),
        (spec("a", "mars"), "would run in 'mars', which residency forbids"),
        (
            spec("a", allowed_regions=("eu-west", "mars")),
            "may run in 'mars', which the run may not",
        ),
    ],
)
def test_a_task_that_could_not_be_kept_or_run_is_named(task: Any, text: str) -> None:
    assert text in told(a_plan([task]))


@pytest.mark.parametrize(
    "name", ["x" * 1_024, "é" * 512, "👩‍🚀", "a b(*){}@+#:\\,'\"", "\ud83d\udc69".encode(
        "utf-16", "surrogatepass").decode("utf-16"), "literally \\u0000"]
)  # fmt: skip
def test_any_other_id_is_taken_as_it_is(name: str) -> None:
    assert checked(a_plan([spec(name, inputs={"text": name})])).order == (name,)


def test_all_problems_are_told_at_once_and_cut_short() -> None:
    text = told(a_plan([spec(f"t{n}", runner="x") for n in range(30)]))

    assert text.count("names runner") == 20
    assert text.endswith("and 10 more")


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (Limits(tasks_max=3), "it has 4 nodes, at most 3 (limit tasks_max)"),
        (Limits(edges_max=2), "it has 3 edges, at most 2 (limit edges_max)"),
        (Limits(depth_max=1), "its longest path has 2 tasks, at most 1 (limit depth_max)"),
        (
            Limits(predecessors_max=2),
            "'d' has 3 direct predecessors, at most 2 (limit predecessors_max)",
        ),
    ],
)
def test_each_limit_is_named(limits: Limits, text: str) -> None:
    plan = a_plan([spec(name) for name in "abcd"], "a>d", "b>d", "c>d")

    assert text in told(plan, limits)
    checked(plan, Limits(tasks_max=4, edges_max=3, depth_max=2, predecessors_max=3))


def test_a_limit_below_one_is_none() -> None:
    with pytest.raises(ValueError, match="depth_max"):
        Limits(depth_max=0)


def test_an_edge_twice_would_not_be_counted_twice() -> None:
    assert "edge 'a' -> 'b' occurs twice" in told(a_plan([spec("a"), spec("b")], "a>b", "a>b"))


def test_what_exists_decides_over_what_a_task_says() -> None:
    plan = a_plan([spec("a", locks=(LockNeed("x", capacity=5, units=3),))])

    checked(plan)
    assert "takes 3 units of 'x', which has 2" in told(plan, capacities={"x": 2})


def test_places_of_edges_are_told() -> None:
    plan = a_plan([spec("a")], "a>z")

    assert "which is no node (main.tf:7)" in told(plan, places={("a", "z"): "main.tf:7"})


@pytest.mark.parametrize(
    ("assertion", "text"),
    [
        ({**CONDITION, "path": "/upstream/z/x"}, "looks at 'z', which is no direct predecessor"),
        ({**CONDITION, "path": "/upstream/b/x"}, "looks at 'b', which is no direct predecessor"),
        ({**CONDITION, "path": "/inputs/x"}, "must have a path like"),
        ({**CONDITION, "path": 3}, "must have a path like"),
        ({**CONDITION, "op": "matches", "value": "(a+)+$"}, "only a check may use"),
        ({**CONDITION, "op": "like"}, "has op 'like'"),
        ({**CONDITION, "op": "eq"}, "needs a value"),
        ({**CONDITION, "value": 1}, "takes none"),
        ({**CONDITION, "vaule": 1}, "is no assertion of path, op and value"),
    ],
)
def test_a_condition_must_make_sense_over_direct_predecessors(
    assertion: dict[str, Any], text: str
) -> None:
    last = replace(spec("c"), condition=(CONDITION | {"path": "/upstream/b"}, assertion))
    wrong = a_plan([spec("b"), spec("a"), last], "b>a", "a>c", "b>c")
    if "'b'" in text:
        last = replace(last, condition=(assertion,))
        wrong = a_plan([spec("b"), spec("a"), last], "b>a", "a>c")

    assert text in told(wrong)


@pytest.mark.parametrize("name", ["a/b", "a~b", "a~1b", "~/"])
def test_a_condition_names_any_predecessor_as_a_pointer_does(name: str) -> None:
    token = name.replace("~", "~0").replace("/", "~1")
    last = replace(spec("z"), condition=({"path": f"/upstream/{token}/x", "op": "present"},))

    assert checked(a_plan([spec(name), last], f"{name}>z")).order == (name, "z")


def test_values_are_measured_as_json() -> None:
    assert value_problem({"a": "é"}, 10) == ""
    assert "takes 10 bytes, at most 9" in value_problem({"a": "é"}, 9)
    assert id_problem("a", LIMITS) == ""
