"""The log under the engine: what was committed, in SQLite.

One row per living document, keyed by the document's place in insertion order, so there is no
history to replay or to compact: starting reads each living document once, freed pages are used
again, and `compact` gives them back to the disk. Commits only queue; `flush` writes the queue in
one SQLite transaction, which is what makes many requests cheap together.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from region_scheduler.embedded.arango.storage.record import Record

_SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
    row INTEGER PRIMARY KEY, collection INTEGER, body BLOB
) STRICT;
CREATE TABLE IF NOT EXISTS catalog (
    number INTEGER PRIMARY KEY, kind TEXT, parent INTEGER, body BLOB
) STRICT;
CREATE TABLE IF NOT EXISTS bounds (name TEXT PRIMARY KEY, value INTEGER) STRICT;
"""
# 64 MB: pages that change again and again reach the database file once per checkpoint.
_CHECKPOINT_PAGES = 16_000
_COMPACT_SHARE = 0.5
_COMPACT_PAGES_MIN = 256


class LogDamaged(Exception):
    """The data directory cannot be used: damaged, of another version, or in use."""


class LogFailed(Exception):
    """The log could not be written: memory is ahead of the disk, so the engine must stop."""


class Log(Protocol):
    """Where commits go. Nothing that was put may be answered before `flush` returned."""

    def put(self, record: Record, collection: int) -> None:
        """Queue a record, in place of an earlier one of its row."""
        ...

    def remove(self, row: int) -> None:
        """Queue the removal of a row."""
        ...

    def put_catalog(self, kind: str, number: int, parent: int, body: bytes) -> None:
        """Queue a database, collection or index."""
        ...

    def remove_catalog(self, number: int) -> None:
        """Queue the removal of a database, collection or index."""
        ...

    def put_bounds(self, bounds: dict[str, int]) -> None:
        """Queue new upper bounds of what may be handed out."""
        ...

    def force(self) -> None:
        """Let the next flush survive a power loss too (waitForSync)."""
        ...

    def flush(self) -> None:
        """Write the queue.

        Raises:
            LogFailed: The disk refused; nothing of the queue may be answered.
        """
        ...

    def close(self) -> None:
        """Flush and close."""
        ...


