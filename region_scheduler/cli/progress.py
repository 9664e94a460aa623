"""What is told of runs that are under way: as lines, and as rows of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from region_scheduler.cli.views import answer_words
from region_scheduler.domain.ids import RunId
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RUN_ENDED, SATISFYING, RunState, TaskState
from region_scheduler.domain.task import Task
from region_scheduler.operations.waits import ZoneWait

if TYPE_CHECKING:
    from region_scheduler.cli.hints import Hints

_WAITING_SHOWN = 8
_RUNNING_SHOWN = 4
_ID_SHOWN = 8
_READY = frozenset({TaskState.READY, TaskState.CLAIMED})
_MOVING = _READY | {TaskState.RUNNING, TaskState.IN_DOUBT}


@dataclass(frozen=True, slots=True)
class Glance:
    """Runs and their tasks as they stand.

    Attributes:
        tasks: All of them, or those only that are neither satisfied nor pending; and those of the
            runs whose zones `runs` wait for.
        waits: What a run waits for as a whole.
    """

    runs: Sequence[Run] = ()
    tasks: Sequence[Task] = ()
    counts: Mapping[RunId, Mapping[TaskState, int]] = field(default_factory=dict)
    waits: Mapping[RunId, ZoneWait] = field(default_factory=dict)

    def done(self, run: Run) -> int:
        """Return how many tasks of a run are satisfied."""
        return sum(self.counts[run.id].get(state, 0) for state in SATISFYING)

    def in_state(self, *states: TaskState) -> list[Task]:
        """Return the tasks in these states, those of the first state first."""
        return [task for state in states for task in self.tasks if task.state is state]

    @property
    def has_ended(self) -> bool:
        """Whether every run has."""
        return all(run.state in RUN_ENDED for run in self.runs)

    @property
    def awaits_person(self) -> bool:
        """Whether nothing can move before somebody answers."""
        is_still = not any(task.state in _MOVING for task in self.tasks)
        return is_still and bool(self.in_state(TaskState.AWAITING))


def ended_row(run: Run, seen: Glance) -> dict[str, Any]:
    """Return what is told of a run at the end of the watch."""
    tasks = [task for task in seen.tasks if task.run == run.id]
    return {
        "run": run.id,
        "name": run.name,
        "state": run.state,
        "tasks": run.task_count,
        "done": seen.done(run),
        "failed": [task.spec.name for task in tasks if task.state is TaskState.FAILED],
        "awaiting": [task.spec.name for task in tasks if task.state is TaskState.AWAITING],
    }


def closing(seen: Glance, hints: Hints) -> Iterator[str]:
    """Return the last lines for people."""
    if not seen.runs:
        yield "no run is under way"
    for run in seen.runs:
        row = ended_row(run, seen)
        yield f"{_label(run, seen)}: {run.state}, {row['done']} of {row['tasks']} tasks done"
        yield from (f"  failed: {name}" for name in row["failed"])
        if run.id in seen.waits:
            yield f"  {seen.waits[run.id]}"
        if run.state is RunState.FAILED:
            yield f"  when its cause is mended: {hints.command('resume', run.id)}"
    if not seen.has_ended:
        yield from (f"  {line}" for line in person_lines(seen, hints))


def person_lines(seen: Glance, hints: Hints) -> list[str]:
    """Return what people are waited for, each with the command that answers."""
    return [
        f"waits for you: {hints.command(*answer_words(task.run, task))}"
        for task in seen.in_state(TaskState.AWAITING)
    ]


def change_lines(seen: Glance, hints: Hints | None) -> list[str]:
    """Return how things stand, so that a line that was not told before is news.

    Args:
        seen: The last look.
        hints: None if somebody else answers for the person who watches.
    """
    lines = [_line(run, seen) for run in seen.runs]
    odd = seen.in_state(TaskState.IN_DOUBT, TaskState.FAILED)
    if hints is not None:
        odd = seen.in_state(TaskState.AWAITING) + odd
    lines += [f"{task.spec.name}: {_reason(task)}" for task in odd]
    return lines + (person_lines(seen, hints) if hints is not None else [])


def progress_rows(seen: Glance) -> list[dict[str, Any]]:
    """Return one row a run and region."""
    rows = []
    for run in seen.runs:
        mine = [task for task in seen.tasks if task.run == run.id]
        for region in sorted({task.region for task in mine}):
            here = [task for task in mine if task.region == region]
            done = sum(task.state in SATISFYING for task in here)
            rows.append(
                {
                    "run": _label(run, seen),
                    "region": region,
                    "done": f"{done}/{len(here)}",
                    "progress": _bar(done, len(here)),
                    "running": sum(task.state is TaskState.RUNNING for task in here),
                    "ready": sum(task.state in _READY for task in here),
                    "failed": sum(task.state is TaskState.FAILED for task in here),
                }
            )
    return rows


def running_lines(seen: Glance) -> list[str]:
    """Return what runs now, and where."""
    return _some([_place(task) for task in seen.in_state(TaskState.RUNNING)], _WAITING_SHOWN)


def waiting_lines(seen: Glance) -> list[str]:
    """Return what waits and why: people first, then locks and doubts, then what failed."""
    states = (TaskState.AWAITING, TaskState.IN_DOUBT, TaskState.READY, TaskState.FAILED)
    told = [f"{task.spec.name}: {_reason(task)}" for task in seen.in_state(*states)]
    pending = sum(
        states.get(TaskState.PENDING, 0)
        for run, states in seen.counts.items()
        if run not in seen.waits
    )
    whole = [
        f"{_label(run, seen)}: {seen.waits[run.id]}" for run in seen.runs if run.id in seen.waits
    ]
    before = [f"{pending} wait for the steps before them"] if pending else []
    return [*whole, *_some(told, _WAITING_SHOWN), *before]


def _line(run: Run, seen: Glance) -> str:
    """Return one line of a run: how far it is, what runs, what waits and why."""
    counts, mine = seen.counts[run.id], [task for task in seen.tasks if task.run == run.id]
    running = [_place(task) for task in mine if task.state is TaskState.RUNNING]
    ready = Counter(task.reason for task in mine if task.state in _READY)
    told = [f"{_label(run, seen)}: {seen.done(run)} of {run.task_count} done"]
    if run.state not in {RunState.RUNNING, RunState.DONE}:
        told.append(run.state.value)
    if run.id in seen.waits:
        told.append(str(seen.waits[run.id]))
    if running:
        told.append(f"running {', '.join(_some(running, _RUNNING_SHOWN))}")
    told += [f"{n} ready" + (f" ({why})" if why else "") for why, n in ready.most_common(3)]
    pending = counts.get(TaskState.PENDING, 0)
    if pending and run.id not in seen.waits and run.state not in RUN_ENDED:
        told.append(f"{pending} wait for the steps before them")
    return "; ".join(told)


def _label(run: Run, seen: Glance) -> str:
    """Return a run's name, with the end of its id if another has that name, too."""
    is_shared = sum(other.name == run.name for other in seen.runs) > 1
    return f"{run.name} ({run.id[-_ID_SHOWN:]})" if is_shared else run.name


def _place(task: Task) -> str:
    return f"{task.spec.name} in {task.region}"


def _reason(task: Task) -> str:
    return task.reason or task.state.value


def _bar(done: int, total: int, width: int = 20) -> str:
    filled = width * done // total if total else width
    return "█" * filled + "░" * (width - filled)


def _some(lines: Sequence[str], count: int) -> list[str]:
    hidden = len(lines) - count
    return [*lines[:count], *([f"and {hidden} more"] if hidden > 0 else [])]
