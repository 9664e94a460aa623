"""Named graphs: their documents in `_graphs`, and what may be in them."""

from __future__ import annotations

from typing import Any

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import Document, WriteOptions
from region_scheduler.embedded.arango.storage.database import GRAPHS, Catalog, Database
from region_scheduler.embedded.arango.storage.properties import (
    DOCUMENT_TYPE,
    EDGE_TYPE,
    CollectionProperties,
)
from region_scheduler.embedded.arango.storage.transaction import Transaction

_SHARDING = ("numberOfShards", "replicationFactor", "writeConcern")
_REPLACE = WriteOptions(overwrite_mode="replace")
Definition = dict[str, Any]


class Graphs:
    """The named graphs of one database, in one transaction.

    Args:
        catalog: Creates and drops collections.
        transaction: Reads and writes the graphs' documents.
    """

    def __init__(self, catalog: Catalog, transaction: Transaction) -> None:
        self._catalog = catalog
        self._database: Database = transaction.source
        self._documents = transaction.collection(GRAPHS)

    def all(self) -> list[Document]:
        """Return the documents of all graphs."""
        return list(self._documents.scan())

    def one(self, name: str) -> Document:
        """Return a graph's document.

        Raises:
            ArangoError: 1924.
        """
        document = self._documents.get(name)
        if document is None:
            raise ArangoError(1924, f"graph '{name}' not found")
        return document

    def create(self, body: dict[str, Any]) -> Document:
        """Create a graph, and the collections that it lacks.

        Raises:
            ArangoError: 1922 without a name, 1925 for a duplicate, 1920, 1921, 1923 for bad edge
                definitions, 1208 and others for bad collections.
        """
        name = body.get("name")
        if not isinstance(name, str) or not name:
            raise ArangoError(1922)
        if self._documents.get(name) is not None:
            raise ArangoError(1925)
        definitions = body.get("edgeDefinitions") or []
        orphans = body.get("orphanCollections") or []
        if not isinstance(definitions, list) or not isinstance(orphans, list):
            raise ArangoError(1923)
        checked: list[Definition] = []
        for given in definitions:
            definition = _definition(given)
            if any(other["collection"] == definition["collection"] for other in checked):
                raise ArangoError(1920)
            self._check_elsewhere(name, definition)
            checked.append(definition)
        options = body.get("options") or {}
        sharding = {key: options[key] for key in _SHARDING if options.get(key) is not None}
        document: Document = {
            "_key": name,
            "edgeDefinitions": checked,
            "orphanCollections": list(dict.fromkeys(orphans)),
            **sharding,
        }
        self._create_collections(document)
        return self._save(document)

    def drop(self, name: str, *, drops_collections: bool) -> None:
        """Remove a graph, and with it the collections that no other graph uses, if asked.

        Raises:
            ArangoError: 1924.
        """
        document = self.one(name)
        self._documents.remove({"_key": name}, WriteOptions())
        if drops_collections:
            self._drop_unused([*edge_collections(document), *vertex_collections(document)])

    def add_vertices(self, name: str, collection: Any) -> Document:
        """Add an orphan vertex collection.

        Raises:
            ArangoError: 1924, 1938 or 1929 if it is already there, 1927 for an edge collection.
        """
        document = self.one(name)
        if not isinstance(collection, str) or not collection:
            raise ArangoError(10)
        if collection in document["orphanCollections"]:
            raise ArangoError(1938)
        if collection in vertex_collections(document):
            raise ArangoError(1929)
        known = self._database.collections.get(collection)
        if known is not None and known.is_edge:
            raise ArangoError(1927)
        orphans = [*document["orphanCollections"], collection]
        return self._changed(document, orphanCollections=orphans)

    def remove_vertices(self, name: str, collection: str, *, drops: bool) -> Document:
        """Take out an orphan vertex collection.

        Raises:
            ArangoError: 1924, 1928 for one that is no orphan.
        """
        document = self.one(name)
        if collection not in document["orphanCollections"]:
            raise ArangoError(1928)
        orphans = [other for other in document["orphanCollections"] if other != collection]
        document = self._changed(document, orphanCollections=orphans)
        if drops:
            self._drop_unused([collection])
        return document

    def add_definition(self, name: str, given: Any) -> Document:
        """Add an edge definition.

        Raises:
            ArangoError: 1924, 1923, 1920 if this graph has one for the collection, 1921 if another
                graph has a different one.
        """
        document = self.one(name)
        definition = _definition(given)
        if definition["collection"] in edge_collections(document):
            raise ArangoError(1920)
        self._check_elsewhere(name, definition)
        return self._redefined(document, [*document["edgeDefinitions"], definition])

    def replace_definition(self, name: str, collection: str, given: Any) -> Document:
        """Replace an edge definition, here and in every graph that has it.

        Raises:
            ArangoError: 1924, 1923, 1930 if there is none.
        """
        document = self.one(name)
        definition = _definition(given)
        if collection not in edge_collections(document) or definition["collection"] != collection:
            raise ArangoError(1930)
        for other in self.all():
            if collection in edge_collections(other) and other["_key"] != name:
                self._redefined(other, _with(other["edgeDefinitions"], definition))
        return self._redefined(document, _with(document["edgeDefinitions"], definition))

    def remove_definition(self, name: str, collection: str, *, drops: bool) -> Document:
        """Take out an edge definition; vertex collections that lose their last one are orphans.

        Raises:
            ArangoError: 1924, 1930 if there is none.
        """
        document = self.one(name)
        if collection not in edge_collections(document):
            raise ArangoError(1930)
        rest = [d for d in document["edgeDefinitions"] if d["collection"] != collection]
        document = self._redefined(document, rest)
        if drops:
            self._drop_unused([collection])
        return document

    def _redefined(self, document: Document, definitions: list[Definition]) -> Document:
        before = vertex_collections(document)
        used = {name for d in definitions for name in (*d["from"], *d["to"])}
        orphans = [name for name in before if name not in used]
        return self._changed(document, edgeDefinitions=definitions, orphanCollections=orphans)

    def _changed(self, document: Document, **attributes: Any) -> Document:
        changed = {**document, **attributes}
        self._create_collections(changed)
        return self._save(changed)

    def _save(self, document: Document) -> Document:
        _, new = self._documents.insert(document, _REPLACE)
        return new or document

    def _check_elsewhere(self, name: str, definition: Definition) -> None:
        for other in self.all():
            for known in other["edgeDefinitions"]:
                if known["collection"] != definition["collection"] or other["_key"] == name:
                    continue
                same = all(set(known[end]) == set(definition[end]) for end in ("from", "to"))
                if not same:
                    raise ArangoError(1921, f"{known['collection']} edge collection already used")

    def _create_collections(self, document: Document) -> None:
        for kind, names in (
            (EDGE_TYPE, edge_collections(document)),
            (DOCUMENT_TYPE, vertex_collections(document)),
        ):
            for name in names:
                known = self._database.collections.get(name)
                if known is None:
                    body = {key: document[key] for key in _SHARDING if key in document}
                    properties = CollectionProperties.from_body(
                        {**body, "name": name, "type": kind}, self._catalog.is_cluster
                    )
                    self._catalog.create_collection(self._database, properties)
                elif kind == EDGE_TYPE and not known.is_edge:
                    raise ArangoError(1218, f"collection '{name}' is not an edge collection")

    def _drop_unused(self, names: list[str]) -> None:
        used = {
            name
            for document in self.all()
            for name in (*edge_collections(document), *vertex_collections(document))
        }
        for name in names:
            collection = self._database.collections.get(name)
            if collection is not None and name not in used:
                self._catalog.drop_collection(self._database, collection)


def edge_collections(document: Document) -> list[str]:
    """Return the edge collections of a graph, in the order of its definitions."""
    return [definition["collection"] for definition in document["edgeDefinitions"]]


def vertex_collections(document: Document) -> list[str]:
    """Return the vertex collections of a graph, orphans last."""
    names = [
        name
        for definition in document["edgeDefinitions"]
        for name in (*definition["from"], *definition["to"])
    ]
    return list(dict.fromkeys([*names, *document["orphanCollections"]]))


def _definition(given: Any) -> Definition:
    if not isinstance(given, dict) or not isinstance(given.get("collection"), str):
        raise ArangoError(1923)
    for end in ("from", "to"):
        names = given.get(end)
        if not isinstance(names, list) or not names:
            raise ArangoError(1923)
        if not all(isinstance(name, str) and name for name in names):
            raise ArangoError(1923)
    return {
        "collection": given["collection"],
        "from": sorted(set(given["from"])),
        "to": sorted(set(given["to"])),
    }


def _with(definitions: list[Definition], changed: Definition) -> list[Definition]:
    return [changed if d["collection"] == changed["collection"] else d for d in definitions]
