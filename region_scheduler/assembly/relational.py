"""The relational store of a region, opened by its address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from region_scheduler.drivers.sql.backlog import SqlBacklog
from region_scheduler.drivers.sql.engine import open_engine
from region_scheduler.drivers.sql.metadata import SqlMetadata


@dataclass(frozen=True, slots=True)
class Relational:
    """Both tables of one store."""

    backlog: SqlBacklog
    metadata: SqlMetadata


@contextmanager
def relational(url: str) -> Iterator[Relational]:
    """Yield the store at `url`; nothing is connected yet, and nothing is made (`prepare`).

    Raises:
        Misconfigured: No store can be meant by `url`, or its driver is not installed.
    """
    engine = open_engine(url)
    try:
        yield Relational(SqlBacklog(engine), SqlMetadata(engine))
    finally:
        engine.dispose()
