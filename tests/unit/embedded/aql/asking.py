"""Short forms for tests: run a query, name the error it ends with."""

from __future__ import annotations

from typing import Any

import pytest

from region_scheduler.embedded.arango.aql import QueryOptions, QueryResult, compile_query
from region_scheduler.embedded.arango.errors import ArangoError
from tests.unit.embedded.aql.memory import MemorySession


def run(text: str, session: MemorySession | None = None, /, **bind: Any) -> QueryResult:
    """Run a query; `c_name=…` binds the collection parameter `@@name`."""
    values = {f"@{k[2:]}" if k.startswith("c_") else k: v for k, v in bind.items()}
    return compile_query(text).execute(session or MemorySession(), values)


def rows(text: str, session: MemorySession | None = None, /, **bind: Any) -> list[Any]:
    """Return what a query gives."""
    return run(text, session, **bind).rows


def error(text: str, session: MemorySession | None = None, /, **bind: Any) -> int:
    """Return the number of the error that a query ends with."""
    with pytest.raises(ArangoError) as failure:
        run(text, session, **bind)
    return failure.value.number


def run_with(
    options: QueryOptions, text: str, session: MemorySession | None = None, /
) -> QueryResult:
    """Run a query with options."""
    return compile_query(text).execute(session or MemorySession(), {}, options)
