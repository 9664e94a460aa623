"""How long a run goes on is counted from first sight, round by round."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from region_scheduler.domain.ids import RunId
from region_scheduler.domain.run import Run
from region_scheduler.scheduling.deadlines import Deadlines
from tests.unit.domain.samples import AT


def a_run(id_: str, deadline_s: float | None = 10.0, **more: Any) -> Run:
    return Run(
        id=RunId(id_),
        tenant="acme",
        name=id_,
        home_region="eu",
        regions=("eu",),
        task_count=1,
        edge_count=0,
        digest="",
        created_at=AT,
        deadline_s=deadline_s,
        **more,
    )


def test_a_run_is_over_when_it_was_seen_for_its_deadline() -> None:
    deadlines, run, free = Deadlines(), a_run("a"), a_run("b", None)

    assert deadlines.over([run, free], 1000.0) == []
    assert deadlines.over([run, free], 1009.9) == []
    assert deadlines.over([run, free], 1010.0) == [run]
    assert deadlines.over([run, free], 9999.0) == [run]


def test_the_next_round_and_the_next_judge_count_anew() -> None:
    deadlines, run = Deadlines(), a_run("a")
    deadlines.over([run], 0.0)

    assert deadlines.over([replace(run, round=2)], 15.0) == []
    assert deadlines.over([replace(run, round=2)], 25.0) != []
    assert Deadlines().over([run], 15.0) == []


def test_a_run_that_has_ended_is_forgotten() -> None:
    deadlines, run = Deadlines(), a_run("a")
    deadlines.over([run], 0.0)
    deadlines.over([], 5.0)

    assert deadlines.over([run], 12.0) == []
