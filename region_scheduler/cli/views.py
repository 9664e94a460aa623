"""Runs and tasks as rows and lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from region_scheduler.cli.options import words
from region_scheduler.cli.output import table
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import Task
from region_scheduler.errors import InvalidInput
from region_scheduler.operations.waits import ZoneWait


def states_of(text: str | None) -> list[TaskState]:
    """Return the task states that `a,b` names.

    Raises:
        InvalidInput: One is none.
    """
    known = {state.value: state for state in TaskState}
    found = words(text, "--state")
    for word in found:
        if word not in known:
            expected = f"states are {', '.join(known)}"
            raise InvalidInput(field="--state", value=word, expected=expected)
    return [known[word] for word in found]


def run_row(run: Run, counts: Mapping[TaskState, int], wait: ZoneWait | None) -> dict[str, Any]:
    """Return what a list says of a run."""
    finished = counts.get(TaskState.DONE, 0) + counts.get(TaskState.SKIPPED, 0)
    return {
        "run": run.id,
        "name": run.name,
        "tenant": run.tenant,
        "type": run.zone_type,
        "state": run.state,
        "tasks": run.task_count,
        "done": finished,
        "failed": counts.get(TaskState.FAILED, 0),
        "awaiting": counts.get(TaskState.AWAITING, 0),
        "round": run.round,
        "reason": str(wait) if wait else run.reason,
        "home_region": run.home_region,
        "created_at": run.created_at,
        "ended_at": run.ended_at,
    }


def task_row(task: Task) -> dict[str, Any]:
    """Return what a list says of a task."""
    return {
        "id": task.id,
        "name": task.spec.name,
        "state": task.state,
        "region": task.region,
        "runner": task.spec.runner,
        "attempt": task.attempt,
        "reason": task.reason,
        "locks": [need.resource for need in task.spec.locks],
    }


def answer_words(run: str, task: Task) -> list[str]:
    """Return the command with which a person answers an awaiting task of a run."""
    verb = "answer" if task.spec.runner == "external-wait" else "approve"
    return ["tasks", verb, f"{run}/{task.spec.name}"]


def by_region(tasks: Iterable[Task]) -> list[dict[str, Any]]:
    """Return how many tasks are in each state, a row a region."""
    counts: dict[str, Counter[str]] = {}
    for task in tasks:
        counts.setdefault(task.region, Counter())[task.state.value] += 1
    return [{"region": region, **counts[region]} for region in sorted(counts)]


def run_lines(row: Mapping[str, Any], tasks: Sequence[Task]) -> list[str]:
    """Return a run for people: where it is, and what is not as it should be."""
    regions = by_region(tasks)
    states = [s.value for s in TaskState if any(s.value in region for region in regions)]
    lines = [
        f"run {row['run']}: {row['name']}" + (f" ({row['type']})" if row["type"] else ""),
        f"{row['state']}, round {row['round']}, {row['done']} of {row['tasks']} tasks done",
        *([row["reason"]] if row["reason"] else []),
        "",
        *table(regions, ["region", *states]),
    ]
    odd = [task for task in tasks if task.state in _TOLD]
    if odd:
        lines += ["", *table([task_row(t) for t in odd], ["name", "state", "region", "reason"])]
    return lines


def task_lines(task: Task) -> list[str]:
    """Return a task for people."""
    spec = task.spec
    held = task.holder.incarnation if task.holder else "nobody"
    lines = [
        f"{spec.name}: {spec.purpose}" if spec.purpose else spec.name,
        f"{task.id}, {task.state.value}" + (f": {task.reason}" if task.reason else ""),
        f"runner {spec.runner}, region {task.region}, pool {spec.pool}, held by {held}",
        f"attempts {task.attempt}, retries {task.retries_used} of {spec.retry.limit},"
        f" losses {task.losses}, token {task.token}",
    ]
    if spec.locks:
        lines.append("locks " + ", ".join(need.resource for need in spec.locks))
    if task.outputs:
        lines.append("outputs " + ", ".join(f"{k}={v}" for k, v in task.outputs.items()))
    rows = [
        {
            "at": entry.at,
            "event": entry.kind.value,
            "state": entry.state.value,
            "by": entry.by,
            "detail": entry.detail,
        }
        for entry in task.history
    ]
    return [*lines, "", *table(rows, ["at", "event", "state", "by", "detail"])]


_TOLD = frozenset({TaskState.FAILED, TaskState.CANCELLED, TaskState.AWAITING, TaskState.IN_DOUBT})
