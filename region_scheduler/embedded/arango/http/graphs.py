"""/_api/gharial: named graphs, and their vertices and edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.call import Call
from region_scheduler.embedded.arango.http.documents import refused, unquoted
from region_scheduler.embedded.arango.http.message import Response, answer
from region_scheduler.embedded.arango.http.router import Table
from region_scheduler.embedded.arango.session import Document, WriteOptions
from region_scheduler.embedded.arango.storage.access import CollectionAccess, wanted_rev
from region_scheduler.embedded.arango.storage.document_rules import require_object
from region_scheduler.embedded.arango.storage.graphs import (
    Graphs,
    edge_collections,
    vertex_collections,
)
from region_scheduler.embedded.arango.storage.keys import is_handle
from region_scheduler.embedded.arango.storage.record import Record

_PARTS = ("vertex", "edge")


def _graphs(call: Call) -> Graphs:
    return Graphs(call.store.catalog, call.transaction)


def _shown(document: Document) -> Document:
    return {**document, "name": document["_key"]}


def _graph_answer(call: Call, document: Document) -> Response:
    status = 201 if call.flag("waitForSync") else 202
    return answer(status, {"etag": document["_rev"]}, graph=_shown(document))


def list_graphs(call: Call) -> Response:
    """GET: all graphs."""
    return answer(200, graphs=[_shown(document) for document in _graphs(call).all()])


def create(call: Call) -> Response:
    """POST: a new graph."""
    return _graph_answer(call, _graphs(call).create(call.object()))


def show(call: Call, name: str) -> Response:
    """GET: one graph."""
    return answer(200, graph=_shown(_graphs(call).one(name)))


def drop(call: Call, name: str) -> Response:
    """DELETE: a graph."""
    _graphs(call).drop(name, drops_collections=call.flag("dropCollections"))
    return answer(201 if call.flag("waitForSync") else 202, removed=True)


def list_part(call: Call, name: str, part: str) -> Response:
    """GET: the vertex or the edge collections of a graph."""
    document = _graphs(call).one(name)
    names = vertex_collections(document) if _part(part) == "vertex" else edge_collections(document)
    return answer(200, collections=sorted(names))


def add_part(call: Call, name: str, part: str) -> Response:
    """POST: add a vertex collection or an edge definition."""
    body = call.object()
    if _part(part) == "vertex":
        return _graph_answer(call, _graphs(call).add_vertices(name, body.get("collection")))
    return _graph_answer(call, _graphs(call).add_definition(name, body))


def replace_part(call: Call, name: str, part: str, collection: str) -> Response:
    """PUT: replace an edge definition."""
    if _part(part) != "edge":
        raise ArangoError(405)
    return _graph_answer(call, _graphs(call).replace_definition(name, collection, call.object()))


def remove_part(call: Call, name: str, part: str, collection: str) -> Response:
    """DELETE: take out a vertex collection or an edge definition."""
    drops = call.flag("dropCollection") or call.flag("dropCollections")
    graphs = _graphs(call)
    if _part(part) == "vertex":
        return _graph_answer(call, graphs.remove_vertices(name, collection, drops=drops))
    return _graph_answer(call, graphs.remove_definition(name, collection, drops=drops))


def _part(part: str) -> str:
    if part not in _PARTS:
        raise ArangoError(404)
    return part


# Vertices and edges.


def _member(call: Call, name: str, part: str, collection: str) -> CollectionAccess:
    """Return a collection, of which ArangoDB does not ask whether it belongs to the graph."""
    _graphs(call).one(name)
    _part(part)
    return call.collection(collection)


def _require_member(call: Call, name: str, part: str, collection: str) -> None:
    document = _graphs(call).one(name)
    if _part(part) == "vertex" and collection not in vertex_collections(document):
        raise ArangoError(1947, status=404)
    if part == "edge" and collection not in edge_collections(document):
        raise ArangoError(1930)


def read(call: Call, name: str, part: str, collection: str, key: str) -> Response:
    """GET: one vertex or edge."""
    access = _member(call, name, part, collection)
    rev = unquoted(call.header("if-match")) or call.text("rev")
    record = _conditional(access.wanted, key, rev)
    if record.rev == unquoted(call.header("if-none-match")):
        return Response(304, b"", {"etag": record.rev})
    return answer(200, {"etag": record.rev}, **{part: access.source.cache.document(record)})


def insert(call: Call, name: str, part: str, collection: str) -> Response:
    """POST: a new vertex or edge."""
    _require_member(call, name, part, collection)
    access = _member(call, name, part, collection)
    body = require_object(call.json())
    if part == "edge":
        _check_ends(call, name, collection, body)
    _, after = access.insert_record(body, WriteOptions())
    return _written(call, access, part, None, after)


def update(call: Call, name: str, part: str, collection: str, key: str) -> Response:
    """PATCH: merge into a vertex or edge."""
    return _modify(call, (name, part, collection, key), CollectionAccess.update_record)


def replace(call: Call, name: str, part: str, collection: str, key: str) -> Response:
    """PUT: replace a vertex or edge."""
    return _modify(call, (name, part, collection, key), CollectionAccess.replace_record)


def _modify(call: Call, path: tuple[str, str, str, str], act: Callable[..., Any]) -> Response:
    name, part, collection, key = path
    _graphs(call).one(name)
    body = require_object(call.json())
    if part == "edge" and (call.request.method == "PUT" or "_from" in body or "_to" in body):
        _check_ends(call, name, collection, body)
    access = _member(call, name, part, collection)
    options = WriteOptions(
        keep_null=call.flag("keepNull", True), ignore_revs=call.flag("ignoreRevs", True)
    )
    rev = unquoted(call.header("if-match")) or call.text("rev") or wanted_rev(body, options)
    before, after = _conditional(act, access, key, rev, body, options)
    return _written(call, access, part, before, after)


def remove(call: Call, name: str, part: str, collection: str, key: str) -> Response:
    """DELETE: a vertex with all its edges in the graph, or an edge."""
    access = _member(call, name, part, collection)
    rev = unquoted(call.header("if-match")) or call.text("rev")
    record = _conditional(access.remove_record, key, rev)
    if part == "vertex":
        _remove_edges(call, name, f"{collection}/{key}")
    shown: dict[str, Any] = {"removed": True}
    if call.flag("returnOld"):
        shown["old"] = access.source.cache.document(record)
    return answer(200 if call.is_synced(access) else 202, **shown)


def _remove_edges(call: Call, name: str, vertex_id: str) -> None:
    # An edge collection of this graph may also be in others; its edges would dangle there as well.
    for edges in edge_collections(_graphs(call).one(name)):
        access = call.collection(edges)
        source = access.source
        for index in (source.leaving, source.entering):
            for record in access.edge_records(index, vertex_id):
                if access.record(record.key) is not None:
                    access.remove_record(record.key, None)


def _check_ends(call: Call, name: str, collection: str, body: dict[str, Any]) -> None:
    given = {end: body[end] for end in ("_from", "_to") if body.get(end) is not None}
    is_whole = call.request.method == "PATCH" or len(given) == 2
    if not is_whole or not all(is_handle(handle) for handle in given.values()):
        raise ArangoError(1233, "expecting both `_from` and `_to` attributes to be defined")
    definitions = _graphs(call).one(name)["edgeDefinitions"]
    definition = next((d for d in definitions if d["collection"] == collection), None)
    if definition is None:
        return
    for attribute, handle in given.items():
        vertices, _, key = str(handle).partition("/")
        if vertices not in definition[attribute.removeprefix("_")]:
            raise ArangoError(
                1947, f"referenced {attribute} collection '{vertices}' is not part of the graph"
            )
        if call.collection(vertices).record(key) is None:
            raise ArangoError(1202)


def _written(
    call: Call, access: CollectionAccess, part: str, before: Record | None, after: Record | None
) -> Response:
    if after is None:  # an insert or a change always leaves a record
        raise ArangoError(1202)
    meta = {"_id": f"{access.name}/{after.key}", "_key": after.key, "_rev": after.rev}
    shown: dict[str, Any] = {part: meta}
    document = access.source.cache.document
    if before is not None:
        meta["_oldRev"] = before.rev
        if call.flag("returnOld"):
            shown["old"] = document(before)
    if call.flag("returnNew"):
        shown["new"] = document(after)
    status = 202
    if call.is_synced(access):
        status = 201 if call.request.method == "POST" else 200
    return answer(status, {"etag": after.rev}, **shown)


def _conditional(act: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return act(*arguments)
    except ArangoError as error:
        raise refused(error) from error


TABLE: Table = {
    ("GET", 0): list_graphs,
    ("POST", 0): create,
    ("GET", 1): show,
    ("DELETE", 1): drop,
    ("GET", 2): list_part,
    ("POST", 2): add_part,
    ("PUT", 3): replace_part,
    ("DELETE", 3): remove_part,
    ("POST", 3): insert,
    ("GET", 4): read,
    ("PATCH", 4): update,
    ("PUT", 4): replace,
    ("DELETE", 4): remove,
}
