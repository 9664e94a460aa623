"""Stream transactions: a snapshot, own writes on top of it, one step at the commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.storage.access import CollectionAccess
from region_scheduler.embedded.arango.storage.collection import Collection, unique_violated
from region_scheduler.embedded.arango.storage.database import GRAPHS, Database
from region_scheduler.embedded.arango.storage.horizon import Commit, Horizon
from region_scheduler.embedded.arango.storage.indexes import PersistentIndex
from region_scheduler.embedded.arango.storage.layers import Layer
from region_scheduler.embedded.arango.storage.locks import LockTable, locks_of
from region_scheduler.embedded.arango.storage.record import Record, changed_key, steps_of
from region_scheduler.embedded.arango.storage.ticks import Ticks
from region_scheduler.embedded.arango.storage.transaction import LayeredAccess, Transaction

Mode = Literal["read", "write", "exclusive"]
Own = dict[str, Record | None]


class StreamTransaction(Transaction):
    """Reads the state at its begin plus its own writes, which nobody else sees before the commit.

    Args:
        id: Names it in `x-arango-trx-id`, and owns its locks.
        modes: What each declared collection may be used for.
        may_read_all: Whether undeclared collections may be read (allowImplicit).
        horizon: Registered for commits from the begin on.
        locks: Shared by all transactions.
    """

    def __init__(
        self,
        id: str,
        database: Database,
        ticks: Ticks,
        is_cluster: bool,
        *,
        modes: Mapping[str, Mode],
        may_read_all: bool,
        horizon: Horizon,
        locks: LockTable,
    ) -> None:
        super().__init__(database, ticks, is_cluster)
        self.id = id
        self.horizon = horizon
        self.locks = locks
        self._modes = modes
        self._may_read_all = may_read_all
        self._own: dict[int, Own] = {}
        self._undo: list[tuple[Own, str, Record | None, bool]] = []

    def _open(self, collection: Collection) -> CollectionAccess:
        mode = self._modes.get(collection.name)
        is_open = self._may_read_all or collection.name == GRAPHS
        if mode is None and not is_open:
            raise ArangoError(
                1652, f"unregistered collection used in transaction: {collection.name}"
            )
        return _StreamAccess(collection, self, mode in ("write", "exclusive"))

    def own(self, collection: Collection) -> Own:
        """Return what this transaction wrote to `collection` so far."""
        return self._own.setdefault(collection.number, {})

    def write(self, collection: Collection, key: str, after: Record | None) -> None:
        """Note a checked write."""
        own = self.own(collection)
        self._undo.append((own, key, own.get(key), key in own))
        own[key] = after

    def savepoint(self) -> object:
        """Mark a point."""
        return len(self._undo)

    def rollback(self, mark: object) -> None:
        """Undo what was written since `mark`; the locks are kept."""
        assert isinstance(mark, int)
        while len(self._undo) > mark:
            own, key, before, was_there = self._undo.pop()
            if was_there:
                own[key] = before
            else:
                del own[key]

    def commit(self) -> Commit:
        """Put the own writes in place and return them, to be published."""
        changes: list[tuple[Collection, Record | None, Record | None]] = []
        for collection in self.source.collections.values():
            for key, after in self._own.get(collection.number, {}).items():
                for step in steps_of(collection.record(key), after):
                    collection.put(*step)
                    changes.append((collection, *step))
        return changes


class _StreamAccess(LayeredAccess):
    def __init__(self, collection: Collection, owner: StreamTransaction, may_write: bool) -> None:
        super().__init__(collection, owner.ticks)
        self._owner = owner
        self._may_write = may_write

    def layer(self) -> Layer:
        past = self._owner.horizon.past(self.source)
        own = self._owner.own(self.source)
        if not past:
            return own
        return {**past, **own} if own else past

    def store(self, before: Record | None, after: Record | None) -> None:
        owner, collection = self._owner, self.source
        if not self._may_write:
            raise ArangoError(
                1652, f"unregistered collection used in transaction: {collection.name}"
            )
        key = changed_key(before, after)
        old = None if before is None else self._cache.document(before)
        new = None if after is None else self._cache.document(after)
        locks = locks_of(collection, key, old, new)
        owner.locks.check(owner.id, collection, locks)
        if key in owner.horizon.past(collection):
            raise ArangoError(1200, "write-write conflict")
        if after is not None:
            self._check_unique(after)
        owner.locks.take(owner.id, locks)
        owner.write(collection, key, after)

    def _check_unique(self, after: Record) -> None:
        document = self._cache.document(after)
        layer = self.layer()
        own = self._owner.own(self.source)
        for index in self.source.indexes:
            if not (isinstance(index, PersistentIndex) and index.definition.is_unique):
                continue
            for fields in index.keys_of(document):
                present = index.holder(fields, after.row)
                if present is not None and present not in own:
                    if present in layer:  # taken by a commit that this snapshot does not show
                        raise ArangoError(1200, "write-write conflict")
                    raise unique_violated(index, present)
            for record in own.values():
                if record is None or record.row == after.row:
                    continue
                theirs = index.keys_of(self._cache.document(record))
                if not set(theirs).isdisjoint(index.keys_of(document)):
                    raise unique_violated(index, record.key)
