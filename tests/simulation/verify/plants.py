"""What is changed behind the commit gate's back, and how it is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.ids import task_id
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState
from region_scheduler.domain.step import StopWish
from region_scheduler.domain.task import EventKind, Task
from region_scheduler.simulation.world import World
from region_scheduler.verify.invariants import Finding, Invariant
from region_scheduler.verify.report import Report, Status
from region_scheduler.verify.verifier import Source, verify
from tests.simulation.scenarios import graph_of


def looked_at(world: World, run: Run | None = None, **more: Any) -> Report:
    given: dict[str, Any] = {"steps": world.log.facts, "is_at_rest": True, **more}
    source = Source(history=graph_of(world).history, **given)
    return verify(source, run.id if run is not None else None)


def of(report: Report, invariant: Invariant) -> Finding:
    """Return the one finding there is of a promise."""
    (verdict,) = (one for one in report.verdicts if one.invariant is invariant)
    assert verdict.status is Status.BROKEN
    return verdict.findings[0]


def plant(world: World, run: Run, name: str, change: Callable[[Task], Task]) -> Task:
    """Change a task past the commit gate's rules."""
    id_ = task_id(run.id, name)
    return commit_one(graph_of(world).tasks, Change(id_, change))


def with_entry(task: Task, at: int, **more: Any) -> Task:
    changed = replace(task.history[at], **more)
    return replace(task, history=(*task.history[:at], changed, *task.history[at + 1 :]))


def at(task: Task, kind: EventKind) -> int:
    return [entry.kind for entry in task.history].index(kind)


def during(world: World, name: str, act: Callable[[], object]) -> None:
    """Let something happen while the step of a task runs."""

    def happen(_: StopWish) -> None:
        act()

    world.log.during[name] = happen


def run_now(world: World, run: Run) -> Run:
    (found,) = graph_of(world).runs.read([run.id])
    assert found is not None
    return found


def opened(run: Run) -> Run:
    return replace(run, state=RunState.RUNNING, ended_at=None)
