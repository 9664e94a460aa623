"""A small session for tests of the language alone: dictionaries, no log, no other transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, Literal

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import (
    Document,
    EdgeDefinition,
    IndexView,
    Range,
    WriteOptions,
)
from region_scheduler.embedded.arango.values import sort_key


class MemoryIndex:
    """An index that sorts when asked; it counts the lookups so that tests can see its use."""

    def __init__(
        self,
        collection: MemoryCollection,
        kind: str,
        fields: Iterable[str],
        *,
        unique: bool = False,
        sparse: bool = False,
    ) -> None:
        self.id = f"{collection.name}/{len(collection.indexes)}"
        self.name = "primary" if kind == "primary" else f"idx_{len(collection.indexes)}"
        self.type = kind
        self.fields = tuple(tuple(path.split(".")) for path in fields)
        self.is_unique = unique
        self.is_sparse = sparse
        self.lookup_count = self.count_count = 0
        self._collection = collection

    def _rows(self) -> list[tuple[tuple[Any, ...], Document]]:
        rows = []
        for document in self._collection.documents.values():
            expanded: list[tuple[Any, ...]] = [()]
            for path in self.fields:
                expanded = [
                    (*row, value) for row in expanded for value in _values_at(document, path)
                ]
            for row in expanded:
                if not (self.is_sparse and None in row):
                    rows.append((row, document))
        return rows

    def lookup(
        self, equal: Sequence[Any], bounds: Range | None = None, is_reverse: bool = False
    ) -> Iterator[Document]:
        self.lookup_count += 1
        wanted = [sort_key(value) for value in equal]
        place = len(equal)
        found = []
        for row, document in self._rows():
            keys = [sort_key(value) for value in row]
            if keys[:place] == wanted and _is_within(keys, place, bounds):
                found.append((keys, document))
        found.sort(key=lambda entry: entry[0], reverse=is_reverse)
        return iter([document for _, document in found])

    def count(self, equal: Sequence[Any], bounds: Range | None = None) -> int:
        self.count_count += 1
        return sum(1 for _ in self.lookup(equal, bounds))


def _values_at(value: Any, path: Sequence[str]) -> list[Any]:
    for depth, part in enumerate(path):
        name = part.removesuffix("[*]")
        value = value.get(name) if isinstance(value, dict) else None
        if name != part:
            items = value if isinstance(value, list) else []
            return [found for item in items for found in _values_at(item, path[depth + 1 :])]
    return [value]


def _is_within(keys: Sequence[Any], place: int, bounds: Range | None) -> bool:
    if bounds is None:
        return True
    key = keys[place]
    if bounds.has_low:
        low = sort_key(bounds.low)
        if key < low or (key == low and not bounds.is_low_inclusive):
            return False
    if bounds.has_high:
        high = sort_key(bounds.high)
        if key > high or (key == high and not bounds.is_high_inclusive):
            return False
    return True


class MemoryCollection:
    """Documents by key, in order of insertion."""

    def __init__(self, session: MemorySession, name: str, *, is_edge: bool) -> None:
        self.id = name
        self.name = name
        self.is_edge = is_edge
        self.documents: dict[str, Document] = {}
        self.edges_by_end: dict[str, dict[str, list[Document]]] = {}
        self.indexes: Sequence[IndexView] = ()
        self._add(MemoryIndex(self, "primary", ["_key"], unique=True))
        if is_edge:
            self._add(MemoryIndex(self, "edge", ["_from", "_to"]))
        self._session = session

    def add_index(self, *fields: str, unique: bool = False, sparse: bool = False) -> MemoryIndex:
        index = MemoryIndex(self, "persistent", fields, unique=unique, sparse=sparse)
        self._add(index)
        return index

    def _add(self, index: MemoryIndex) -> None:
        self.indexes = (*self.indexes, index)

    def count(self) -> int:
        return len(self.documents)

    def get(self, key: str) -> Document | None:
        return self.documents.get(key)

    def scan(self) -> Iterator[Document]:
        return iter(list(self.documents.values()))

    def edges(
        self, vertex_id: str, direction: Literal["outbound", "inbound"]
    ) -> Sequence[Document]:
        end = "_from" if direction == "outbound" else "_to"
        if end not in self.edges_by_end:
            found: dict[str, list[Document]] = {}
            for edge in self.documents.values():
                found.setdefault(edge[end], []).append(edge)
            self.edges_by_end[end] = found
        return self.edges_by_end[end].get(vertex_id, [])

    def insert(
        self, document: Any, options: WriteOptions
    ) -> tuple[Document | None, Document | None]:
        if not isinstance(document, dict):
            raise ArangoError(1227)
        key = document.get("_key", str(next(self._session.keys)))
        if not isinstance(key, str):
            raise ArangoError(1221)
        old = self.documents.get(key)
        if old is not None:
            mode = options.overwrite_mode
            if mode == "conflict":
                raise ArangoError(1210)
            if mode == "ignore":
                return old, None
            if mode == "replace":
                return self.replace(document, options)
            return self.update(document, options)
        new = self._stored(key, document)
        self._session.change(self, key, new)
        return None, new

    def update(self, patch: Any, options: WriteOptions) -> tuple[Document, Document]:
        old = self._found(patch, options)
        if _is_outdated(old, patch, options):
            return old, old
        changes = {k: v for k, v in patch.items() if k not in ("_key", "_id", "_rev")}
        if not changes:
            return old, old
        merged = _merge(old, changes, options.merge_objects, options.keep_null)
        new = self._stored(old["_key"], merged)
        self._session.change(self, old["_key"], new)
        return old, new

    def replace(self, document: Any, options: WriteOptions) -> tuple[Document, Document]:
        old = self._found(document, options)
        if _is_outdated(old, document, options):
            return old, old
        ends: Document = {end: old[end] for end in ("_from", "_to") if end in old}
        new = self._stored(old["_key"], {**ends, **document})
        self._session.change(self, old["_key"], new)
        return old, new

    def remove(self, selector: Any, options: WriteOptions) -> Document:
        old = self._found(selector, options)
        self._session.change(self, old["_key"], None)
        return old

    def _found(self, selector: Any, options: WriteOptions) -> Document:
        if not isinstance(selector, dict):
            raise ArangoError(1227)
        old = self.documents.get(selector["_key"])
        if old is None:
            raise ArangoError(1202)
        if not options.ignore_revs and selector.get("_rev", old["_rev"]) != old["_rev"]:
            raise ArangoError(1200)
        return old

    def _stored(self, key: str, document: Document) -> Document:
        if self.is_edge and not all("/" in str(document.get(end)) for end in ("_from", "_to")):
            raise ArangoError(1233)
        rest = {k: v for k, v in document.items() if k not in ("_key", "_id", "_rev")}
        revision = f"r{next(self._session.keys)}"
        return {"_key": key, "_id": f"{self.name}/{key}", "_rev": revision, **rest}


def _is_outdated(old: Document, new: Document, options: WriteOptions) -> bool:
    name = options.version_attribute
    return name is not None and name in old and name in new and new[name] <= old[name]


def _merge(old: Any, new: Document, merges: bool, keeps_null: bool) -> Document:
    result = dict(old)
    for name, value in new.items():
        if value is None and not keeps_null:
            result.pop(name, None)
        elif isinstance(value, dict) and merges:
            before = result.get(name)
            result[name] = _merge(
                before if isinstance(before, dict) else {}, value, True, keeps_null
            )
        else:
            result[name] = value
    return result


class MemorySession:
    """Collections and graphs by name."""

    def __init__(self, *, is_cluster: bool = False) -> None:
        self.database = "test"
        self.is_cluster = is_cluster
        self.keys = count(1)
        self._collections: dict[str, MemoryCollection] = {}
        self._graphs: dict[str, list[EdgeDefinition]] = {}
        self._undo: list[Callable[[], None]] = []

    def create(
        self, name: str, documents: Iterable[Document] = (), *, is_edge: bool = False
    ) -> MemoryCollection:
        """Add a collection with documents in it."""
        collection = MemoryCollection(self, name, is_edge=is_edge)
        self._collections[name] = collection
        for document in documents:
            collection.insert(document, WriteOptions())
        return collection

    def create_graph(self, name: str, definitions: Iterable[EdgeDefinition]) -> None:
        """Add a named graph."""
        self._graphs[name] = list(definitions)

    def change(self, collection: MemoryCollection, key: str, new: Document | None) -> None:
        """Do one write, and note how to take it back."""
        documents = collection.documents
        old = documents.get(key)

        def put(document: Document | None) -> None:
            collection.edges_by_end.clear()
            if document is None:
                documents.pop(key, None)
            else:
                documents[key] = document

        self._undo.append(lambda: put(old))
        put(new)

    def collection(self, name: str) -> MemoryCollection:
        found = self._collections.get(name)
        if found is None:
            raise ArangoError(1203, f"collection or view not found: {name}")
        return found

    def collections(self) -> Sequence[str]:
        return list(self._collections)

    def graph(self, name: str) -> Sequence[EdgeDefinition]:
        found = self._graphs.get(name)
        if found is None:
            raise ArangoError(1924, f"graph '{name}' not found")
        return found

    def savepoint(self) -> object:
        return len(self._undo)

    def rollback(self, mark: object) -> None:
        assert isinstance(mark, int)
        while len(self._undo) > mark:
            self._undo.pop()()
