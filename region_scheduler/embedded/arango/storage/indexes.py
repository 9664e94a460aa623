"""The access paths of a collection, kept up to date by every write.

An *entry* is a tuple that ends in the document's row and key; what stands before are sort keys. The
entries of one index are totally ordered, so a lookup is a walk from one bound to another, and an
overlay (a transaction's own writes, a past state) can be merged in by comparing entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import inf
from typing import Any, Protocol

from region_scheduler.embedded.arango.session import Document, Range
from region_scheduler.embedded.arango.storage.index_definition import IndexDefinition
from region_scheduler.embedded.arango.storage.record import Record
from region_scheduler.embedded.arango.storage.sorted_entries import Entry, SortedEntries
from region_scheduler.embedded.arango.values import ABOVE_ALL, NULL_KEY, SortKey, sort_key

Span = tuple[Entry, Entry]
_SAMPLE = 1000


class Index(Protocol):
    """One access path. `fields` may differ from the definition's: the edge index is two paths."""

    definition: IndexDefinition
    fields: tuple[tuple[str, ...], ...]

    def span(self, equal: Sequence[Any], bounds: Range | None) -> Span:
        """Return the lowest entry that matches and the lowest one above all that match."""
        ...

    def between(self, span: Span, is_reverse: bool = False) -> Iterator[Entry]:
        """Yield the entries within `span` as they are now, whatever is written meanwhile."""
        ...

    def entries_of(self, document: Document, row: int) -> list[Entry]:
        """Return the entries that `document` has in this index."""
        ...

    def put(self, row: int, before: Document | None, after: Document | None) -> None:
        """Replace the entries of `before` by those of `after`."""
        ...


class PersistentIndex:
    """A sorted index over one or more attribute paths.

    Args:
        definition: Its type is persistent (or an older name of it) or ttl.
        content: The rows and documents that the collection already has.
    """

    def __init__(
        self, definition: IndexDefinition, content: Iterable[tuple[int, Document]] = ()
    ) -> None:
        self.definition = definition
        self.fields = definition.fields
        self.has_array = any("[*]" in part for path in self.fields for part in path)
        self._tops = tuple({path[0].removesuffix("[*]") for path in self.fields})
        self._loaded: list[Entry] = []
        self._entries = SortedEntries(
            entry for row, document in content for entry in self.entries_of(document, row)
        )

    def load(self, row: int, document: Document) -> None:
        """Note a stored document; it is found after `finish_loading`."""
        self._loaded += self.entries_of(document, row)

    def finish_loading(self) -> None:
        """Sort what was loaded: much cheaper than to insert one by one."""
        self._entries = SortedEntries(self._loaded)
        self._loaded = []

    def span(self, equal: Sequence[Any], bounds: Range | None) -> Span:
        prefix = tuple(map(sort_key, equal))
        if bounds is None or not (bounds.has_low or bounds.has_high):
            return prefix, (*prefix, self._above(len(prefix)))
        above = self._above(len(prefix) + 1)
        low: Entry = prefix
        high: Entry = (*prefix, self._above(len(prefix)))
        if bounds.has_low:
            low = (*prefix, sort_key(bounds.low))
            if not bounds.is_low_inclusive:
                low = (*low, above)
        if bounds.has_high:
            high = (*prefix, sort_key(bounds.high))
            if bounds.is_high_inclusive:
                high = (*high, above)
        return low, high

    def _above(self, position: int) -> Any:
        return ABOVE_ALL if position < len(self.fields) else inf

    def between(self, span: Span, is_reverse: bool = False) -> Iterator[Entry]:
        return self._entries.between(*span, is_reverse)

    def entries_of(self, document: Document, row: int) -> list[Entry]:
        key = document["_key"]
        return [(*fields, row, key) for fields in self.keys_of(document)]

    def keys_of(self, document: Document) -> list[tuple[SortKey, ...]]:
        """Return the sort keys that `document` is found under: one tuple, or one per element."""
        if not self.has_array:
            fields = tuple([sort_key(_value_at(document, path)) for path in self.fields])
            if self.definition.is_sparse and NULL_KEY in fields:
                return []
            return [fields]
        rows: list[tuple[SortKey, ...]] = [()]
        for path in self.fields:
            keys = _keys_at(document, path)
            rows = [(*row, key) for row in rows for key in keys]
        if self.definition.is_sparse:
            rows = [row for row in rows if NULL_KEY not in row]
        if self.definition.is_deduplicating or not self.definition.is_unique:
            return list(dict.fromkeys(rows))
        return rows

    def put(self, row: int, before: Document | None, after: Document | None) -> None:
        if before is not None and after is not None and self.is_untouched(before, after):
            return
        old = self.entries_of(before, row) if before is not None else ()
        new = self.entries_of(after, row) if after is not None else ()
        if old == new:
            return
        for entry in old:
            self._entries.remove(entry)
        for entry in new:
            self._entries.add(entry)

    def is_untouched(self, before: Document, after: Document) -> bool:
        """Return whether both hold the very same values in every attribute that is indexed."""
        for top in self._tops:
            old, new = before.get(top), after.get(top)
            # Only texts may be compared: 1 == True, also inside of arrays and objects.
            if old is not new and (type(old) is not str or old != new):
                return False
        return True

    @property
    def selectivity(self) -> float:
        """Distinct values per entry, from 0 to 1, as the first entries show it."""
        entries = list(islice(self._entries.between((), (ABOVE_ALL,)), _SAMPLE))
        distinct = {entry[: len(self.fields)] for entry in entries}
        return len(distinct) / len(entries) if entries else 1

    def holder(self, fields: tuple[SortKey, ...], row: int) -> str | None:
        """Return the key of a document other than that of `row` that is found under `fields`."""
        for entry in self._entries.between(fields, (*fields, inf)):
            if entry[-2] != row:
                return str(entry[-1])
        return None


