"""What the AQL evaluator sees of the storage: one session is one transaction's view.

Documents are plain dicts with `_id`, `_key`, `_rev` (edges: `_from`, `_to`) and must be treated as
frozen by every reader: storage replaces them, nobody mutates them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Document = dict[str, Any]
OverwriteMode = Literal["conflict", "ignore", "replace", "update"]


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of one data-modification operation, as AQL and the document API have them."""

    overwrite_mode: OverwriteMode = "conflict"
    keep_null: bool = True
    merge_objects: bool = True
    ignore_revs: bool = True
    version_attribute: str | None = None
    wait_for_sync: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds on the index field that follows the equality prefix, in AQL order."""

    low: Any = None
    has_low: bool = False
    is_low_inclusive: bool = True
    high: Any = None
    has_high: bool = False
    is_high_inclusive: bool = True


class IndexView(Protocol):
    """A sorted or hashed access path."""

    id: str
    name: str
    type: str  # primary | edge | persistent | ttl
    fields: tuple[tuple[str, ...], ...]  # attribute paths; an array expansion ends in "[*]"
    is_unique: bool
    is_sparse: bool

    def lookup(
        self, equal: Sequence[Any], bounds: Range | None = None, is_reverse: bool = False
    ) -> Iterator[Document]:
        """Yield documents whose leading fields equal `equal`, in index order, within `bounds`."""
        ...

    def count(self, equal: Sequence[Any], bounds: Range | None = None) -> int:
        """Return how many documents `lookup` would yield, without decoding any."""
        ...


class CollectionView(Protocol):
    """One collection as this session sees it: its own writes included, others' later ones not."""

    id: str
    is_edge: bool

    @property
    def name(self) -> str: ...

    @property
    def indexes(self) -> Sequence[IndexView]: ...

    def count(self) -> int: ...

    def get(self, key: str) -> Document | None: ...

    def scan(self) -> Iterator[Document]:
        """Yield all documents in insertion order; stable while this session writes."""
        ...

    def edges(
        self, vertex_id: str, direction: Literal["outbound", "inbound"]
    ) -> Sequence[Document]:
        """Return the edges that leave (`_from`) or enter (`_to`) `vertex_id`."""
        ...

    # Each write raises ArangoError (1200, 1202, 1210, 1221, 1227, 1233, …) and then wrote nothing.

    def insert(
        self, document: Any, options: WriteOptions
    ) -> tuple[Document | None, Document | None]:
        """Insert; return (old, new). With `ignore` on an existing key: (existing, None)."""
        ...

    def update(self, patch: Any, options: WriteOptions) -> tuple[Document, Document]:
        """Merge `patch` (with `_key`; `_rev` counts unless `ignore_revs`); return (old, new)."""
        ...

    def replace(self, document: Any, options: WriteOptions) -> tuple[Document, Document]: ...

    def remove(self, selector: Any, options: WriteOptions) -> Document:
        """Remove the document that `selector` (`_key`, maybe `_rev`) names; return it."""
        ...


@dataclass(frozen=True, slots=True)
class EdgeDefinition:
    """One relation of a named graph."""

    collection: str
    from_collections: tuple[str, ...]
    to_collections: tuple[str, ...]


class Session(Protocol):
    """A transaction on one database."""

    database: str
    is_cluster: bool  # cluster rules on: WITH is needed, DOCUMENT() of undeclared fails, …

    def collection(self, name: str) -> CollectionView:
        """Return the collection, or raise ArangoError 1203 (also for one undeclared: 1652)."""
        ...

    def collections(self) -> Sequence[str]: ...

    def graph(self, name: str) -> Sequence[EdgeDefinition]:
        """Return a named graph's relations, or raise ArangoError 1924."""
        ...

    def savepoint(self) -> object:
        """Mark a point; with `rollback(mark)` a failed query leaves nothing behind."""
        ...

    def rollback(self, mark: object) -> None: ...
