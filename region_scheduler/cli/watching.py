"""Watch runs until they end: a live table on a terminal, a line a change elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from region_scheduler.cli.output import Output, print_line, table
from region_scheduler.cli.progress import (
    Glance,
    change_lines,
    closing,
    ended_row,
    person_lines,
    progress_rows,
    running_lines,
    waiting_lines,
)
from region_scheduler.domain.ids import RunId
from region_scheduler.domain.states import SATISFYING, RunState, TaskState
from region_scheduler.errors import Unavailable
from region_scheduler.operations.waits import zone_waits

if TYPE_CHECKING:
    from rich.console import Group

    from region_scheduler.assembly.operator import Operator
    from region_scheduler.cli.hints import Hints
    from region_scheduler.ports.records import GraphStores

EXIT_FAILED = 1
EXIT_PERSON = 3
_PAUSE_S = 0.5
_PAUSE_FACTOR = 10
_PATIENCE_S = 60.0
_TOLD = tuple(state for state in TaskState if state not in {*SATISFYING, TaskState.PENDING})


def is_live(output: Output) -> bool:
    """Say whether a person sits before a terminal: then a watch stays while one is waited for."""
    return not output.as_json and sys.stdout.isatty()


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
    waits = zone_waits(graph, found)
    holders = {wait.holder for wait in waits.values() if wait.holder} - {run.id for run in found}
    tasks += [task for holder in sorted(holders) for task in graph.tasks.of_run(holder, _TOLD)]
    counts = {run.id: graph.tasks.state_counts(run.id) for run in found}
    return Glance(found, tasks, counts, waits)


def watch_runs(
    opened: Operator,
    runs: Sequence[RunId],
    output: Output,
    hints: Hints,
    *,
    is_person_awaited: bool = True,
) -> int:
    """Watch, then tell how it ended; return 0 if all ended well, else 1.

    Args:
        opened: Where to look.
        runs: Which.
        output: For the result.
        hints: For what a person can do.
        is_person_awaited: Whether to stay while nothing can move before somebody answers; else 3 is
            returned then.

    Raises:
        Unavailable: No answer for a minute.
    """
    seen = watch_until_ended(opened, runs, output, hints, is_person_awaited=is_person_awaited)
    rows = [ended_row(run, seen) for run in seen.runs]
    output.result({"items": rows}, lambda: closing(seen, hints))
    if not seen.has_ended:
        return EXIT_PERSON
    is_well = all(run.state in {RunState.DONE, RunState.PLANNED} for run in seen.runs)
    return 0 if is_well else EXIT_FAILED


def watch_until_ended(
    opened: Operator,
    runs: Sequence[RunId],
    output: Output,
    hints: Hints | None,
    on_glance: Callable[[Glance], None] = lambda _: None,
    *,
    is_person_awaited: bool = True,
) -> Glance:
    """Draw what happens until all runs have ended, and return what was seen last.

    Args:
        opened: Where to look.
        runs: Which.
        output: Says whether lines or a live table are wanted.
        hints: For what a person can do; None if somebody else answers.
        on_glance: Told of every look.
        is_person_awaited: As in `watch_runs`.

    Raises:
        Unavailable: No answer for a minute.
    """
    seen, clock, stands_still = Glance(), opened.clock, 0
    answered_at = clock.monotonic()
    with _screen(output, hints) as draw:
        while runs:
            began_at = clock.monotonic()
            try:
                seen = glance(opened.graph, runs, is_whole=is_live(output))
            except Unavailable:
                # The store may be on its way back; what was seen last stands.
                if began_at - answered_at > _PATIENCE_S:
                    raise
            else:
                answered_at = clock.monotonic()
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


@contextmanager
def _screen(output: Output, hints: Hints | None) -> Iterator[Callable[[Glance], None]]:
    """Yield what draws: a live table on a terminal, otherwise a line whenever something changed."""
    if not is_live(output):
        last: list[str] = []

        def tell(seen: Glance) -> None:
            lines = change_lines(seen, hints)
            for line in lines:
                if line not in last:
                    print_line(line, is_aside=output.as_json)
            last[:] = lines

        yield tell
        return
    from rich.live import Live

    with Live(refresh_per_second=4, transient=True) as live:
        yield lambda seen: live.update(_drawn(seen, hints))


def _drawn(seen: Glance, hints: Hints | None) -> Group:
    from rich.console import Group
    from rich.text import Text

    columns = ["run", "region", "progress", "done", "running", "ready", "failed"]
    lines = [*table(progress_rows(seen), columns)] if seen.tasks else []
    lines += ["", "runs:", *(f"  {line}" for line in running_lines(seen))]
    lines += ["", "waits:", *(f"  {line}" for line in waiting_lines(seen))]
    for_you = person_lines(seen, hints) if hints is not None else []
    return Group(
        *(Text(line, no_wrap=True, overflow="ellipsis") for line in lines),
        *(Text(line, overflow="fold") for line in ["", *for_you]),  # whole, to be copied
    )
