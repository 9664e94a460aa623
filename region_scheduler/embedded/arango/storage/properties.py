"""The properties of a collection: checked on creation, shown by the HTTP API."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import Document
from region_scheduler.embedded.arango.storage.keys import KeyOptions
from region_scheduler.embedded.arango.storage.schema import check_document, check_schema

DOCUMENT_TYPE = 2
EDGE_TYPE = 3

_NAME = re.compile(r"[^\s/\x00-\x1f\x7f][^/\x00-\x1f\x7f]{0,255}")
_SHARD_COUNT_MAX = 1000


@dataclass(slots=True)
class CollectionProperties:
    """What a collection was created with, and what may be changed later.

    Attributes:
        type: 2 for documents, 3 for edges.
        shard_keys: Attributes that decide where a document lives (cluster rules).
        cluster: Replication attributes as given, shown in a cluster only.
    """

    name: str
    type: int = DOCUMENT_TYPE
    is_system: bool = False
    wait_for_sync: bool = False
    key_options: KeyOptions = field(default_factory=KeyOptions)
    shard_count: int = 1
    shard_keys: tuple[str, ...] = ("_key",)
    schema: Any = None
    computed_values: Any = None
    cache_enabled: bool = False
    cluster: dict[str, Any] = field(default_factory=dict)

    @property
    def is_edge(self) -> bool:
        """Whether documents need `_from` and `_to`."""
        return self.type == EDGE_TYPE

    @classmethod
    def from_body(cls, body: Any, is_cluster: bool) -> CollectionProperties:
        """Check the body of a collection creation.

        Raises:
            ArangoError: 1208 for the name, 1218 for the type, 10 for other values, 1620/1621 for
                the schema.
        """
        if not isinstance(body, dict) or "name" not in body:
            raise ArangoError(1208)
        name = body["name"]
        check_name(name, is_system=bool(body.get("isSystem")))
        kind = body.get("type", DOCUMENT_TYPE)
        if kind in ("document", "edge"):
            kind = DOCUMENT_TYPE if kind == "document" else EDGE_TYPE
        if kind not in (DOCUMENT_TYPE, EDGE_TYPE):
            raise ArangoError(1218)
        properties = cls(
            name=name,
            type=kind,
            is_system=bool(body.get("isSystem", name.startswith("_"))),
            key_options=KeyOptions.from_body(body.get("keyOptions")),
        )
        properties._set_sharding(body, is_cluster)
        properties.change(body)
        return properties

    def _set_sharding(self, body: dict[str, Any], is_cluster: bool) -> None:
        count = body.get("numberOfShards") or 1
        keys = body.get("shardKeys") or ["_key"]
        if not isinstance(count, int) or not 1 <= count <= _SHARD_COUNT_MAX:
            raise ArangoError(10, "invalid number of shards")
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise ArangoError(10, "invalid shard keys")
        if is_cluster:
            self.shard_count = count
            self.shard_keys = tuple(keys)
        shown = ("replicationFactor", "writeConcern", "shardingStrategy", "distributeShardsLike")
        self.cluster = {name: body[name] for name in shown if body.get(name) is not None}

    def change(self, body: dict[str, Any]) -> None:
        """Take over the properties that may change at any time.

        Raises:
            ArangoError: 10, 1620 or 1621 for bad values.
        """
        self.wait_for_sync = bool(body.get("waitForSync", self.wait_for_sync))
        self.cache_enabled = bool(body.get("cacheEnabled", self.cache_enabled))
        if "schema" in body:
            self.schema = check_schema(body["schema"])
        if "computedValues" in body:
            self.computed_values = body["computedValues"] or None
        for name in ("replicationFactor", "writeConcern"):
            if body.get(name) is not None:
                self.cluster[name] = body[name]

    def completed(self, document: Document, old: Document | None) -> Document:
        """Return `document` once the schema has accepted it.

        Args:
            document: About to be stored.
            old: What it replaces.

        Raises:
            ArangoError: 1620 if the schema refuses.
        """
        if self.schema is not None:
            check_document(self.schema, document, old)
        return document

    def describe(self, is_cluster: bool) -> dict[str, Any]:
        """Return the properties as `GET /_api/collection/{name}/properties` shows them."""
        shown: dict[str, Any] = {
            "waitForSync": self.wait_for_sync,
            "writeConcern": self.cluster.get("writeConcern", 1),
            "schema": self.schema,
            "computedValues": self.computed_values,
            "cacheEnabled": self.cache_enabled,
            "syncByRevision": True,
            "usesRevisionsAsDocumentIds": True,
            "internalValidatorType": 0,
            "isSmartChild": False,
            "keyOptions": self.key_options.describe(),
        }
        if is_cluster:
            factor = self.cluster.get("replicationFactor", 1)
            shown |= {
                "numberOfShards": self.shard_count,
                "shardKeys": list(self.shard_keys),
                "replicationFactor": factor,
                "minReplicationFactor": shown["writeConcern"],
                "shardingStrategy": self.cluster.get("shardingStrategy", "hash"),
                "isSmart": False,
                "isDisjoint": False,
            }
        return shown

    def to_stored(self) -> dict[str, Any]:
        """Return what the log keeps."""
        return {
            "name": self.name,
            "type": self.type,
            "isSystem": self.is_system,
            "waitForSync": self.wait_for_sync,
            "keyOptions": self.key_options.describe(),
            "numberOfShards": self.shard_count,
            "shardKeys": list(self.shard_keys),
            "schema": self.schema,
            "computedValues": self.computed_values,
            "cacheEnabled": self.cache_enabled,
            **self.cluster,
        }


def check_name(name: Any, is_system: bool = False) -> None:
    """Refuse what may not be a collection's name.

    Raises:
        ArangoError: 1208.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ArangoError(1208)
    if name[0].isdigit() or (name.startswith("_") and not is_system):
        raise ArangoError(1208)
