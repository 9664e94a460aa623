"""The storage as one thing: begin and finish transactions, keep past states, load and flush."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from random import Random

import orjson

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.storage.collection import Collection
from region_scheduler.embedded.arango.storage.database import SYSTEM, Catalog, Database
from region_scheduler.embedded.arango.storage.horizon import Commit, Horizon
from region_scheduler.embedded.arango.storage.locks import LockTable
from region_scheduler.embedded.arango.storage.log import Log, LogDamaged, NoLog, SqliteLog
from region_scheduler.embedded.arango.storage.record import DocumentCache, Record, steps_of
from region_scheduler.embedded.arango.storage.streaming import Mode, StreamTransaction
from region_scheduler.embedded.arango.storage.ticks import Ticks
from region_scheduler.embedded.arango.storage.transaction import DirectTransaction


class Store:
    """All databases of an engine. Callers hold the engine's lock.

    Args:
        log: A log that was just opened; its content is loaded.
        clock: Seconds that only rise.
        wall: Seconds since the epoch.
        chance: For uuid keys.
        is_cluster: Whether cluster rules hold.
        cache_bytes: How much JSON text may be kept decoded as well.

    Raises:
        LogDamaged: The log holds something that is not ours.
    """

    def __init__(
        self,
        log: SqliteLog | NoLog,
        *,
        clock: Callable[[], float],
        wall: Callable[[], float],
        chance: Random,
        is_cluster: bool,
        cache_bytes: int = 48 << 20,
    ) -> None:
        self._clock = clock
        self.log: Log = log
        self.cache = DocumentCache(cache_bytes)
        self.locks = LockTable()
        self.horizons: list[Horizon] = []
        self.is_cluster = is_cluster
        bounds = log.bounds() if isinstance(log, SqliteLog) else {}
        self.ticks = Ticks(wall, chance, bounds.get("revision", 0), bounds.get("tick", 0))
        self.catalog = Catalog(log, self.ticks, self.cache, is_cluster)
        if isinstance(log, SqliteLog):
            self._load(log)
        if SYSTEM not in self.catalog.databases:
            self.catalog.create_database(SYSTEM, {})
        self.flush()

    # Transactions.

    def begin(self, database: Database) -> DirectTransaction:
        """Begin a request's own transaction; nothing else runs before `finish` or `undo`."""
        return DirectTransaction(database, self.ticks, self.is_cluster, self.locks)

    def finish(self, commit: Commit) -> None:
        """Publish what a transaction wrote: to past states and to the log's queue."""
        if not commit:
            return
        if self.horizons:
            now = self._clock()
            for horizon in self.horizons:
                horizon.absorb(commit, now)
        put, remove = self.log.put, self.log.remove
        for collection, before, after in commit:
            if after is not None:
                put(after, collection.number)
            elif before is not None:
                remove(before.row)

    def begin_stream(
        self, database: Database, modes: Mapping[str, Mode], may_read_all: bool
    ) -> StreamTransaction:
        """Begin a stream transaction on the present state.

        Args:
            database: The database.
            modes: What each declared collection is used for.
            may_read_all: Whether others may be read.

        Raises:
            ArangoError: 1203 for an unknown collection, 18 for one in exclusive use.
        """
        numbers = {name: database.collection(name).number for name in modes}
        id = str(self.ticks.next_tick())
        self.locks.open(
            id,
            [numbers[name] for name, mode in modes.items() if mode == "write"],
            [numbers[name] for name, mode in modes.items() if mode == "exclusive"],
        )
        horizon = Horizon()
        self.horizons.append(horizon)
        return StreamTransaction(
            id,
            database,
            self.ticks,
            self.is_cluster,
            modes=modes,
            may_read_all=may_read_all,
            horizon=horizon,
            locks=self.locks,
        )

    def end_stream(self, transaction: StreamTransaction, is_commit: bool) -> None:
        """Commit or abort a stream transaction, once."""
        self.horizons.remove(transaction.horizon)
        self.locks.close(transaction.id)
        if is_commit:
            self.finish(transaction.commit())

    def restore(self, horizon: Horizon) -> None:
        """Set all documents back to a past state, as one commit."""
        changes: list[tuple[Collection, Record | None, Record | None]] = []
        for database in self.catalog.databases.values():
            for collection in database.collections.values():
                for key, past in horizon.past(collection).items():
                    for step in steps_of(collection.record(key), past):
                        collection.put(*step)
                        changes.append((collection, *step))
        self.finish(changes)

    # Durability.

    def flush(self) -> None:
        """Write everything that was finished; only then it may be answered.

        Raises:
            LogFailed: The disk refused.
        """
        due = self.ticks.reserve()
        if due:
            self.log.put_bounds(due)
        self.log.flush()

    def close(self) -> None:
        """Flush and close the log."""
        self.flush()
        self.log.close()

    def _load(self, log: SqliteLog) -> None:
        # Millions of small objects are made and none becomes garbage: collecting only walks them.
        was_collecting = gc.isenabled()
        gc.disable()
        try:
            collections = self._load_catalog(log)
            self._load_documents(log, collections)
            log.compact()
        except (ValueError, KeyError, TypeError, StopIteration, ArangoError) as error:
            raise LogDamaged(f"the data are damaged: {error!r}") from error
        finally:
            gc.freeze()
            if was_collecting:
                gc.enable()

    def _load_catalog(self, log: SqliteLog) -> dict[int, Collection]:
        collections: dict[int, Collection] = {}
        for number, kind, parent, body in log.catalog():
            if kind == "database":
                self.catalog.adopt_database(number, orjson.loads(body))
            elif kind == "collection":
                stored = orjson.loads(body)
                collections[number] = self.catalog.adopt_collection(number, parent, stored)
            else:
                self.catalog.adopt_index(collections[parent], number, orjson.loads(body))
        return collections

    def _load_documents(self, log: SqliteLog, collections: dict[int, Collection]) -> None:
        row = 0
        for row, number, blob in log.documents():
            document = orjson.loads(blob)
            record = Record(row, document["_key"], document["_rev"], blob, None)
            collections[number].load(record, document)
        for collection in collections.values():
            collection.finish_loading()
        self.ticks.continue_rows(row + 1)
