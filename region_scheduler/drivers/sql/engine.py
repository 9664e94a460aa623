"""Connections, and what a failure of one means."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, SQLAlchemyError

from region_scheduler.errors import Misconfigured, OutcomeUnknown, Unavailable

BUSY_S: Final = 5.0
"""How long a statement waits for a lock that another holds, seconds."""
_STATEMENT_S: Final = 15
_CONNECT_S: Final = 3
_DEPENDENCY: Final = "relational store"
_FILE: Final = "file"
_DAMAGED: Final = ("file is not a database", "malformed")


def open_engine(url: str) -> Engine:
    """Return connections to the store at `url`; nothing is connected yet.

    Args:
        url: `sqlite:///PATH` or `postgresql://...`; a missing SQLite directory is made.

    Raises:
        Misconfigured: No store can be meant by `url`, or its driver is not installed.
    """
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite":
            return _open_sqlite(url, parsed.database)
        if parsed.get_backend_name() == "postgresql":
            return create_engine(
                parsed.set(drivername="postgresql+psycopg"),
                pool_timeout=BUSY_S,
                connect_args={
                    "connect_timeout": _CONNECT_S,
                    "keepalives_idle": 10,
                    "keepalives_interval": 5,
                    "keepalives_count": 2,
                    "options": f"-c statement_timeout={_STATEMENT_S}s -c lock_timeout={BUSY_S:g}s",
                },
            )
    except ArgumentError as refused:
        raise Misconfigured(problems=[f"relational.url: {refused}"]) from refused
    except ModuleNotFoundError as missing:
        raise Misconfigured(
            problems=["relational.url names PostgreSQL; install region-scheduler[postgres]"]
        ) from missing
    except OSError as refused:
        raise Misconfigured(problems=[f"relational.url: {refused}"]) from refused
    raise Misconfigured(problems=["relational.url must be sqlite:///... or postgresql://..."])


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Yield a connection for one read.

    Raises:
        Unavailable: No answer; reading again is safe.
    """
    try:
        with engine.connect() as connection:
            yield connection
    except SQLAlchemyError as failed:
        raise Unavailable(dependency=_DEPENDENCY, detail=_told(failed)) from failed


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Yield a connection for one transaction, committed at the end of the block.

    Raises:
        Unavailable: Nothing was written.
        OutcomeUnknown: The answer to the commit was lost.
    """
    is_committing = False
    try:
        with engine.connect() as connection:
            yield connection
            is_committing = True
            connection.commit()
    except SQLAlchemyError as failed:
        if is_committing and not _is_busy(failed):
            raise OutcomeUnknown(dependency=_DEPENDENCY, detail=_told(failed)) from failed
        raise Unavailable(dependency=_DEPENDENCY, detail=_told(failed)) from failed


def is_damaged(failed: SQLAlchemyError) -> bool:
    """Say whether the store's file holds something that is no store."""
    return any(sign in str(failed) for sign in _DAMAGED)


def _open_sqlite(url: str, path: str | None) -> Engine:
    if not path or path == ":memory:":
        raise Misconfigured(problems=["relational.url must name a file"])
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, connect_args={"timeout": BUSY_S}, pool_timeout=BUSY_S)

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, record: Any) -> None:
        connection.execute("PRAGMA journal_mode=WAL")
        # Safe against a crash of the process; a power cut costs rows that can be rebuilt.
        connection.execute("PRAGMA synchronous=NORMAL")
        record.info[_FILE] = _identity(path)

    @event.listens_for(engine, "checkout")
    def look_again(_connection: Any, record: Any, _proxy: Any) -> None:
        # What is written into a file that was removed or replaced under us, nobody reads.
        if record.info[_FILE] != _identity(path):
            raise DisconnectionError

    return engine


def _identity(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return (0, 0)
    return (found.st_dev, found.st_ino)


def _is_busy(failed: SQLAlchemyError) -> bool:
    """Say whether SQLite refused a commit because of a lock: the transaction was not written."""
    return "database is locked" in str(failed)


def _told(failed: SQLAlchemyError) -> str:
    """Return one line without the statement and its parameters."""
    cause = failed.orig if isinstance(failed, DBAPIError) else failed
    return " ".join(str(cause).split()) or type(cause).__name__
