"""The background job of ttl indexes: documents that are too old are removed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import Document
from region_scheduler.embedded.arango.storage.database import Database
from region_scheduler.embedded.arango.storage.store import Store

EVERY_S = 30.0


class Expiry:
    """Looks every 30 seconds, as ArangoDB does; nothing happens between requests.

    Args:
        store: Where the collections are.
        clock: Paces the looks.
        wall: Compared with the documents' times.
    """

    def __init__(self, store: Store, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._wall = wall
        self._next_at = clock() + EVERY_S

    @property
    def is_due(self) -> bool:
        """Whether it is time to look again."""
        return self._clock() >= self._next_at

    def run(self) -> int:
        """Remove what has expired; return how many documents that were."""
        self._next_at = self._clock() + EVERY_S
        return sum(self._clean(database) for database in self._store.catalog.databases.values())

    def _clean(self, database: Database) -> int:
        now = self._wall()
        transaction = self._store.begin(database)
        for collection in database.collections.values():
            for definition in collection.definitions:
                if definition.expire_after_s is None:
                    continue
                limit = now - definition.expire_after_s
                access = transaction.collection(collection.name)
                for document in access.scan():
                    at = _instant(_value(document, definition.fields[0]))
                    if at is not None and at <= limit:
                        with suppress(ArangoError):  # a transaction holds it: the next look
                            access.remove_record(document["_key"], None)
        removed = len(transaction.changes)
        self._store.finish(transaction.commit())
        return removed


def _value(document: Document, path: tuple[str, ...]) -> Any:
    value: Any = document
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _instant(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            return None
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return None
