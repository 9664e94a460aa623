"""Transactions: the view and the writes of one request, or of a reader of a past state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, Final

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import EdgeDefinition, Range
from region_scheduler.embedded.arango.storage.access import CollectionAccess
from region_scheduler.embedded.arango.storage.collection import Collection
from region_scheduler.embedded.arango.storage.database import GRAPHS, Database
from region_scheduler.embedded.arango.storage.horizon import Commit, Horizon
from region_scheduler.embedded.arango.storage.indexes import Index, PersistentIndex
from region_scheduler.embedded.arango.storage.layers import (
    Layer,
    layered_count,
    layered_found,
    layered_record,
    layered_records,
)
from region_scheduler.embedded.arango.storage.locks import LockTable, locks_of
from region_scheduler.embedded.arango.storage.record import Record, changed_key
from region_scheduler.embedded.arango.storage.ticks import Ticks

_key_of: Final = itemgetter(-1)
"""An entry of an index ends with the key of its document."""


class Transaction(ABC):
    """What every kind of transaction is for the language: a `Session` on one database.

    Args:
        database: The database.
        ticks: Revisions, rows and keys.
        is_cluster: Whether cluster rules hold.
    """

    def __init__(self, database: Database, ticks: Ticks, is_cluster: bool) -> None:
        self.source = database
        self.database = database.name
        self.ticks = ticks
        self.is_cluster = is_cluster
        self._accesses: dict[str, CollectionAccess] = {}

    def collection(self, name: str) -> CollectionAccess:
        """Return the collection as this transaction sees it.

        Raises:
            ArangoError: 1203; 1652 for one that a stream transaction did not declare.
        """
        access = self._accesses.get(name)
        if access is None:
            access = self._accesses[name] = self._open(self.source.collection(name))
        return access

    def collections(self) -> Sequence[str]:
        """Return the names of all collections."""
        return list(self.source.collections)

    def graph(self, name: str) -> Sequence[EdgeDefinition]:
        """Return a named graph's relations.

        Raises:
            ArangoError: 1924.
        """
        access = self._open(self.source.collection(GRAPHS))
        document = access.get(name)
        if document is None:
            raise ArangoError(1924, f"graph '{name}' not found")
        return [
            EdgeDefinition(one["collection"], tuple(one["from"]), tuple(one["to"]))
            for one in document["edgeDefinitions"]
        ]

    @abstractmethod
    def _open(self, collection: Collection) -> CollectionAccess: ...

    @abstractmethod
    def savepoint(self) -> object:
        """Mark a point; with `rollback(mark)` a failed query leaves nothing behind."""

    @abstractmethod
    def rollback(self, mark: object) -> None:
        """Undo what was written since `mark`."""


class DirectTransaction(Transaction):
    """A request's own transaction: it writes in place, for nobody else runs meanwhile.

    Under cluster rules a query that fails at one document takes back only what it wrote to that
    document's shard, the worst that ArangoDB allows: other shards may keep their part.
    """

    def __init__(
        self, database: Database, ticks: Ticks, is_cluster: bool, locks: LockTable
    ) -> None:
        super().__init__(database, ticks, is_cluster)
        self.locks = locks
        self.changes: list[tuple[Collection, Record | None, Record | None]] = []
        self.failed_at: tuple[Collection, int] | None = None
        self._kept = 0

    def _open(self, collection: Collection) -> CollectionAccess:
        return _PlaceAccess(collection, self)

    def savepoint(self) -> object:
        """Mark a point."""
        return len(self.changes)

    def rollback(self, mark: object) -> None:
        """Undo what was written since `mark`, or the failed shard's part of it in a cluster."""
        assert isinstance(mark, int)
        kept: list[tuple[Collection, Record | None, Record | None]] = []
        while len(self.changes) > mark:
            change = self.changes.pop()
            if self._is_out_of_reach(*change):
                kept.append(change)
            else:
                collection, before, after = change
                collection.put(after, before)
        self.changes += reversed(kept)
        self._kept = len(self.changes)

    def _is_out_of_reach(
        self, collection: Collection, before: Record | None, after: Record | None
    ) -> bool:
        if not self.is_cluster or self.source.is_one_shard or self.failed_at is None:
            return False
        shard = collection.shard_of(changed_key(before, after))
        return self.failed_at != (collection, shard)

    def fail(self) -> None:
        """Undo everything, but for what a failed query left on other shards."""
        kept, self.failed_at = self._kept, None
        self.rollback(kept)

    def commit(self) -> Commit:
        """Return what was written, to be published."""
        return self.changes


