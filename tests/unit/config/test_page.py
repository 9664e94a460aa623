"""docs/settings.md has every setting with its default, and every level with what it is worth."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args, get_type_hints

from region_scheduler.config.load import Loaded, show
from region_scheduler.config.settings import Settings, Tenants
from region_scheduler.domain.tenant import LEVELS, QUOTAS

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "settings.md").read_text()


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_page_has_every_setting_with_its_default() -> None:
    told = {row[0].strip("` "): row[1].strip("`") for row in rows() if len(row) == 3}
    nothing = {"", "[]", "{}"}

    assert told == {
        key: "none" if value in nothing else value for key, value, _ in show(Loaded(Settings(), {}))
    }


def test_the_page_has_every_level_and_each_can_be_the_default() -> None:
    told = {row[0].strip("` "): row[1:] for row in rows() if len(row) == 4}
    choice = get_type_hints(Tenants)["level_default"]

    assert told == {
        level.name: [
            f"{level.weight:g}",
            f"{level.floor}",
            "no bound" if level.in_flight_max is None else f"{level.in_flight_max}",
        ]
        for level in LEVELS.values()
    }
    assert set(get_args(choice)) == LEVELS.keys()
    assert f"`tenants.level_default` | `{Tenants().level_default}`" in PAGE
    assert re.findall(r"`(\w+)`", PAGE.partition("have no document: ")[2].splitlines()[0]) == list(
        LEVELS
    )


def test_the_levels_are_told_with_their_quotas() -> None:
    told = (DOCS / "tenants.md").read_text()
    for name, level in LEVELS.items():
        quota = QUOTAS[name]
        bounds = (
            level.in_flight_max,
            quota.zones_max,
            quota.runs_a_day_max,
            quota.runs_in_flight_max,
        )
        cells = [f"`{name}`", f"{level.weight:g}", level.floor]
        cells += ["no bound" if bound is None else bound for bound in bounds]
        assert f"| {' | '.join(map(str, cells))} |" in told
