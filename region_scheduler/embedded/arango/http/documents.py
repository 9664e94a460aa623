"""/_api/document: single documents, arrays of them, and bulk reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from region_scheduler.embedded.arango.errors import ArangoError, message_of
from region_scheduler.embedded.arango.http.call import Call, is_true
from region_scheduler.embedded.arango.http.message import Response
from region_scheduler.embedded.arango.http.router import Table
from region_scheduler.embedded.arango.session import OverwriteMode, WriteOptions
from region_scheduler.embedded.arango.storage.access import CollectionAccess, wanted_rev
from region_scheduler.embedded.arango.storage.document_rules import key_of, require_object
from region_scheduler.embedded.arango.storage.record import Record

Meta = dict[str, Any]
_MODES: dict[str, OverwriteMode] = {
    "conflict": "conflict",
    "ignore": "ignore",
    "replace": "replace",
    "update": "update",
}
_DIRTY = {"x-arango-potential-dirty-read": "true"}


@dataclass(frozen=True, slots=True)
class _Wishes:
    """What the query parameters of a write ask for."""

    is_silent: bool
    returns_new: bool
    returns_old: bool
    options: WriteOptions


def _wishes(call: Call) -> _Wishes:
    return _wishes_of(tuple(call.request.query.items()))


@lru_cache(maxsize=512)
def _wishes_of(parameters: tuple[tuple[str, str], ...]) -> _Wishes:
    query = dict(parameters)
    mode: OverwriteMode = "replace" if is_true(query.get("overwrite")) else "conflict"
    return _Wishes(
        is_silent=is_true(query.get("silent")),
        returns_new=is_true(query.get("returnNew")),
        returns_old=is_true(query.get("returnOld")),
        options=WriteOptions(
            overwrite_mode=_MODES.get(query.get("overwriteMode", ""), mode),
            keep_null=is_true(query.get("keepNull", "true")),
            merge_objects=is_true(query.get("mergeObjects", "true")),
            ignore_revs=is_true(query.get("ignoreRevs", "true")),
            version_attribute=query.get("versionAttribute"),
        ),
    )


# Reading.


def read_document(call: Call, name: str, key: str) -> Response:
    """GET and HEAD of one document."""
    call.may_show_past = True
    access = call.collection(name)
    record = access.record(key)
    if record is None:
        raise ArangoError(1202)
    if record.rev == unquoted(call.header("if-none-match")):
        return Response(304, b"", {"etag": f'"{record.rev}"'})
    _require_match(call, access, key)
    headers = {"etag": f'"{record.rev}"'}
    if call.header("x-arango-allow-dirty-read") == "true":
        headers |= _DIRTY
    if call.request.method == "HEAD":
        return Response(200, b"", headers)
    return Response(200, record.blob, headers)


def read_many(call: Call, access: CollectionAccess, selectors: list[Any]) -> Response:
    """PUT with onlyget: the documents in the order of the selectors."""
    ignores_revs = call.flag("ignoreRevs", True)
    parts: list[bytes] = []
    for selector in selectors:
        try:
            rev = None
            if not ignores_revs and isinstance(selector, dict):
                rev = selector.get("_rev")
            parts.append(access.wanted(key_of(access.name, selector), rev).blob)
        except ArangoError as error:
            parts.append(orjson.dumps(_failed(error)))
    dirty = call.header("x-arango-allow-dirty-read") == "true"
    return Response(200, b"[" + b",".join(parts) + b"]", _DIRTY if dirty else {})


# Writing one.


def insert(call: Call, name: str | None = None) -> Response:
    """POST: one document or an array of them."""
    name = name or call.text("collection")
    if not name:
        raise ArangoError(1204)
    access = call.collection(name)
    body = call.json()
    wishes = _wishes(call)
    if type(body) is list:
        return _each(call, access, wishes, body, _insert_one)
    meta = _insert_one(access, body, wishes)
    return _single(call, access, wishes, meta)


def _insert_one(access: CollectionAccess, body: Any, wishes: _Wishes) -> Meta:
    before, after = access.insert_record(body, wishes.options)
    if after is None:  # with `ignore`, the one that was there
        return _meta(access, before) if before is not None else {}
    meta = _meta(access, after)
    if before is not None:
        meta["_oldRev"] = before.rev
        if wishes.returns_old:
            meta["old"] = orjson.Fragment(before.blob)
    if wishes.returns_new:
        meta["new"] = orjson.Fragment(after.blob)
    return meta


def update(call: Call, name: str, key: str | None = None) -> Response:
    """PATCH: merge into one document or into each of an array."""
    return _modify(call, name, key, CollectionAccess.update_record)


def replace(call: Call, name: str, key: str | None = None) -> Response:
    """PUT: replace one document or each of an array, or read many with `onlyget`."""
    if key is None and call.flag("onlyget"):
        body = call.json()
        if not isinstance(body, list):
            raise ArangoError(1227)
        call.may_show_past = True
        return read_many(call, call.collection(name), body)
    return _modify(call, name, key, CollectionAccess.replace_record)


_Modify = Callable[[CollectionAccess, str, Any, Any, WriteOptions], tuple[Record, Record]]


def _modify(call: Call, name: str, key: str | None, act: _Modify) -> Response:
    body = call.json()
    if key is None and type(body) is not list:
        raise ArangoError(1227)
    access = call.collection(name)
    wishes = _wishes(call)
    if key is None:

        def one(access: CollectionAccess, body: Any, wishes: _Wishes) -> Meta:
            key = key_of(access.name, require_object(body))
            rev = wanted_rev(body, wishes.options)
            return _changed(access, wishes, act(access, key, rev, body, wishes.options))

        return _each(call, access, wishes, body, one)
    require_object(body)
    rev = unquoted(call.header("if-match"))
    if rev is None:
        rev = wanted_rev(body, wishes.options)
    changed = _conditional(act, access, key, rev, body, wishes.options)
    return _single(call, access, wishes, _changed(access, wishes, changed))


def _changed(access: CollectionAccess, wishes: _Wishes, change: tuple[Record, Record]) -> Meta:
    before, after = change
    meta = _meta(access, after)
    meta["_oldRev"] = before.rev
    if wishes.returns_old:
        meta["old"] = orjson.Fragment(before.blob)
    if wishes.returns_new:
        meta["new"] = orjson.Fragment(after.blob)
    return meta


def remove(call: Call, name: str, key: str | None = None) -> Response:
    """DELETE: one document or each of an array."""
    wishes = _wishes(call)
    if key is None:
        body = call.json() if call.request.body else None
        if not isinstance(body, list):
            raise ArangoError(400, "expecting an array of documents or keys in the body")
        access = call.collection(name)
        return _each(call, access, wishes, body, _remove_one, synced_status=200)
    access = call.collection(name)
    rev = unquoted(call.header("if-match"))
    if rev is None and call.request.body and not wishes.options.ignore_revs:
        rev = wanted_rev(call.json(), wishes.options)
    record = _conditional(CollectionAccess.remove_record, access, key, rev)
    return _single(call, access, wishes, _removed(access, wishes, record), synced_status=200)


def _remove_one(access: CollectionAccess, selector: Any, wishes: _Wishes) -> Meta:
    if not isinstance(selector, str | dict):
        raise ArangoError(1227)
    rev = wanted_rev(selector, wishes.options)
    return _removed(access, wishes, access.remove_record(key_of(access.name, selector), rev))


def _removed(access: CollectionAccess, wishes: _Wishes, record: Record) -> Meta:
    meta = _meta(access, record)
    if wishes.returns_old:
        meta["old"] = orjson.Fragment(record.blob)
    return meta


# Answers.


def _meta(access: CollectionAccess, record: Record) -> Meta:
    return {"_id": f"{access.name}/{record.key}", "_key": record.key, "_rev": record.rev}


def _single(
    call: Call, access: CollectionAccess, wishes: _Wishes, meta: Meta, synced_status: int = 201
) -> Response:
    status = synced_status if call.is_synced(access) else 202
    if wishes.is_silent:
        return Response(status, b"{}")
    headers = {
        "etag": f'"{meta["_rev"]}"',
        "location": f"/_db/{call.database.name}/_api/document/{meta['_id']}",
    }
    return Response(status, orjson.dumps(meta), headers)


def _each(
    call: Call,
    access: CollectionAccess,
    wishes: _Wishes,
    bodies: list[Any],
    act: Callable[[CollectionAccess, Any, _Wishes], Meta],
    synced_status: int = 201,
) -> Response:
    results: list[Meta] = []
    errors: dict[str, int] = {}
    for body in bodies:
        try:
            results.append(act(access, body, wishes))
        except ArangoError as error:
            results.append(_failed(error))
            errors[str(error.number)] = errors.get(str(error.number), 0) + 1
    has_written = not results or sum(errors.values()) < len(results)
    status = synced_status if has_written and call.is_synced(access) else 202
    headers = {"x-arango-error-codes": orjson.dumps(errors).decode()} if errors else {}
    if wishes.is_silent:
        failed = [result for result in results if "error" in result]
        return Response(status, orjson.dumps(failed) if failed else b"{}", headers)
    return Response(status, orjson.dumps(results), headers)


def _failed(error: ArangoError) -> Meta:
    return {
        "error": True,
        "errorNum": error.number,
        "errorMessage": error.message or message_of(error.number),
    }


# Preconditions.


def _conditional(act: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return act(*arguments)
    except ArangoError as error:
        raise refused(error) from error


def refused(error: ArangoError) -> ArangoError:
    """Return `error` with status 412 if it is a revision precondition that failed."""
    if error.number == 1200 and "_rev" in error.extra:
        error.status = 412
    return error


def _require_match(call: Call, access: CollectionAccess, key: str) -> None:
    rev = unquoted(call.header("if-match"))
    if rev is not None:
        _conditional(access.wanted, key, rev)


def unquoted(tag: str | None) -> str | None:
    """Return a revision without the quotes of an entity tag."""
    if tag is None:
        return None
    return tag[1:-1] if len(tag) >= 2 and tag[0] == tag[-1] and tag[0] in "\"'" else tag


def refuse_keyless(_call: Call, _name: str = "") -> Response:
    """GET without a key.

    Raises:
        ArangoError: 1203.
    """
    raise ArangoError(1203, "expecting GET /_api/document/<collection>/<key>")


def refuse_nameless(_call: Call) -> Response:
    """PUT, PATCH or DELETE without a collection.

    Raises:
        ArangoError: 400.
    """
    raise ArangoError(400, "expecting /_api/document/<collection> or /_api/document/<document-id>")


TABLE: Table = {
    ("GET", 0): refuse_keyless,
    ("GET", 1): refuse_keyless,
    ("PATCH", 0): refuse_nameless,
    ("PUT", 0): refuse_nameless,
    ("DELETE", 0): refuse_nameless,
    ("GET", 2): read_document,
    ("HEAD", 2): read_document,
    ("POST", 0): insert,
    ("POST", 1): insert,
    ("PATCH", 1): update,
    ("PATCH", 2): update,
    ("PUT", 1): replace,
    ("PUT", 2): replace,
    ("DELETE", 1): remove,
    ("DELETE", 2): remove,
}