class _PlaceAccess(CollectionAccess):
    def __init__(self, collection: Collection, owner: DirectTransaction) -> None:
        super().__init__(collection, owner.ticks)
        self._owner = owner

    def record(self, key: str) -> Record | None:
        return self.source.record(key)

    def records(self) -> Sequence[Record]:
        return self.source.records()

    def count(self) -> int:
        return len(self.source)

    def found(
        self, index: Index, equal: Sequence[Any], bounds: Range | None, is_reverse: bool
    ) -> Iterator[Record]:
        entries = index.between(index.span(equal, bounds), is_reverse)
        keys: Iterator[str] = map(_key_of, entries)
        if isinstance(index, PersistentIndex) and index.has_array:
            keys = iter(dict.fromkeys(keys))
        return filter(None, map(self.source.record, keys))

    def note_failure(self, body: Any) -> None:
        key = body.get("_key") if isinstance(body, dict) else body
        if isinstance(key, str):
            self._owner.failed_at = (self.source, self.source.shard_of(key))

    def store(self, before: Record | None, after: Record | None) -> None:
        collection = self.source
        new = None if after is None else self._cache.document(after)
        if not self._owner.locks.is_idle:
            old = None if before is None else self._cache.document(before)
            locks = locks_of(collection, changed_key(before, after), old, new)
            self._owner.locks.check(None, collection, locks)
        if after is not None and new is not None:
            collection.check_unique(new, after.row)
        collection.put(before, after)
        self._owner.failed_at = None
        self._owner.changes.append((collection, before, after))


class PastReader(Transaction):
    """A reader of a past state: a follower that lags, or a leader that was deposed."""

    def __init__(
        self, database: Database, ticks: Ticks, is_cluster: bool, horizon: Horizon
    ) -> None:
        super().__init__(database, ticks, is_cluster)
        self._horizon = horizon

    def _open(self, collection: Collection) -> CollectionAccess:
        return _PastAccess(collection, self.ticks, self._horizon)

    def savepoint(self) -> object:
        """Return a mark; nothing is ever written here."""
        return 0

    def rollback(self, mark: object) -> None:
        """Do nothing: nothing was written."""


class LayeredAccess(CollectionAccess):
    """A collection under a layer of records that replace the present ones."""

    @abstractmethod
    def layer(self) -> Layer:
        """Return the keys that are other than at present."""

    def record(self, key: str) -> Record | None:
        """Return the record of `key` under the layer."""
        return layered_record(self.source, self.layer(), key)

    def records(self) -> Sequence[Record]:
        """Return all records under the layer."""
        return layered_records(self.source, self.layer())

    def count(self) -> int:
        """Return how many documents there are under the layer."""
        return layered_count(self.source, self.layer())

    def found(
        self, index: Index, equal: Sequence[Any], bounds: Range | None, is_reverse: bool
    ) -> Iterator[Record]:
        """Yield what an index lookup finds under the layer."""
        return layered_found(self.source, self.layer(), index, equal, bounds, is_reverse)


class _PastAccess(LayeredAccess):
    def __init__(self, collection: Collection, ticks: Ticks, horizon: Horizon) -> None:
        super().__init__(collection, ticks)
        self._horizon = horizon

    def layer(self) -> Layer:
        return self._horizon.past(self.source)

    def store(self, _before: Record | None, _after: Record | None) -> None:
        raise ArangoError(1004, "a read from a follower must not write")
