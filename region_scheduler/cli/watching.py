"""Watch runs until they end: a live table on a terminal, a line a change elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from region_scheduler.cli.output import Output, print_line, table
from region_scheduler.domain.ids import RunId
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RUN_ENDED, SATISFYING, RunState, TaskState
from region_scheduler.domain.task import Task
from region_scheduler.errors import Unavailable

if TYPE_CHECKING:
    from region_scheduler.assembly.operator import Operator
    from region_scheduler.ports.records import GraphStores

EXIT_FAILED = 1
EXIT_PERSON = 3
_PAUSE_S = 0.5
_PAUSE_FACTOR = 10
_WAITING_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Glance:
    """Runs and their tasks as they stand.

    Attributes:
        tasks: All of them, or those only that are neither satisfied nor pending.
    """

    runs: Sequence[Run] = ()
    tasks: Sequence[Task] = ()
    counts: Mapping[RunId, Mapping[TaskState, int]] = field(default_factory=dict)

    def done(self, run: Run) -> int:
        """Return how many tasks of a run are satisfied."""
        return sum(self.counts[run.id].get(state, 0) for state in SATISFYING)

    @property
    def has_ended(self) -> bool:
        """Whether every run has."""
        return all(run.state in RUN_ENDED for run in self.runs)

    @property
    def awaits_person(self) -> bool:
        """Whether nothing can move before somebody decides."""
        moving = {TaskState.READY, TaskState.CLAIMED, TaskState.RUNNING, TaskState.IN_DOUBT}
        awaiting = [task for task in self.tasks if task.state is TaskState.AWAITING]
        is_still = not any(task.state in moving for task in self.tasks)
        return is_still and any(task.spec.runner != "external-wait" for task in awaiting)


def glance(graph: GraphStores, runs: Sequence[RunId], *, is_whole: bool = False) -> Glance:
    """Look once.

    Args:
        graph: Where.
        runs: At which.
        is_whole: Whether to read also the tasks that are satisfied or pending.

    Raises:
        Unavailable: No answer; look again.
    """
    found = [run for run in graph.runs.read(runs) if run is not None]
    states = () if is_whole else _TOLD
    tasks = [task for run in found for task in graph.tasks.of_run(run.id, states)]
    return Glance(found, tasks, {run.id: graph.tasks.state_counts(run.id) for run in found})


def watch_runs(
    opened: Operator, runs: Sequence[RunId], output: Output, *, is_person_awaited: bool = True
) -> int:
    """Watch, then tell how it ended; return 0 if all ended well, else 1.

    Args:
        opened: Where to look.
        runs: Which.
        output: For the result.
        is_person_awaited: Whether to stay while nothing can move before somebody decides; else 3 is
            returned then.
    """
    seen = watch_until_ended(opened, runs, output, is_person_awaited=is_person_awaited)
    output.result({"items": [ended_row(run, seen) for run in seen.runs]}, lambda: closing(seen))
    if not seen.has_ended:
        return EXIT_PERSON
    is_well = all(run.state in {RunState.DONE, RunState.PLANNED} for run in seen.runs)
    return 0 if is_well else EXIT_FAILED


def watch_until_ended(
    opened: Operator,
    runs: Sequence[RunId],
    output: Output,
    on_glance: Callable[[Glance], None] = lambda _: None,
    *,
    is_person_awaited: bool = True,
) -> Glance:
    """Draw what happens until all runs have ended, and return what was seen last.

    Args:
        opened: Where to look.
        runs: Which.
        output: Says whether lines or a live table are wanted.
        on_glance: Told of every look.
        is_person_awaited: As in `watch_runs`.
    """
    seen, clock, stands_still = Glance(), opened.clock, 0
    is_live = not output.as_json and sys.stdout.isatty()
    with _screen(output, is_live) as draw:
        while runs:
            began_at = clock.monotonic()
            try:
                seen = glance(opened.graph, runs, is_whole=is_live)
            except Unavailable:
                pass  # the store may be on its way back; what was seen last stands
            else:
                on_glance(seen)
                draw(seen)
                # Twice: between a completion and what it unlocks, a run seems to stand still.
                stands_still = stands_still + 1 if seen.awaits_person else 0
                if seen.has_ended or (stands_still > 1 and not is_person_awaited):
                    break
            # However large the runs are, looking takes a tenth of the time and of a core at most.
            took_s = clock.monotonic() - began_at
            threading.Event().wait(max(_PAUSE_S, _PAUSE_FACTOR * took_s))
    return seen


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


def closing(seen: Glance) -> Iterator[str]:
    """Return the last lines for people."""
    if not seen.runs:
        yield "no run is under way"
    for run in seen.runs:
        row = ended_row(run, seen)
        yield f"{run.name}: {run.state}, {row['done']} of {row['tasks']} tasks done"
        yield from (f"  failed: {name}" for name in row["failed"])
        if run.state not in RUN_ENDED:
            for name in row["awaiting"]:
                yield f"  waits for you: region-scheduler tasks approve {run.id}/{name}"


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
                    "run": run.name,
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
    running = [task for task in seen.tasks if task.state is TaskState.RUNNING]
    return _some([f"{task.spec.name} in {task.region}" for task in running])


def waiting_lines(seen: Glance) -> list[str]:
    """Return what waits and why: people first, then locks and doubts, then what failed."""
    told = [
        f"{task.spec.name}: {task.reason or task.state.value}"
        for state in (TaskState.AWAITING, TaskState.IN_DOUBT, TaskState.READY, TaskState.FAILED)
        for task in seen.tasks
        if task.state is state
    ]
    pending = sum(states.get(TaskState.PENDING, 0) for states in seen.counts.values())
    return [*_some(told), *([f"{pending} wait for the steps before them"] if pending else [])]


@contextmanager
def _screen(output: Output, is_live: bool) -> Iterator[Callable[[Glance], None]]:
    """Yield what draws: a live table on a terminal, otherwise a line whenever something changed."""
    if not is_live:
        last: list[str] = []

        def tell(seen: Glance) -> None:
            ended = [ended_row(run, seen) for run in seen.runs]
            line = ", ".join(f"{row['name']} {row['done']}/{row['tasks']}" for row in ended)
            if [line] != last:
                last[:] = [line]
                print_line(line, is_aside=output.as_json)

        yield tell
        return
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    columns = ["run", "region", "progress", "done", "running", "ready", "failed"]

    def drawn(seen: Glance) -> Group:
        lines = [*table(progress_rows(seen), columns)] if seen.tasks else []
        runs = ["", "runs:", *(f"  {line}" for line in running_lines(seen))]
        waits = ["", "waits:", *(f"  {line}" for line in waiting_lines(seen))]
        return Group(
            *(Text(line, no_wrap=True, overflow="ellipsis") for line in [*lines, *runs, *waits])
        )

    with Live(refresh_per_second=4, transient=True) as live:
        yield lambda seen: live.update(drawn(seen))


def _bar(done: int, total: int, width: int = 20) -> str:
    filled = width * done // total if total else width
    return "█" * filled + "░" * (width - filled)


def _some(lines: Sequence[str]) -> list[str]:
    hidden = len(lines) - _WAITING_SHOWN
    return [*lines[:_WAITING_SHOWN], *([f"and {hidden} more"] if hidden > 0 else [])]


_READY = frozenset({TaskState.READY, TaskState.CLAIMED})
_TOLD = tuple(state for state in TaskState if state not in {*SATISFYING, TaskState.PENDING})
