"""A measured value beside its target and beside what limits it, and how it is shown."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value.

    Attributes:
        target: What it has to reach (rates) or must not pass (all else); None for none.
        limit: The primitive that bounds it, in words with its value.
    """

    name: str
    value: float
    unit: str
    target: float | None
    limit: str

    @property
    def is_met(self) -> bool:
        """Whether the target is reached."""
        if self.target is None:
            return True
        return self.value >= self.target if self.unit.endswith("/s") else self.value <= self.target


def document(figures: Sequence[Figure]) -> dict[str, Any]:
    """Return the figures for programs."""
    items = [{**asdict(figure), "met": figure.is_met} for figure in figures]
    return {"cpus": os.cpu_count(), "items": items}


def lines(figures: Sequence[Figure]) -> Iterator[str]:
    """Return a line for each figure."""
    for figure in figures:
        target = "" if figure.target is None else f"target {figure.target:,.0f}"
        missed = "" if figure.is_met else "  MISSED"
        value = f"{figure.value:,.{0 if figure.value >= 100 else 2}f} {figure.unit}"
        yield f"{figure.name:40} {value:>22}  {target:14} beside {figure.limit}{missed}"
