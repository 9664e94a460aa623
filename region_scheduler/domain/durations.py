"""How long steps take, learned from what they took.

Of each step in each region the newest ends count, newer ones more than older ones, so that a cloud
that has become slower is known by its median after a handful of runs. Where too little is known
the declared duration stands.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from region_scheduler.domain.admission import Plan
from region_scheduler.domain.dag import Dag
from region_scheduler.domain.states import FINAL, SATISFYING, TaskState
from region_scheduler.domain.task import SCHEMA, EventKind, Task, TaskSpec

_FADING: Final = 0.9
"""What an end counts beside the next newer one."""
_SAMPLES_MAX: Final = 50
_SAMPLES_MIN: Final = 3
_STEPS_MAX: Final = 2_000


@dataclass(frozen=True, slots=True)
class Sample:
    """One attempt that ended well; both instants are of its worker's clock.

    Attributes:
        step: See `step_key`.
    """

    step: str
    started_at: datetime
    ended_at: datetime

    @property
    def seconds(self) -> float:
        """How long it took; a clock that was set back makes it nothing."""
        return max(0.0, (self.ended_at - self.started_at).total_seconds())


@dataclass(frozen=True, slots=True)
class Figure:
    """What a step takes: in half of all cases at most `p50_s`, in nine of ten at most `p90_s`.

    Attributes:
        count: Ends that it was learned from.
    """

    p50_s: float
    p90_s: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """What one region has learned.

    Attributes:
        id: The region.
        figures: By `step_key`.
        at: When they last changed, for display.
    """

    id: str
    rev: str = ""
    schema: int = SCHEMA
    figures: Mapping[str, Figure] = field(default_factory=dict)
    at: datetime


def step_key(runner: str, step: str) -> str:
    """Return the name under which a step is known: one that is simulated takes another time."""
    return f"{runner}:{step}"


def weighted(seconds: Sequence[float], part: float) -> float:
    """Return the weighted quantile of values, newest first.

    Args:
        seconds: At least one.
        part: From 0 to 1.
    """
    ranked = sorted((value, _FADING**age) for age, value in enumerate(seconds))
    wanted, sum_ = part * sum(weight for _, weight in ranked), 0.0
    for value, weight in ranked:
        sum_ += weight
        if sum_ >= wanted:
            return value
    return ranked[-1][0]


def learned(samples: Iterable[Sample]) -> dict[str, Figure]:
    """Return the figures of every step that ended often enough, from samples newest first."""
    taken: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        seconds = taken[sample.step]
        if len(seconds) < _SAMPLES_MAX:
            seconds.append(sample.seconds)
    return {step: _figure(taken[step]) for step in taken if len(taken[step]) >= _SAMPLES_MIN}


def updated(known: Durations, fresh: Mapping[str, Figure], at: datetime) -> Durations:
    """Return what a region knows with fresh figures; the same if they say nothing new.

    Steps that did not run lately keep theirs, as far as there is room.
    """
    figures = {**known.figures, **fresh}
    if len(figures) > _STEPS_MAX:
        kept = sorted(figures, key=lambda step: (step in fresh, figures[step].count), reverse=True)
        figures = {step: figures[step] for step in sorted(kept[:_STEPS_MAX])}
    return known if figures == dict(known.figures) else replace(known, figures=figures, at=at)


Known = Mapping[str, Durations]
"""What is known, by region."""


def figure_of(known: Known, spec: TaskSpec, region: str) -> Figure | None:
    """Return what is known of a task's step in a region."""
    here = known.get(region)
    return here.figures.get(step_key(spec.runner, spec.step)) if here and spec.step else None


def expecting(plan: Plan, known: Known) -> Plan:
    """Return the plan with learned durations, and the remaining paths that follow from them."""
    if not known:
        return plan
    found = {task.name: figure_of(known, task, task.region) for task in plan.tasks}
    if not any(found.values()):
        return plan
    expected = {
        task.name: figure.p50_s if (figure := found[task.name]) else task.expected_s
        for task in plan.tasks
    }
    remaining = Dag.checked(expected, plan.edges).remaining(expected)
    tasks = tuple(
        replace(task, expected_s=expected[task.name], remaining_s=remaining[task.name])
        for task in plan.tasks
    )
    return replace(plan, tasks=tasks)


def path_left_s(task: Task, now: datetime) -> float:
    """Return the longest expected path from where a task is to its run's end, seconds."""
    if task.state in SATISFYING:
        return 0.0
    spent_s = 0.0
    if task.state is TaskState.RUNNING:
        starts = (entry.at for entry in reversed(task.history) if entry.kind is EventKind.STARTED)
        spent_s = max(0.0, (now - next(starts, now)).total_seconds())
    return task.spec.remaining_s - min(spent_s, task.spec.expected_s)


def ends_in_s(tasks: Sequence[Task], now: datetime) -> float | None:
    """Return when a run probably ends; None if that depends on somebody, or it does not go on."""
    stopped = (FINAL - SATISFYING) | {TaskState.AWAITING}
    if any(task.state in stopped for task in tasks):
        return None
    return max((path_left_s(task, now) for task in tasks), default=None)


def _figure(seconds: Sequence[float]) -> Figure:
    p50_s, p90_s = (_rounded(weighted(seconds, part)) for part in (0.5, 0.9))
    return Figure(p50_s, p90_s, len(seconds))


def _rounded(seconds: float) -> float:
    """Return three digits: what differs less is no news."""
    return float(f"{seconds:.3g}")
