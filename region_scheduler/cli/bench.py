"""`bench`: what this machine makes of the product, each figure beside what limits it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from region_scheduler.cli.options import Json
from region_scheduler.cli.output import Output

if TYPE_CHECKING:
    from region_scheduler.bench.figures import Figure


class Part(StrEnum):
    """What is measured."""

    ENGINE = "engine"
    STORES = "stores"
    ADMISSION = "admission"


def bench(
    part: Annotated[
        Part | None,
        typer.Argument(metavar="[PART]", help="engine, stores or admission; all unless given."),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, help="Length of each measured round.")
    ] = 4.0,
    postgres: Annotated[
        str, typer.Option("--postgres", metavar="URL", help="An empty database, for the stores.")
    ] = "",
    is_checked: Annotated[
        bool, typer.Option("--check", help="Exit 1 if a target is missed.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Measure this product on this machine; needs no stack and touches none."""
    from region_scheduler.bench.figures import document, lines

    figures: list[Figure] = []
    if part in {None, Part.ENGINE}:
        from region_scheduler.bench import engine

        figures += engine.measure(seconds)
    if part in {None, Part.STORES}:
        from region_scheduler.bench import stores

        figures += stores.measure(seconds, postgres)
    if part in {None, Part.ADMISSION}:
        from region_scheduler.bench import admission

        figures += admission.measure(seconds)
    Output(as_json).result(document(figures), lambda: lines(figures))
    return 1 if is_checked and not all(figure.is_met for figure in figures) else 0