class NoLog:
    """Keeps nothing: for engines that live in memory only."""

    def put(self, record: Record, collection: int) -> None:
        """Do nothing."""

    def remove(self, row: int) -> None:
        """Do nothing."""

    def put_catalog(self, kind: str, number: int, parent: int, body: bytes) -> None:
        """Do nothing."""

    def remove_catalog(self, number: int) -> None:
        """Do nothing."""

    def put_bounds(self, bounds: dict[str, int]) -> None:
        """Do nothing."""

    def force(self) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class SqliteLog:
    """The log in `engine.sqlite` of a data directory, which this process owns while it is open.

    Args:
        directory: Made if it is not there.

    Raises:
        LogDamaged: The directory is in use by another process, not writable, or not ours.
    """

    def __init__(self, directory: Path) -> None:
        self._documents: dict[int, tuple[int, bytes] | None] = {}
        self._catalog: dict[int, tuple[str, int, bytes] | None] = {}
        self._bounds: dict[str, int] = {}
        self._is_forced = False
        self._is_broken = False
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._connection = _open(directory / "engine.sqlite")
        except (OSError, sqlite3.Error) as error:
            reason = "in use by another process" if "locked" in str(error) else str(error)
            raise LogDamaged(f"data directory {directory} cannot be used: {reason}") from error

    # Reading, at start.

    def bounds(self) -> dict[str, int]:
        """Return the stored upper bounds."""
        return dict(self._rows("SELECT name, value FROM bounds"))

    def catalog(self) -> Iterator[tuple[int, str, int, bytes]]:
        """Yield number, kind, parent and body of all databases, collections and indexes."""
        yield from self._rows("SELECT number, kind, parent, body FROM catalog ORDER BY number")

    def documents(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield row, collection and body of all documents, in the order of their rows."""
        yield from self._rows("SELECT row, collection, body FROM documents ORDER BY row")

    def _rows(self, statement: str) -> Iterator[Any]:
        try:
            yield from self._connection.execute(statement)
        except sqlite3.Error as error:
            raise LogDamaged(f"the data are damaged: {error}") from error

    # Writing.

    def put(self, record: Record, collection: int) -> None:
        """Queue a record, in place of an earlier one of its row."""
        self._documents[record.row] = (collection, record.blob)

    def remove(self, row: int) -> None:
        """Queue the removal of a row."""
        self._documents[row] = None

    def put_catalog(self, kind: str, number: int, parent: int, body: bytes) -> None:
        """Queue a database, collection or index."""
        self._catalog[number] = (kind, parent, body)

    def remove_catalog(self, number: int) -> None:
        """Queue the removal of a database, collection or index."""
        self._catalog[number] = None

    def put_bounds(self, bounds: dict[str, int]) -> None:
        """Queue new upper bounds of what may be handed out."""
        self._bounds.update(bounds)

    def force(self) -> None:
        """Let the next flush survive a power loss too."""
        self._is_forced = True

    def flush(self) -> None:
        """Write the queue in one SQLite transaction.

        Raises:
            LogFailed: The disk refused; nothing of the queue may be answered.
        """
        if self._is_broken:
            raise LogFailed("the log could not be written before")
        if not (self._documents or self._catalog or self._bounds):
            return
        execute = self._connection.execute
        try:
            if self._is_forced:
                execute("PRAGMA synchronous=FULL")
            is_one_statement = len(self._documents) == 1 and not (self._catalog or self._bounds)
            if not is_one_statement:  # a statement alone is a transaction of its own
                execute("BEGIN")
            self._write()
            if not is_one_statement:
                execute("COMMIT")
            if self._is_forced:
                execute("PRAGMA synchronous=NORMAL")
        except sqlite3.Error as error:
            self._is_broken = True
            raise LogFailed(f"the log cannot be written: {error}") from error
        self._documents, self._catalog, self._bounds = {}, {}, {}
        self._is_forced = False

    def _write(self) -> None:
        many = self._connection.executemany
        if self._documents:
            kept = [(row, *item) for row, item in self._documents.items() if item is not None]
            if kept:
                many("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", kept)
            if len(kept) < len(self._documents):
                gone = [(row,) for row, item in self._documents.items() if item is None]
                many("DELETE FROM documents WHERE row = ?", gone)
        for number, entry in self._catalog.items():
            if entry is None:
                many("DELETE FROM catalog WHERE number = ?", [(number,)])
            else:
                many("INSERT OR REPLACE INTO catalog VALUES (?, ?, ?, ?)", [(number, *entry)])
        if self._bounds:
            many("INSERT OR REPLACE INTO bounds VALUES (?, ?)", list(self._bounds.items()))

    def size_bytes(self) -> int:
        """Return the size of the database, without what waits in the write-ahead log."""
        (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
        (page_bytes,) = self._connection.execute("PRAGMA page_size").fetchone()
        return int(pages) * int(page_bytes)

    def limit_pages(self, count: int) -> None:
        """Let writes fail when the database would be larger than `count` pages."""
        self._connection.execute(f"PRAGMA max_page_count={count:d}")

    def compact(self) -> None:
        """Give free pages back to the disk if they are most of the file. Takes a rewrite of it."""
        (free,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
        if free > max(_COMPACT_SHARE * pages, _COMPACT_PAGES_MIN):
            self._connection.execute("VACUUM")

    def close(self) -> None:
        """Flush, unless a flush has failed before, and close."""
        if not self._is_broken:
            self.flush()
        self._connection.close()


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, _SCHEMA_VERSION):
            raise LogDamaged(f"{path} has schema version {version}, this is {_SCHEMA_VERSION}")
        connection.execute("BEGIN EXCLUSIVE")
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version={_SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection
