"""Numbers that are not finite: neither store keeps them, so no plan may hold one."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from region_scheduler.admission.importers.graph import parsed
from region_scheduler.admission.rules import checked
from region_scheduler.domain.task import RetryPolicy
from region_scheduler.errors import InvalidGraph, InvalidInput
from tests.simulation.scenarios import a_plan, spec


@pytest.mark.parametrize("number", [inf, -inf, nan])
@pytest.mark.parametrize(
    "field", ["cap_s", "expected_s", "remaining_s", "delay_tolerance_s", "inputs", "retry"]
)
def test_a_number_that_is_not_finite_is_refused(field: str, number: float) -> None:
    values: dict[str, Any] = {"inputs": {"deep": [number]}, "retry": RetryPolicy(delay_s=number)}
    changed: dict[str, Any] = {field: values.get(field, number)}
    plan = a_plan([spec("a", **changed)])

    with pytest.raises(InvalidGraph, match="no finite number"):
        checked(plan)


def test_null_is_kept() -> None:
    assert checked(a_plan([spec("a", inputs={"nothing": None})])).order == ("a",)


@pytest.mark.parametrize("text", ["NaN", "1e999", "-1e999", '{"a": Infinity}'])
def test_a_document_with_such_a_number_is_not_json(text: str) -> None:
    with pytest.raises(InvalidInput):
        parsed(text.encode(), "graph")
