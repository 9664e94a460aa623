"""/_api/collection and /_api/index."""

from __future__ import annotations

import zlib
from typing import Any

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.call import Call
from region_scheduler.embedded.arango.http.message import Response, answer
from region_scheduler.embedded.arango.http.router import Table
from region_scheduler.embedded.arango.storage.collection import Collection
from region_scheduler.embedded.arango.storage.properties import CollectionProperties
from region_scheduler.embedded.arango.storage.record import encode
from region_scheduler.embedded.arango.storage.revision import read

_LOADED = 3
_GENERATORS = ("upgrade", "padded", "uuid", "autoincrement", "traditional")


def summary(collection: Collection) -> dict[str, Any]:
    """Return what every answer about a collection begins with."""
    return {
        "id": str(collection.number),
        "name": collection.name,
        "status": _LOADED,
        "type": collection.properties.type,
        "isSystem": collection.properties.is_system,
        "globallyUniqueId": (
            collection.name if collection.properties.is_system else f"h1/{collection.number}"
        ),
    }


def _details(call: Call, collection: Collection) -> dict[str, Any]:
    return {
        **summary(collection),
        "statusString": "loaded",
        "objectId": str(collection.number + 1),
        "supportsRBAC": True,
        **collection.properties.describe(call.store.is_cluster),
    }


def list_collections(call: Call) -> Response:
    """GET: all collections."""
    skips_system = call.flag("excludeSystem")
    found = [
        summary(collection)
        for collection in call.database.collections.values()
        if not (skips_system and collection.properties.is_system)
    ]
    return answer(200, result=found)


def create(call: Call) -> Response:
    """POST: a new collection."""
    body = call.json() if call.request.body else None
    properties = CollectionProperties.from_body(body, call.store.is_cluster)
    collection = call.store.catalog.create_collection(call.database, properties)
    return answer(200, **_details(call, collection))


def _known(call: Call, name: str) -> Collection:
    collection = call.database.collection(name)
    call.require_collections({collection.name: "read" if call.request.method == "GET" else "write"})
    return collection


def show(call: Call, name: str) -> Response:
    """GET: one collection."""
    return answer(200, **summary(_known(call, name)))


def drop(call: Call, name: str) -> Response:
    """DELETE: a collection and all that is in it."""
    collection = _known(call, name)
    if collection.properties.is_system and not call.flag("isSystem"):
        raise ArangoError(11)
    call.store.catalog.drop_collection(call.database, collection)
    return answer(200, id=str(collection.number))


def read_part(call: Call, name: str, part: str) -> Response:
    """GET: properties, count, figures, revision or checksum of a collection."""
    collection = _known(call, name)
    access = call.collection(collection.name)
    shown = _details(call, collection)
    place = _place(call)
    if part == "properties":
        return answer(200, place, **shown)
    if part == "checksum":
        return answer(200, place, **summary(collection), **_checksum(call, access.records()))
    if part == "revision":
        revisions = [record.rev for record in access.records()]
        return answer(200, place, **shown, revision=max(revisions, key=read, default="0"))
    shown["count"] = access.count()
    if part == "count":
        return answer(200, place, **shown)
    if part == "figures":
        size = sum(len(record.blob) for record in access.records())
        indexes = {"count": len(collection.definitions), "size": 0}
        figures = {"indexes": indexes, "documentsSize": size, "cacheInUse": False}
        figures |= {"cacheSize": 0, "cacheUsage": 0}
        if call.flag("details"):
            figures["engine"] = {
                "documents": shown["count"],
                "indexes": [
                    {"type": one.type, "id": one.number, "count": shown["count"]}
                    for one in collection.definitions
                ],
            }
        return answer(200, place, **shown, figures=figures)
    if part == "shards" and call.store.is_cluster:
        names = [f"s{collection.number}_{n}" for n in range(collection.properties.shard_count)]
        shards = {name: ["PRMR-0001"] for name in names} if call.flag("details") else names
        return answer(200, place, **shown, shards=shards)
    raise ArangoError(404, "expecting one of the resources count, figures, properties, checksum")


