"""Array functions."""

from __future__ import annotations

from typing import Any

from region_scheduler.embedded.arango.aql.convert import to_string
from region_scheduler.embedded.arango.aql.functions.registry import function
from region_scheduler.embedded.arango.aql.run import Run


@function("LENGTH COUNT", 1, takes_collection=True)
def _length(value: Any) -> int:
    if type(value) is list or type(value) is dict:
        return len(value)
    if value is None or value is False:
        return 0
    return 1 if value is True else len(to_string(value))


@function("FIRST", 1)
def _first(run: Run, value: Any) -> Any:
    if type(value) is not list:
        run.warn(1542, "FIRST")
        return None
    return value[0] if value else None
