"""`bench`: what this machine makes of the product, each figure beside what limits it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from region_scheduler.cli.options import Json
from region_scheduler.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from region_scheduler.bench.figures import Figure

app = typer.Typer(
    no_args_is_help=True, help="Measure this product on this machine; needs no stack, touches none."
)

Seconds = Annotated[
    float, typer.Option("--seconds", min=0.1, help="Length of each measured round.")
]
Checked = Annotated[bool, typer.Option("--check", help="Exit 1 if a target is missed.")]


@app.command()
def engine(seconds: Seconds = 4.0, is_checked: Checked = False, as_json: Json = False) -> int:
    """Measure the embedded engine."""
    from region_scheduler.bench import engine

    return _told(engine.measure(seconds), is_checked, as_json)


@app.command()
def stores(
    seconds: Seconds = 4.0,
    postgres: Annotated[
        str, typer.Option("--postgres", metavar="URL", help="An empty database of PostgreSQL.")
    ] = "",
    is_checked: Checked = False,
    as_json: Json = False,
) -> int:
    """Measure how long the best 100 of a million rows of the backlog take."""
    from region_scheduler.bench import stores

    return _told(stores.measure(seconds, postgres), is_checked, as_json)


@app.command()
def admission(seconds: Seconds = 4.0, is_checked: Checked = False, as_json: Json = False) -> int:
    """Measure how big graphs and many small runs are checked and admitted."""
    from region_scheduler.bench import admission

    return _told(admission.measure(seconds), is_checked, as_json)


@app.command()
def scheduling(seconds: Seconds = 4.0, is_checked: Checked = False, as_json: Json = False) -> int:
    """Measure how fast one scheduler promotes, claims, assigns and dispatches."""
    from region_scheduler.bench.scheduling import measure

    return _told(measure(seconds), is_checked, as_json)


@app.command(name="wide-area")
def wide_area(is_checked: Checked = False, as_json: Json = False) -> int:
    """Count the round trips from a completion to the start behind it, over three distances."""
    from region_scheduler.bench.wide_area import measure

    return _told(measure(), is_checked, as_json)


@app.command()
def contention(
    schedulers: Annotated[int, typer.Option("--schedulers", help="Serving processes.")] = 8,
    regions: Annotated[int, typer.Option("--regions", help="They are dealt out to these.")] = 3,
    tasks: Annotated[int, typer.Option("--tasks", help="How many are to be done.")] = 20_000,
    locks: Annotated[int, typer.Option("--locks", help="For every fifth task one of these.")] = 50,
    stale_ms: Annotated[
        float, typer.Option("--stale-ms", help="Age of what a scheduler sees of locks and tasks.")
    ] = 500.0,
    planted: Annotated[
        str,
        typer.Option(
            "--plant",
            metavar="WHAT",
            help="Have steps run beside the product, to see that it is seen: done-twice, overrun.",
        ),
    ] = "",
    curve: Annotated[
        Path | None,
        typer.Option(
            "--curve",
            metavar="SVG",
            help="Draw the conflict fraction over 1, 2, 4 … schedulers and stale views instead.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Let schedulers that share nothing contend for tasks and locks; exit 1 if anything is wrong.

    Whether each task was done once, and no lock held too often, is told by the steps' own log.
    """
    from region_scheduler.bench.contention import Contest, contend
    from region_scheduler.bench.rogue import planted_in
    from region_scheduler.runtime.logs import set_up_logging

    set_up_logging(level="error")
    if curve is not None:
        return _drawn(curve, schedulers, tasks, locks, as_json)
    contest = Contest(
        schedulers=schedulers, regions=regions, tasks=tasks, locks=locks, stale_ms=stale_ms
    )
    found = contend(contest, planted_in(planted))
    Output(as_json).result(found.document(), found.lines)
    return 0 if found.is_sound else 1


def _drawn(path: Path, schedulers: int, tasks: int, locks: int, as_json: bool) -> int:
    from region_scheduler.bench.curve import chart, curve, table

    found = curve(schedulers, tasks, locks)
    path.write_text(chart(found), encoding="utf-8")
    document = {"items": [one.document() for one in found], "svg": str(path)}
    Output(as_json).result(document, lambda: table(found))
    return 0 if all(one.is_sound for one in found) else 1


def _told(figures: Sequence[Figure], is_checked: bool, as_json: bool) -> int:
    from region_scheduler.bench.figures import document, lines

    Output(as_json).result(document(figures), lambda: lines(figures))
    return 1 if is_checked and not all(figure.is_met for figure in figures) else 0
