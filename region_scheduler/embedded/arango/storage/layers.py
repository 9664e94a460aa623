"""A collection seen through layers: some keys are other than they are at present."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from typing import Any

from region_scheduler.embedded.arango.session import Range
from region_scheduler.embedded.arango.storage.collection import Collection
from region_scheduler.embedded.arango.storage.indexes import Index
from region_scheduler.embedded.arango.storage.record import Record
from region_scheduler.embedded.arango.storage.sorted_entries import Entry

Layer = Mapping[str, Record | None]


def layered_record(collection: Collection, layer: Layer, key: str) -> Record | None:
    """Return the record of `key`: the layer's word if it has one, else the present one."""
    return layer[key] if key in layer else collection.record(key)


def layered_records(collection: Collection, layer: Layer) -> Sequence[Record]:
    """Return all records under `layer`, in insertion order."""
    records = [record for record in collection.records() if record.key not in layer]
    for record in layer.values():
        if record is not None:
            insort(records, record, key=_row)
    return records


def layered_count(collection: Collection, layer: Layer) -> int:
    """Return how many documents there are under `layer`."""
    count = len(collection)
    for key, record in layer.items():
        count += (record is not None) - (collection.record(key) is not None)
    return count


def layered_found(
    collection: Collection,
    layer: Layer,
    index: Index,
    equal: Sequence[Any],
    bounds: Range | None,
    is_reverse: bool,
) -> Iterator[Record]:
    """Yield the records that an index lookup finds under `layer`, in index order, each once."""
    layer = dict(layer)  # the caller's may grow while this is read
    low, high = index.span(equal, bounds)
    present = (entry for entry in index.between((low, high), is_reverse) if entry[-1] not in layer)
    changed = _entries_within(collection, layer, index, low, high)
    entries: Iterator[Entry] = present
    if changed:
        entries = merge(present, reversed(changed) if is_reverse else changed, reverse=is_reverse)
    seen: set[str] = set()
    for entry in entries:
        key = entry[-1]
        record = layered_record(collection, layer, key)
        if record is not None and key not in seen:
            seen.add(key)
            yield record


def _entries_within(
    collection: Collection, layer: Layer, index: Index, low: Entry, high: Entry
) -> list[Entry]:
    entries = sorted(
        entry
        for record in layer.values()
        if record is not None
        for entry in index.entries_of(collection.cache.document(record), record.row)
    )
    return entries[bisect_left(entries, low) : bisect_left(entries, high)]


def _row(record: Record) -> int:
    return record.row
