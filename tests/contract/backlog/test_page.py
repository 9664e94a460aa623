"""docs/stores.md names every column, and quotes the plans that the stores really make."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import Engine, text

from region_scheduler.drivers.sql.backlog import SqlBacklog
from region_scheduler.drivers.sql.tables import METADATA
from region_scheduler.scheduling.mend import _WIDE_EVERY
from tests.contract.backlog.test_backlog import NOW, in_pools, row
from tests.contract.backlog.test_store import plans_of

PAGE = (Path(__file__).parents[3] / "docs" / "stores.md").read_text()


def test_the_page_has_every_column_of_each_table_in_its_order() -> None:
    for name, table in METADATA.tables.items():
        said = PAGE.partition(f"`{name}`: ")[2].partition("\n\n")[2].partition("\n\n")[0]

        assert re.findall(r"^\| `(\w+)` \|", said, re.MULTILINE) == table.columns.keys()


def test_the_page_quotes_the_plan_of_the_top_rows(engine: Engine) -> None:
    backlog = SqlBacklog(engine)
    many = [row(f"{n:05}", tenant=f"t{n % 50:02}", remaining_s=n % 97) for n in range(20_000)]
    backlog.add(many, NOW)
    with engine.begin() as connection:
        connection.execute(text("ANALYZE"))
    plans = plans_of(engine)

    backlog.top({"t01": 2, "t02": 2}, NOW, in_pools("default"))

    title = "SQLite" if engine.dialect.name == "sqlite" else "PostgreSQL"
    quoted = PAGE.partition(f'```text title="{title}: ')[2].partition("\n")[2].partition("\n```")[0]
    assert plans == [quoted]


def test_the_page_says_how_often_the_metadata_are_compared() -> None:
    assert "at every sixth time" in PAGE
    assert _WIDE_EVERY == 6
