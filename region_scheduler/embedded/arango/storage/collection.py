"""One collection: its records, its indexes, its properties."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import Document
from region_scheduler.embedded.arango.storage.index_definition import (
    EDGE,
    PASSIVE_TYPES,
    PRIMARY,
    IndexDefinition,
)
from region_scheduler.embedded.arango.storage.indexes import (
    EdgeIndex,
    Index,
    PersistentIndex,
    PrimaryIndex,
)
from region_scheduler.embedded.arango.storage.properties import CollectionProperties
from region_scheduler.embedded.arango.storage.record import DocumentCache, Record


class Collection:
    """The present state of a collection. Only transactions write to it, through `put`.

    Args:
        number: Its id; never reused.
        properties: Name, type and options.
        cache: Shared by all collections of an engine.
    """

    def __init__(self, number: int, properties: CollectionProperties, cache: DocumentCache) -> None:
        self.number = number
        self.properties = properties
        self.cache = cache
        self.definitions: list[IndexDefinition] = [PRIMARY]
        self._records: dict[str, Record] = {}
        self._uniques: list[PersistentIndex] = []
        self._row_last = -1
        self._is_in_order = True
        self.indexes: list[Index] = [PrimaryIndex(PRIMARY, self._records)]
        if properties.is_edge:
            self.definitions.append(EDGE)
            self.leaving = EdgeIndex(EDGE, "_from")
            self.entering = EdgeIndex(EDGE, "_to")
            self.indexes += [self.leaving, self.entering]

    @property
    def name(self) -> str:
        """The name; it may change on a single server."""
        return self.properties.name

    @property
    def is_edge(self) -> bool:
        """Whether documents need `_from` and `_to`."""
        return self.properties.is_edge

    def __len__(self) -> int:
        return len(self._records)

    def record(self, key: str) -> Record | None:
        """Return the present record of `key`."""
        return self._records.get(key)

    def records(self) -> Sequence[Record]:
        """Return all present records in insertion order; the sequence is the caller's own."""
        if not self._is_in_order:
            ordered = sorted(self._records.values(), key=lambda record: record.row)
            self._records.clear()
            self._records.update((record.key, record) for record in ordered)
            self._is_in_order = True
        return list(self._records.values())

    def shard_of(self, key: str) -> int:
        """Return the shard that `key` lives on, from 0."""
        count = self.properties.shard_count
        return zlib.crc32(key.encode()) % count if count > 1 else 0

    def put(self, before: Record | None, after: Record | None) -> None:
        """Replace `before` by `after` (same key) in the records and in every index."""
        old = self.cache.document(before) if before is not None else None
        new = self.cache.document(after) if after is not None else None
        if after is not None:
            if before is None:
                self._is_in_order = self._is_in_order and after.row > self._row_last
                self._row_last = max(self._row_last, after.row)
            self._records[after.key] = after
            row = after.row
        elif before is not None:
            del self._records[before.key]
            row = before.row
        else:
            return
        for index in self.indexes:
            index.put(row, old, new)

    def load(self, record: Record, document: Document) -> None:
        """Take over a stored record; rows must rise. It is found after `finish_loading`."""
        self._records[record.key] = record
        self._row_last = record.row
        self.properties.key_options.saw(record.key)
        for index in self.indexes:
            if isinstance(index, PersistentIndex):
                index.load(record.row, document)
            else:
                index.put(record.row, None, document)

    def finish_loading(self) -> None:
        """Build the indexes of what was loaded."""
        for index in self.indexes:
            if isinstance(index, PersistentIndex):
                index.finish_loading()

    def check_unique(self, document: Document, row: int) -> None:
        """Refuse `document` if another one holds one of its values in a unique index.

        Raises:
            ArangoError: 1210.
        """
        for index in self._uniques:
            check_unique_in(index, index.keys_of(document), row)

    def add_index(self, definition: IndexDefinition) -> tuple[IndexDefinition, bool]:
        """Build an index; return it (or the same one that is there) and whether it is new.

        Raises:
            ArangoError: 1207 for a name that is taken; 400/1210 if the content is not unique.
        """
        for known in self.definitions:
            if known.is_same_as(definition):
                return known, False
        if any(known.name == definition.name for known in self.definitions):
            raise ArangoError(1207, f"duplicate value for index name '{definition.name}'")
        if definition.type not in PASSIVE_TYPES:
            content = [(record.row, self.cache.document(record)) for record in self.records()]
            index = PersistentIndex(definition, content)
            if definition.is_unique:
                for row, document in content:
                    try:
                        check_unique_in(index, index.keys_of(document), row)
                    except ArangoError as error:
                        raise ArangoError(1210, error.message, status=400) from error
                self._uniques.append(index)
            self.indexes.append(index)
        self.definitions.append(definition)
        return definition, True

    def drop_index(self, wanted: str) -> IndexDefinition:
        """Remove an index and return what it was.

        Raises:
            ArangoError: 1212 if there is none; 11 for the primary and the edge index.
        """
        definition = self.definition(wanted)
        if definition.type in ("primary", "edge"):
            raise ArangoError(11)
        self.definitions.remove(definition)
        self.indexes = [index for index in self.indexes if index.definition is not definition]
        self._uniques = [index for index in self._uniques if index.definition is not definition]
        return definition

    def definition(self, wanted: str) -> IndexDefinition:
        """Return the index with this number or this name.

        Raises:
            ArangoError: 1212.
        """
        for definition in self.definitions:
            if wanted in (str(definition.number), definition.name):
                return definition
        raise ArangoError(1212)

    def describe_indexes(self) -> list[dict[str, Any]]:
        """Return the indexes as the HTTP API lists them."""
        return [self.describe_index(definition) for definition in self.definitions]

    def describe_index(self, definition: IndexDefinition) -> dict[str, Any]:
        """Return what the HTTP API shows of an index."""
        shown = definition.describe(self.name)
        found = next((one for one in self.indexes if one.definition is definition), None)
        if isinstance(found, PersistentIndex) and definition.type != "ttl":
            shown["selectivityEstimate"] = found.selectivity
        return shown


def check_unique_in(index: PersistentIndex, keys: Sequence[tuple[Any, ...]], row: int) -> None:
    """Refuse `keys` if the index holds one of them for another row, or if one repeats.

    Raises:
        ArangoError: 1210.
    """
    for fields in keys:
        holder = index.holder(fields, row)
        if holder is not None:
            raise unique_violated(index, holder)
    if len(keys) > 1 and len(set(keys)) < len(keys):
        raise unique_violated(index, "the document itself")


def unique_violated(index: Index, holder: str) -> ArangoError:
    """Return the error that names the index and the document in the way."""
    definition = index.definition
    fields = ", ".join(".".join(path) for path in definition.fields)
    return ArangoError(
        1210,
        f"unique constraint violated - in index {definition.name} of type {definition.type} "
        f"over '{fields}'; conflicting key: {holder}",
    )
