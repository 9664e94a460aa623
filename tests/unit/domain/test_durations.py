"""What is learned of durations, and what is expected with it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.domain.admission import Plan
from region_scheduler.domain.durations import (
    Durations,
    Figure,
    Sample,
    ends_in_s,
    expecting,
    figure_of,
    learned,
    path_left_s,
    step_key,
    updated,
    weighted,
)
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import TaskSpec
from tests.unit.domain.samples import AT, IN_STATE, a_spec, running

SECOND = timedelta(seconds=1)
NETWORK = step_key("terraform", "network")


def samples(*seconds: float, step: str = NETWORK) -> list[Sample]:
    return [Sample(step, AT, AT + s * SECOND) for s in seconds]


def a_step(name: str, region: str = "eu", **more: float) -> TaskSpec:
    return a_spec(name, runner="terraform", step="network", region=region, **more)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.floats(0, 1))
def test_a_quantile_is_one_of_the_values_and_rises(seconds: list[float], part: float) -> None:
    assert weighted(seconds, part) in seconds
    assert weighted(seconds, part) <= weighted(seconds, 1) == max(seconds)


def test_equal_ages_would_give_the_plain_median_and_newer_ones_count_more() -> None:
    assert weighted([5, 1, 9], 0.5) == 5
    # Twenty that took ten seconds long ago, and ten lately that took a minute.
    assert weighted([60.0] * 10 + [10.0] * 20, 0.5) == 60
    assert weighted([60.0] * 2 + [10.0] * 20, 0.5) == 10
    assert weighted([60.0] * 2 + [10.0] * 20, 0.9) == 60


def test_too_few_ends_teach_nothing_and_only_the_newest_count() -> None:
    assert learned(samples(1, 2)) == {}
    assert learned([*samples(3, 4, 5), *samples(9, step="other")]) == {NETWORK: Figure(4, 5, 3)}
    many = learned(samples(*[2.0] * 50, *[1000.0] * 500))
    assert many == {NETWORK: Figure(2, 2, 50)}


def test_a_clock_that_was_set_back_teaches_no_negative_time() -> None:
    assert learned(samples(-5, -5, -5)) == {NETWORK: Figure(0, 0, 3)}


def test_a_region_keeps_what_did_not_run_lately_and_writes_only_news() -> None:
    known = Durations(id="eu", figures={"a:b": Figure(1, 2, 9)}, at=AT)
    later = updated(known, {NETWORK: Figure(3, 4, 5)}, AT + SECOND)
    assert later.figures == {"a:b": Figure(1, 2, 9), NETWORK: Figure(3, 4, 5)}
    assert later.at == AT + SECOND
    assert updated(later, {NETWORK: Figure(3, 4, 5)}, AT + 9 * SECOND) is later


def test_there_is_a_bound_to_what_a_region_keeps() -> None:
    old = {f"a:{n}": Figure(1, 2, n) for n in range(2_000)}
    fresh = {NETWORK: Figure(3, 4, 3)}
    kept = updated(Durations(id="eu", figures=old, at=AT), fresh, AT).figures
    assert len(kept) == 2_000
    assert [name in kept for name in (NETWORK, "a:0", "a:1999")] == [True, False, True]


def test_a_plan_expects_what_was_learned_where_it_was_and_what_is_declared_elsewhere() -> None:
    known = {"eu": Durations(id="eu", figures={NETWORK: Figure(40, 90, 9)}, at=AT)}
    tasks = (
        a_step("a", expected_s=10, remaining_s=30),
        a_step("b", region="us", expected_s=10, remaining_s=20),
        a_spec("c", expected_s=10, remaining_s=10),
    )
    plan = Plan(
        name="p", tenant="acme", home_region="eu", regions=("eu",), tasks=tasks,
        edges=(("a", "b"), ("b", "c")),
    )  # fmt: skip

    found = expecting(plan, known)
    assert [(t.expected_s, t.remaining_s) for t in found.tasks] == [(40, 60), (10, 20), (10, 10)]
    assert expecting(plan, {}) is plan
    assert figure_of(known, tasks[0], "us") is None
    assert figure_of(known, a_spec("c", step="network"), "eu") is None, "another runner"


def test_what_is_left_of_a_path_shrinks_while_a_task_runs() -> None:
    task = replace(running(), spec=a_spec("a", expected_s=10.0, remaining_s=30.0))
    lefts = [path_left_s(task, AT + n * SECOND) for n in (0, 4, 99)]
    assert lefts == [30, 26, 20]
    assert path_left_s(IN_STATE[TaskState.DONE](), AT) == 0


@pytest.mark.parametrize(
    "state", [TaskState.FAILED, TaskState.CANCELLED, TaskState.AWAITING], ids=str
)
def test_a_run_that_waits_for_somebody_has_no_end_in_sight(state: TaskState) -> None:
    assert ends_in_s([running(), IN_STATE[state]()], AT) is None
    task = replace(running(), spec=a_spec("a", expected_s=10.0, remaining_s=30.0))
    assert ends_in_s([task, IN_STATE[TaskState.DONE]()], AT) == 30
