"""One version of one document: its JSON text, and the decoded form while it is in use."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import orjson

from region_scheduler.embedded.arango.session import Document

_KEPT_MIN: Final = 2


class Record:
    """A frozen version of a document. A write replaces the record, nobody changes it.

    Attributes:
        row: Place in insertion order, over all collections; the same for all versions.
        key: `_key`.
        rev: `_rev`.
        blob: The document as JSON, all its attributes included.
        document: `blob` decoded, or None while nobody needs it.
    """

    __slots__ = ("blob", "document", "key", "rev", "row")

    def __init__(
        self, row: int, key: str, rev: str, blob: bytes, document: Document | None
    ) -> None:
        self.row = row
        self.key = key
        self.rev = rev
        self.blob = blob
        self.document = document


def changed_key(before: Record | None, after: Record | None) -> str:
    """Return the key that a change from `before` to `after` is about.

    Raises:
        ValueError: Both are None: that is no change.
    """
    record = before if after is None else after
    if record is None:
        raise ValueError("a change has at least one side")
    return record.key


def steps_of(
    before: Record | None, after: Record | None
) -> Sequence[tuple[Record | None, Record | None]]:
    """Return the changes that lead from `before` to `after`, each within one row.

    They are two where a document was removed and another one inserted under its key.
    """
    if before is after:
        return ()
    if before is not None and after is not None and before.row != after.row:
        return ((before, None), (None, after))
    return ((before, after),)


class DocumentCache:
    """Keeps decoded documents up to a budget; over it, those that came first are dropped.

    A dropped one is decoded again on use (about 4 us per kB); keeping the text alone is what makes
    100,000 documents fit into memory. The last two stay, however big they are: a write needs the
    old and the new version of its document more than once.

    Args:
        budget_bytes: Sum of the JSON text of the documents that may be kept decoded.
    """

    def __init__(self, budget_bytes: int = 48 << 20) -> None:
        self._budget = budget_bytes
        self._used = 0
        self._decoded: deque[Record] = deque()

    def document(self, record: Record) -> Document:
        """Return the decoded document of `record`; it must not be changed."""
        document = record.document
        if document is None:
            document = record.document = orjson.loads(record.blob)
            self._admit(record)
        return document

    def record(self, row: int, document: dict[str, Any]) -> Record:
        """Return a new record of `document`, which must not be changed any more.

        Raises:
            TypeError: `document` holds a value that is not JSON.
        """
        # A copy: the encoder's own result keeps the whole buffer that it was written into.
        blob = bytes(memoryview(encode(document)))
        record = Record(row, document["_key"], document["_rev"], blob, document)
        self._admit(record)
        return record

    def _admit(self, record: Record) -> None:
        self._used += len(record.blob)
        self._decoded.append(record)
        while self._used > self._budget and len(self._decoded) > _KEPT_MIN:
            first = self._decoded.popleft()
            first.document = None
            self._used -= len(first.blob)


def decode(text: bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: It is none.
    """
    return orjson.loads(text)


def encode(value: Any) -> bytes:
    """Return `value` as JSON; integers beyond 64 bit become doubles, as ArangoDB has them."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return orjson.dumps(_narrow(value))


def _narrow(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _narrow(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_narrow(item) for item in value]
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return float(value)
    return value
