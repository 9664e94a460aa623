"""Options that several commands share, each spelled once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from region_scheduler.errors import InvalidInput

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object as the last line of output.")
]
StateDir = Annotated[
    Path | None,
    typer.Option("--state-dir", help="Directory of the local stack.", show_default="from settings"),
]
Region = Annotated[
    str | None, typer.Option("--region", help="Region to act from.", show_default="the first one")
]
Tenant = Annotated[str, typer.Option("--tenant", help="Whose zones and runs.")]
Regions = Annotated[
    str | None,
    typer.Option("--regions", help="Target regions, with commas; the first is home."),
]
Pairs = Annotated[
    list[str] | None, typer.Option("--set", help="A parameter as key=value; may be repeated.")
]
RunText = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id, its beginning or end, or its name.")
]
Why = Annotated[str, typer.Option("--why", help="Your reason, kept with the act.")]
TaskText = Annotated[str, typer.Argument(metavar="TASK", help="RUN/NAME, or a task's id.")]

TENANT_DEFAULT = "acme"


def words(text: str | None, option: str) -> list[str]:
    """Return `a,b` as a list; none if the option was not given.

    Raises:
        InvalidInput: There is nothing between two commas, or a word comes twice.
    """
    if text is None:
        return []
    found = [word.strip() for word in text.split(",")]
    if "" in found:
        expected = "put one comma between two names, and none at either end"
        raise InvalidInput(field=option, value=text, expected=expected)
    for word in found:
        if found.count(word) > 1:
            raise InvalidInput(field=option, value=text, expected=f"name {word} once")
    return found
