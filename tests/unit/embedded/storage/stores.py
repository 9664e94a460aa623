"""A store without an engine around it."""

from __future__ import annotations

from random import Random
from typing import Any

from region_scheduler.embedded.arango.storage.collection import Collection
from region_scheduler.embedded.arango.storage.database import Database
from region_scheduler.embedded.arango.storage.log import NoLog, SqliteLog
from region_scheduler.embedded.arango.storage.properties import CollectionProperties
from region_scheduler.embedded.arango.storage.store import Store


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make_store(
    log: SqliteLog | NoLog | None = None,
    clock: Time | None = None,
    *,
    is_cluster: bool = False,
    cache_bytes: int = 1 << 20,
) -> Store:
    return Store(
        log or NoLog(),
        clock=clock or Time(),
        wall=lambda: 1e9,
        chance=Random(1),
        is_cluster=is_cluster,
        cache_bytes=cache_bytes,
    )


def make_collection(
    store: Store, name: str, *indexes: dict[str, Any], **properties: Any
) -> tuple[Database, Collection]:
    database = store.catalog.database("_system")
    body = {"name": name, **properties}
    collection = store.catalog.create_collection(
        database, CollectionProperties.from_body(body, store.is_cluster)
    )
    for index in indexes:
        store.catalog.create_index(collection, {"type": "persistent", **index})
    return database, collection