def _place(call: Call) -> dict[str, str]:
    path = call.request.path
    return {"location": path if path.startswith("/_db/") else f"/_db/{call.database.name}{path}"}


def _checksum(call: Call, records: Any) -> dict[str, str]:
    with_revisions, with_data = call.flag("withRevisions"), call.flag("withData")
    total = 0
    revision = "0"
    for record in records:
        text = record.key
        if with_revisions:
            text += record.rev
        part = zlib.crc32(text.encode())
        if with_data:
            part = zlib.crc32(record.blob, part)
        total ^= part
        revision = max(revision, record.rev, key=read)
    return {"checksum": str(total), "revision": revision}


def change(call: Call, name: str, act: str) -> Response:
    """PUT: change properties, truncate, rename, load and the like."""
    collection = _known(call, name)
    place = _place(call)
    if act == "properties":
        collection.properties.change(call.object())
        call.store.catalog.save_collection(call.database, collection)
        return answer(200, place, **_details(call, collection))
    if act == "rename":
        call.store.catalog.rename_collection(call.database, collection, call.object().get("name"))
        return answer(200, place, **summary(collection))
    if act == "truncate":
        access = call.collection(collection.name)
        for record in access.records():
            access.remove_record(record.key, None)
        call.is_synced(access)
        return answer(200, place, **summary(collection))
    if act == "load":
        return answer(200, place, **summary(collection), count=len(collection))
    if act in ("unload", "compact"):
        return answer(200, place, **summary(collection))
    if act == "loadIndexesIntoMemory":
        return answer(200, place, result=True)
    if act == "recalculateCount":
        return answer(200, place, result=True, count=len(collection))
    if act == "responsibleShard":
        key = call.object().get("_key", "")
        shard = f"s{collection.number}_{collection.shard_of(str(key))}"
        return answer(200, place, shardId=shard)
    raise ArangoError(404, "expecting one of the actions load, truncate, properties, rename")


# Indexes.


def list_indexes(call: Call) -> Response:
    """GET: all indexes of a collection."""
    collection = _known(call, call.text("collection") or "")
    indexes = collection.describe_indexes()
    identifiers = {index["id"]: index for index in indexes}
    return answer(200, indexes=indexes, identifiers=identifiers)


def create_index(call: Call) -> Response:
    """POST: a new index, or the same one that exists."""
    collection = _known(call, call.text("collection") or "")
    definition, is_new = call.store.catalog.create_index(collection, call.object())
    shown = collection.describe_index(definition)
    return answer(201 if is_new else 200, **shown, isNewlyCreated=is_new)


def show_index(call: Call, name: str, index: str) -> Response:
    """GET: one index, by number or name."""
    collection = _known(call, name)
    return answer(200, **collection.describe_index(collection.definition(index)))


def drop_index(call: Call, name: str, index: str) -> Response:
    """DELETE: an index, by number or name."""
    collection = _known(call, name)
    definition = call.store.catalog.drop_index(collection, index)
    return answer(200, id=f"{collection.name}/{definition.number}")


def list_key_generators(_call: Call) -> Response:
    """GET /_api/key-generators."""
    return Response(200, encode({"keyGenerators": _GENERATORS}))


def refuse_nameless(_call: Call) -> Response:
    """PUT without a collection.

    Raises:
        ArangoError: 400.
    """
    raise ArangoError(400, "expected PUT /_api/collection/<collection-name>/<action>")


GENERATORS_TABLE: Table = {("GET", 0): list_key_generators}
TABLE: Table = {
    ("GET", 0): list_collections,
    ("PUT", 0): refuse_nameless,
    ("POST", 0): create,
    ("GET", 1): show,
    ("DELETE", 1): drop,
    ("GET", 2): read_part,
    ("PUT", 2): change,
}

INDEX_TABLE: Table = {
    ("GET", 0): list_indexes,
    ("POST", 0): create_index,
    ("GET", 2): show_index,
    ("DELETE", 2): drop_index,
}