class EdgeIndex:
    """A hashed index over `_from` or `_to`.

    Args:
        definition: The collection's edge index.
        end: "_from" or "_to".
    """

    def __init__(self, definition: IndexDefinition, end: str) -> None:
        self.definition = definition
        self.fields: tuple[tuple[str, ...], ...] = ((end,),)
        self._end = end
        self._buckets: dict[str, dict[str, int]] = {}

    def span(self, equal: Sequence[Any], bounds: Range | None) -> Span:  # noqa: ARG002  # hashed
        (vertex,) = equal
        return (vertex,), (vertex, inf)

    def between(self, span: Span, is_reverse: bool = False) -> Iterator[Entry]:
        vertex = span[0][0]
        bucket = self._buckets.get(vertex) if isinstance(vertex, str) else None
        if bucket is None:
            return iter(())
        entries = [(vertex, row, key) for key, row in bucket.items()]
        return iter(entries[::-1] if is_reverse else entries)

    def keys_at(self, vertex_id: str) -> Sequence[str]:
        """Return the keys of the edges at this end of `vertex_id`."""
        bucket = self._buckets.get(vertex_id)
        return () if bucket is None else list(bucket)

    def entries_of(self, document: Document, row: int) -> list[Entry]:
        return [(document[self._end], row, document["_key"])]

    def put(self, row: int, before: Document | None, after: Document | None) -> None:
        old = before[self._end] if before is not None else None
        new = after[self._end] if after is not None else None
        if old == new:
            return
        if before is not None:
            bucket = self._buckets[before[self._end]]
            del bucket[before["_key"]]
            if not bucket:
                del self._buckets[before[self._end]]
        if after is not None:
            self._buckets.setdefault(after[self._end], {})[after["_key"]] = row


class PrimaryIndex:
    """Lookup by `_key`; sorted only when a range is asked for.

    Args:
        definition: The collection's primary index.
        records: The collection's records, shared and kept up to date by the collection.
    """

    def __init__(self, definition: IndexDefinition, records: Mapping[str, Record]) -> None:
        self.definition = definition
        self.fields = definition.fields
        self._records = records

    def span(self, equal: Sequence[Any], bounds: Range | None) -> Span:
        if equal:
            fields = (sort_key(equal[0]),)
            return fields, (*fields, inf)
        low: Entry = ()
        high: Entry = (ABOVE_ALL,)
        if bounds is not None and bounds.has_low:
            key = sort_key(bounds.low)
            low = (key,) if bounds.is_low_inclusive else (key, inf)
        if bounds is not None and bounds.has_high:
            key = sort_key(bounds.high)
            high = (key, inf) if bounds.is_high_inclusive else (key,)
        return low, high

    def between(self, span: Span, is_reverse: bool = False) -> Iterator[Entry]:
        low, high = span
        if len(low) == 1 and high == (*low, inf):
            record = self._records.get(low[0][-1]) if low[0][0] == 3 else None
            return iter([] if record is None else [(low[0], record.row, record.key)])
        entries = [
            entry
            for record in self._records.values()
            if low <= (entry := (sort_key(record.key), record.row, record.key)) < high
        ]
        return iter(sorted(entries, reverse=is_reverse))

    def entries_of(self, document: Document, row: int) -> list[Entry]:
        key = document["_key"]
        return [(sort_key(key), row, key)]

    def put(self, row: int, before: Document | None, after: Document | None) -> None:
        """Do nothing: the collection's records are the index."""


def _value_at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        if type(value) is not dict:
            return None
        value = value.get(name)
    return value


def _keys_at(value: Any, path: Sequence[str]) -> list[SortKey]:
    for depth, part in enumerate(path):
        name = part.removesuffix("[*]")
        value = value.get(name) if isinstance(value, dict) else None
        if part != name:
            if not isinstance(value, list):
                return []
            rest = path[depth + 1 :]
            return [key for element in value for key in _keys_at(element, rest)]
    return [sort_key(value)]
