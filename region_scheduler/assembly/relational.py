"""The relational store of a region, opened by its address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from region_scheduler.domain.ownership import Ownership
from region_scheduler.drivers.sql.backlog import SqlBacklog
from region_scheduler.drivers.sql.engine import open_engine
from region_scheduler.drivers.sql.metadata import SqlMetadata

if TYPE_CHECKING:
    from region_scheduler.drivers.sql.probe import Probe


@dataclass(frozen=True, slots=True)
class Relational:
    """Both tables of one store."""

    backlog: SqlBacklog
    metadata: SqlMetadata


@contextmanager
def relational(url: str, bucket_by: Ownership = Ownership.RUN) -> Iterator[Relational]:
    """Yield the store at `url`; nothing is connected yet, and nothing is made (`prepare`).

    Args:
        url: Its address.
        bucket_by: What of a row its owner is chosen by.

    Raises:
        Misconfigured: No store can be meant by `url`, or its driver is not installed.
    """
    engine = open_engine(url)
    try:
        yield Relational(SqlBacklog(engine, bucket_by), SqlMetadata(engine))
    finally:
        engine.dispose()


@contextmanager
def probed(url: str) -> Iterator[tuple[SqlBacklog, Probe]]:
    """Yield the backlog of the store at `url`, made if it is missing, and a probe of the store.

    Raises:
        Misconfigured: No store can be meant by `url`, or its driver is not installed.
        Unavailable: No answer.
    """
    from region_scheduler.drivers.sql.probe import Probe

    engine = open_engine(url)
    try:
        backlog = SqlBacklog(engine)
        backlog.prepare()
        with closing(Probe(engine)) as probe:
            yield backlog, probe
    finally:
        engine.dispose()
