"""`simulate`: thousands of disasters on one machine, each to be replayed by its seed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Final

import typer

from region_scheduler.cli.options import Json
from region_scheduler.cli.output import Output, print_line
from region_scheduler.errors import InvalidInput

if TYPE_CHECKING:
    from region_scheduler.simulation.seeded import Outcome

_SEEDS_MAX: Final = 1_000_000
_LIVED: Final = 10
_TRIED: Final = 20
"""Seeds on which a mutant is looked for: what a seed meets changes with the product."""


def simulate(
    seeds: Annotated[
        str,
        typer.Option(
            "--seeds", metavar="A..B", help="From A to B.", show_default="1..10, or until found"
        ),
    ] = "",
    minutes: Annotated[
        float,
        typer.Option("--minutes", min=0.1, max=600.0, help="Virtual time that faults rage."),
    ] = 1.0,
    only: Annotated[
        str,
        typer.Option("--only", metavar="N,N", help="Let only these faults strike, or `none`."),
    ] = "",
    mutant: Annotated[
        str,
        typer.Option("--mutant", metavar="NAME", help="Break the product by name; until found."),
    ] = "",
    is_traced: Annotated[
        bool, typer.Option("--trace", help="Print what happens, in its order.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Let a small world live with faults, for each seed; 1 if a promise is broken.

    The same seed gives the same world everywhere. Needs no stack, touches none.
    """
    from region_scheduler.runtime.logs import set_up_logging
    from region_scheduler.simulation.campaign import simulate as simulated
    from region_scheduler.simulation.claiming.mutants import BREAKAGES
    from region_scheduler.simulation.mutants import MUTANTS

    set_up_logging(level="critical")
    output = Output(as_json)
    if mutant in BREAKAGES:
        return _hunted(mutant, output, "--seeds" if seeds else "--only" if only else "")
    first = MUTANTS[mutant].seed if mutant in MUTANTS else 1
    default = f"{first}..{first + (_TRIED if mutant else _LIVED) - 1}"
    found = simulated(
        _seeds(seeds or default),
        minutes,
        _numbers(only),
        mutant,
        on_trace=(lambda line: print_line(line, is_aside=as_json)) if is_traced else None,
        on_seed=lambda outcome: output.note(_told(outcome)),
    )
    output.result(found.document(), found.lines)
    return 1 if found.violations else 0


def _hunted(mutant: str, output: Output, unknown: str) -> int:
    """Look for a mutant of the claim protocol, in every order of events instead of in seeds."""
    from region_scheduler.simulation.claiming.mutants import hunt

    if unknown:
        expected = f"nothing: {mutant} is looked for in every order of events, not in seeds"
        raise InvalidInput(field=unknown, value="given", expected=expected)
    found = hunt(mutant)
    output.result(found.document(), found.lines)
    return 1 if found.found.broken else 0


def _told(outcome: Outcome) -> str:
    broken = ", ".join(outcome.report.broken)
    what = f"{broken} BROKEN" if broken else "every promise kept"
    return f"seed {outcome.seed}: {what}, {outcome.faults.total()} faults, {outcome.trace_hash}"


def _seeds(text: str) -> range:
    said = re.fullmatch(r"(\d{1,9})(?:\.\.(\d{1,9}))?", text)
    begin, end = (int(said[1]), int(said[2] or said[1])) if said else (1, 0)
    if not begin <= end < begin + _SEEDS_MAX:
        expected = "a number, or two as in 1..2000, the second not below the first"
        raise InvalidInput(field="--seeds", value=text, expected=expected)
    return range(begin, end + 1)


def _numbers(text: str) -> frozenset[int] | None:
    if text in {"", "none"}:
        return frozenset() if text else None
    if not re.fullmatch(r"\d{1,9}(,\d{1,9})*", text):
        expected = "numbers of faults with commas between them, or none"
        raise InvalidInput(field="--only", value=text, expected=expected)
    return frozenset(map(int, text.split(",")))
