"""One collection as one transaction sees it: the write rules, over whatever keeps the records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import (
    Document,
    IndexView,
    OverwriteMode,
    Range,
    WriteOptions,
)
from region_scheduler.embedded.arango.storage.collection import Collection
from region_scheduler.embedded.arango.storage.document_rules import (
    is_empty_patch,
    is_outdated,
    key_of,
    merged,
    new_document,
    require_object,
)
from region_scheduler.embedded.arango.storage.indexes import EdgeIndex, Index
from region_scheduler.embedded.arango.storage.keys import check_key
from region_scheduler.embedded.arango.storage.record import Record
from region_scheduler.embedded.arango.storage.ticks import Ticks

Change = tuple[Record | None, Record | None]
Direction = Literal["outbound", "inbound"]


class CollectionAccess(ABC):
    """The rules of reading and writing, common to all transactions; implements `CollectionView`.

    Args:
        collection: The present state underneath.
        ticks: Revisions, rows and keys for what is written.
    """

    def __init__(self, collection: Collection, ticks: Ticks) -> None:
        self.source = collection
        self.id = str(collection.number)
        self.is_edge = collection.is_edge
        self._ticks = ticks
        self._cache = collection.cache
        self._indexes: Sequence[IndexView] = ()
        self._indexed: Sequence[Index] = ()

    @property
    def name(self) -> str:
        """The collection's name."""
        return self.source.name

    @property
    def indexes(self) -> Sequence[IndexView]:
        """The access paths that a query may use."""
        present = self.source.indexes
        if self._indexed is not present or len(self._indexes) != len(present):
            self._indexed = present
            self._indexes = [IndexAccess(self, index) for index in present]
        return self._indexes

    # What the kinds of transaction differ in.

    @abstractmethod
    def record(self, key: str) -> Record | None:
        """Return the record of `key` that this transaction sees."""

    @abstractmethod
    def records(self) -> Sequence[Record]:
        """Return all records that this transaction sees, as of now, in insertion order."""

    @abstractmethod
    def count(self) -> int:
        """Return how many documents this transaction sees."""

    @abstractmethod
    def found(
        self, index: Index, equal: Sequence[Any], bounds: Range | None, is_reverse: bool
    ) -> Iterator[Record]:
        """Yield the records that an index lookup finds, in index order."""

    @abstractmethod
    def store(self, before: Record | None, after: Record | None) -> None:
        """Replace `before`, which this transaction sees, by `after`.

        Raises:
            ArangoError: 1200 if another transaction was first, 1210 for a unique index, 1652 if
                this transaction may not write here. Nothing was written.
        """

    def note_failure(self, body: Any) -> None:  # noqa: B027  # most kinds undo all alike
        """Note that the write that `body` asked for failed; its query is about to fail too."""

    # Reading.

    def get(self, key: str) -> Document | None:
        """Return the document of `key`."""
        record = self.record(key)
        return None if record is None else self._cache.document(record)

    def scan(self) -> Iterator[Document]:
        """Yield all documents in insertion order, without what is written later."""
        return map(self._cache.document, self.records())

    def edges(self, vertex_id: str, direction: Direction) -> Sequence[Document]:
        """Return the edges that leave or enter `vertex_id`; none if this is no edge collection."""
        if not self.is_edge:
            return ()
        index = self.source.leaving if direction == "outbound" else self.source.entering
        return [self._cache.document(r) for r in self.edge_records(index, vertex_id)]

    def edge_records(self, index: EdgeIndex, vertex_id: str) -> Sequence[Record]:
        """Return the edges at one end of `vertex_id`."""
        return list(self.found(index, (vertex_id,), None, False))

    # Writing, in records.

    def insert_record(self, body: Any, options: WriteOptions) -> Change:
        """Insert, or do what `overwrite_mode` says; return (before, after)."""
        collection = self.source
        keys = collection.properties.key_options
        before: Record | None = None
        if "_key" not in require_object(body):
            key = keys.new_key(self._ticks.next_tick, self._ticks.chance)
        else:
            key = check_key(body["_key"])
            before = self.record(key)
            if not keys.may_be_given and before is None:
                raise ArangoError(1222)
            if collection.properties.shard_keys != ("_key",):
                raise ArangoError(1466)
            keys.saw(key)
        if before is not None:
            return self._overwrite(before, body, options)
        rev = self._ticks.next_rev()
        document = new_document(collection.name, self.is_edge, key, rev, body)
        properties = collection.properties
        if properties.schema is not None or properties.computed_values is not None:
            document = properties.completed(document, None)
        after = self._cache.record(self._ticks.next_row(), document)
        self.store(None, after)
        return None, after

    def _overwrite(self, before: Record, body: Any, options: WriteOptions) -> Change:
        mode: OverwriteMode = options.overwrite_mode
        if mode == "ignore":
            return before, None
        if mode == "replace":
            return self._replaced(before, body, options)
        if mode == "update":
            return self._updated(before, body, options)
        raise ArangoError(
            1210,
            "unique constraint violated - in index primary of type primary over '_key'; "
            f"conflicting key: {before.key}",
        )

    def update_record(
        self, key: str, rev: Any, patch: Any, options: WriteOptions
    ) -> tuple[Record, Record]:
        """Merge `patch` into the document of `key`, if it has revision `rev` (None: any)."""
        return self._updated(self.wanted(key, rev), require_object(patch), options)

    def replace_record(
        self, key: str, rev: Any, body: Any, options: WriteOptions
    ) -> tuple[Record, Record]:
        """Replace the document of `key`, if it has revision `rev` (None: any)."""
        return self._replaced(self.wanted(key, rev), require_object(body), options)

    def remove_record(self, key: str, rev: Any) -> Record:
        """Remove the document of `key`, if it has revision `rev` (None: any), and return it."""
        before = self.wanted(key, rev)
        self.store(before, None)
        return before

    def wanted(self, key: str, rev: Any = None) -> Record:
        """Return the record of `key`.

        Raises:
            ArangoError: 1202 if there is none, 1200 if it has another revision than `rev`.
        """
        record = self.record(key)
        if record is None:
            raise ArangoError(1202)
        if rev is not None and rev != record.rev:
            raise ArangoError(
                1200,
                "conflict, _rev values do not match",
                _id=f"{self.name}/{record.key}",
                _key=record.key,
                _rev=record.rev,
            )
        return record

    def _updated(
        self, before: Record, patch: dict[str, Any], options: WriteOptions
    ) -> tuple[Record, Record]:
        old = self._cache.document(before)
        if is_empty_patch(patch) or is_outdated(old, patch, options.version_attribute):
            return before, before
        document = merged(
            old,
            patch,
            self._ticks.next_rev(),
            self.is_edge,
            keep_null=options.keep_null,
            merge_objects=options.merge_objects,
        )
        return self._stored(before, old, document)

    def _replaced(
        self, before: Record, body: dict[str, Any], options: WriteOptions
    ) -> tuple[Record, Record]:
        old = self._cache.document(before)
        if is_outdated(old, body, options.version_attribute):
            return before, before
        rev = self._ticks.next_rev()
        document = new_document(self.name, self.is_edge, before.key, rev, body)
        return self._stored(before, old, document)

    def _stored(self, before: Record, old: Document, document: Document) -> tuple[Record, Record]:
        properties = self.source.properties
        if properties.schema is not None or properties.computed_values is not None:
            document = properties.completed(document, old)
        if properties.shard_keys != ("_key",):
            for name in properties.shard_keys:
                if old.get(name) != document.get(name):
                    raise ArangoError(1469)
        after = self._cache.record(before.row, document)
        self.store(before, after)
        return before, after

    # Writing, in documents.

    def insert(
        self, document: Any, options: WriteOptions
    ) -> tuple[Document | None, Document | None]:
        """Insert; return (old, new). With `ignore` on an existing key: (existing, None)."""
        try:
            before, after = self.insert_record(document, options)
        except ArangoError:
            self.note_failure(document)
            raise
        return (
            None if before is None else self._cache.document(before),
            None if after is None else self._cache.document(after),
        )

    def update(self, patch: Any, options: WriteOptions) -> tuple[Document, Document]:
        """Merge `patch` into the document that it names; return (old, new)."""
        return self._changed(self.update_record, patch, options)

    def replace(self, document: Any, options: WriteOptions) -> tuple[Document, Document]:
        """Replace the document that `document` names; return (old, new)."""
        return self._changed(self.replace_record, document, options)

    def _changed(
        self,
        act: Callable[[str, Any, Any, WriteOptions], tuple[Record, Record]],
        body: Any,
        options: WriteOptions,
    ) -> tuple[Document, Document]:
        try:
            before, after = act(key_of(self.name, body), wanted_rev(body, options), body, options)
        except ArangoError:
            self.note_failure(body)
            raise
        return self._cache.document(before), self._cache.document(after)

    def remove(self, selector: Any, options: WriteOptions) -> Document:
        """Remove the document that `selector` names; return it."""
        try:
            record = self.remove_record(key_of(self.name, selector), wanted_rev(selector, options))
        except ArangoError:
            self.note_failure(selector)
            raise
        return self._cache.document(record)


class IndexAccess:
    """One access path of a collection, as one transaction sees it; implements `IndexView`."""

    def __init__(self, access: CollectionAccess, index: Index) -> None:
        definition = index.definition
        self._access = access
        self._index = index
        self.id = f"{access.name}/{definition.number}"
        self.name = definition.name
        self.type = "persistent" if definition.type in ("hash", "skiplist") else definition.type
        self.fields = index.fields
        self.is_unique = definition.is_unique
        self.is_sparse = definition.is_sparse

    def lookup(
        self, equal: Sequence[Any], bounds: Range | None = None, is_reverse: bool = False
    ) -> Iterator[Document]:
        """Yield the documents whose leading fields equal `equal`, in index order."""
        records = self._access.found(self._index, equal, bounds, is_reverse)
        return map(self._access.source.cache.document, records)

    def count(self, equal: Sequence[Any], bounds: Range | None = None) -> int:
        """Return how many documents `lookup` would yield, without decoding any."""
        return sum(1 for _ in self._access.found(self._index, equal, bounds, False))


def wanted_rev(body: Any, options: WriteOptions) -> Any:
    """Return the revision that `body` makes a condition of the write; None for no condition."""
    if options.ignore_revs or type(body) is not dict:
        return None
    return body.get("_rev")
