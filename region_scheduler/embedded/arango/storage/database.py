"""Databases and the catalogue of what they contain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.storage.collection import Collection
from region_scheduler.embedded.arango.storage.index_definition import IndexDefinition, define_index
from region_scheduler.embedded.arango.storage.log import Log
from region_scheduler.embedded.arango.storage.properties import CollectionProperties, check_name
from region_scheduler.embedded.arango.storage.record import DocumentCache, encode
from region_scheduler.embedded.arango.storage.ticks import Ticks

SYSTEM = "_system"
GRAPHS = "_graphs"
_SYSTEM_COLLECTIONS = ("_analyzers", "_appbundles", "_apps", "_aqlfunctions", GRAPHS, "_jobs")
_DATABASE_NAME = re.compile(r"[^\s:/\x00-\x1f\x7f][^:/\x00-\x1f\x7f]{0,126}[^\s:/\x00-\x1f\x7f]?")


class Database:
    """One database: its collections by name."""

    def __init__(self, number: int, name: str, options: dict[str, Any]) -> None:
        self.number = number
        self.name = name
        self.options = options
        self.collections: dict[str, Collection] = {}

    @property
    def is_one_shard(self) -> bool:
        """Whether all its collections live in one shard together."""
        return self.options.get("sharding") == "single"

    def collection(self, name: str) -> Collection:
        """Return the collection with this name, or with this number.

        Raises:
            ArangoError: 1203.
        """
        collection = self.collections.get(name)
        if collection is None:
            if name.isdigit():
                for other in self.collections.values():
                    if str(other.number) == name:
                        return other
            raise ArangoError(1203, f"collection or view not found: {name}")
        return collection


class Catalog:
    """All databases of an engine; every change to what exists goes through it and into the log.

    Args:
        log: Keeps the changes.
        ticks: Numbers for what is new.
        cache: Shared by all collections.
        is_cluster: Whether cluster rules hold.
    """

    def __init__(self, log: Log, ticks: Ticks, cache: DocumentCache, is_cluster: bool) -> None:
        self._log = log
        self._ticks = ticks
        self._cache = cache
        self.is_cluster = is_cluster
        self.databases: dict[str, Database] = {}

    # Databases.

    def database(self, name: str) -> Database:
        """Return a database.

        Raises:
            ArangoError: 1228.
        """
        database = self.databases.get(name)
        if database is None:
            raise ArangoError(1228)
        return database

    def create_database(self, name: Any, options: dict[str, Any]) -> Database:
        """Create a database with its system collections.

        Raises:
            ArangoError: 1229 for the name, 1207 if it exists.
        """
        if not isinstance(name, str) or not _DATABASE_NAME.fullmatch(name) or name[0].isdigit():
            raise ArangoError(1229)
        if name.startswith("_") and name != SYSTEM:
            raise ArangoError(1229)
        if name in self.databases:
            raise ArangoError(1207)
        database = Database(self._ticks.next_tick(), name, options)
        self.databases[name] = database
        stored = {"name": name, "options": options}
        self._log.put_catalog("database", database.number, 0, encode(stored))
        system = _SYSTEM_COLLECTIONS if name != SYSTEM else (*_SYSTEM_COLLECTIONS, "_users")
        for collection in system:
            self.create_collection(database, CollectionProperties(name=collection, is_system=True))
        return database

    def drop_database(self, name: str) -> None:
        """Drop a database and all that is in it.

        Raises:
            ArangoError: 1228; 11 for `_system`.
        """
        database = self.database(name)
        if name == SYSTEM:
            raise ArangoError(11)
        for collection in list(database.collections.values()):
            self.drop_collection(database, collection)
        del self.databases[name]
        self._log.remove_catalog(database.number)

    # Collections.

    def create_collection(self, database: Database, properties: CollectionProperties) -> Collection:
        """Create a collection.

        Raises:
            ArangoError: 1207 if the name is taken.
        """
        if properties.name in database.collections:
            raise ArangoError(1207)
        collection = Collection(self._ticks.next_tick(), properties, self._cache)
        database.collections[properties.name] = collection
        self.save_collection(database, collection)
        return collection

    def save_collection(self, database: Database, collection: Collection) -> None:
        """Put the collection's properties into the log."""
        stored = encode(collection.properties.to_stored())
        self._log.put_catalog("collection", collection.number, database.number, stored)

    def drop_collection(self, database: Database, collection: Collection) -> None:
        """Drop a collection with its documents and indexes."""
        del database.collections[collection.name]
        for record in collection.records():
            self._log.remove(record.row)
        for definition in collection.definitions[1:]:
            self._log.remove_catalog(definition.number)
        self._log.remove_catalog(collection.number)

    def rename_collection(self, database: Database, collection: Collection, name: Any) -> None:
        """Give a collection another name; all its documents get another `_id`.

        Raises:
            ArangoError: 1208, 1207, or 1470 under cluster rules.
        """
        if self.is_cluster:
            raise ArangoError(1470)
        check_name(name)
        if name == collection.name:
            return
        if name in database.collections:
            raise ArangoError(1207)
        del database.collections[collection.name]
        collection.properties.name = name
        database.collections[name] = collection
        self.save_collection(database, collection)
        for before in collection.records():
            document = dict(self._cache.document(before))
            document["_id"] = f"{name}/{before.key}"
            after = self._cache.record(before.row, document)
            collection.put(before, after)
            self._log.put(after, collection.number)

    # Indexes.

    def create_index(self, collection: Collection, body: Any) -> tuple[IndexDefinition, bool]:
        """Create an index, or return the same one that exists, and whether it is new.

        Raises:
            ArangoError: 10, 1207, 1208, 400/1210; 1470 if cluster rules forbid it.
        """
        definition, is_new = collection.add_index(
            self._allowed(collection, define_index(body, self._ticks.next_tick()))
        )
        if is_new:
            stored = encode({"body": body, "name": definition.name})
            self._log.put_catalog("index", definition.number, collection.number, stored)
        return definition, is_new

    def _allowed(self, collection: Collection, definition: IndexDefinition) -> IndexDefinition:
        if self.is_cluster and definition.is_unique:
            paths = {".".join(path) for path in definition.fields}
            database = next(
                d for d in self.databases.values() if collection in d.collections.values()
            )
            if not paths.issuperset(collection.properties.shard_keys) and not database.is_one_shard:
                raise ArangoError(
                    1470, "shard key(s) must be included in the unique index's attributes"
                )
        return definition

    def drop_index(self, collection: Collection, wanted: str) -> IndexDefinition:
        """Drop an index and return what it was.

        Raises:
            ArangoError: 1212, or 11 for the primary and the edge index.
        """
        definition = collection.drop_index(wanted)
        self._log.remove_catalog(definition.number)
        return definition

    # Loading.

    def adopt_database(self, number: int, stored: dict[str, Any]) -> None:
        """Take over a database from the log."""
        database = Database(number, stored["name"], stored["options"])
        self.databases[database.name] = database

    def adopt_collection(
        self, number: int, database_number: int, stored: dict[str, Any]
    ) -> Collection:
        """Take over a collection from the log, still empty."""
        database = next(d for d in self.databases.values() if d.number == database_number)
        stored["isSystem"] = stored.get("isSystem", False)
        properties = CollectionProperties.from_body(stored, is_cluster=True)
        properties.key_options.last = stored["keyOptions"].get("lastValue", 0)
        collection = Collection(number, properties, self._cache)
        database.collections[properties.name] = collection
        return collection

    def adopt_index(self, collection: Collection, number: int, stored: dict[str, Any]) -> None:
        """Take over an index from the log and build it."""
        collection.add_index(define_index({**stored["body"], "name": stored["name"]}, number))

    def each_collection(self) -> Iterator[tuple[Database, Collection]]:
        """Yield every collection with its database."""
        for database in self.databases.values():
            for collection in database.collections.values():
                yield database, collection
