"""What a write makes of a document: the rules of insert, update and replace, without any store."""

from __future__ import annotations

from typing import Any

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import Document
from region_scheduler.embedded.arango.storage.keys import is_handle

SYSTEM_ATTRIBUTES = frozenset({"_key", "_id", "_rev", "_from", "_to"})
_IDENTITY = frozenset({"_key", "_id", "_rev"})
_EDGE_ENDS = ("_from", "_to")


def require_object(body: Any) -> dict[str, Any]:
    """Return `body` if it is an object.

    Raises:
        ArangoError: 1227.
    """
    if type(body) is not dict:
        raise ArangoError(1227)
    return body


def key_of(collection: str, body: Any) -> str:
    """Return the key that a selector names: a key, a handle, or an object with `_key` or `_id`.

    Raises:
        ArangoError: 1227 for another type, 1226 if there is no key in it, 1221 for a bad one, 1202
            for a handle of another collection.
    """
    if type(body) is str:
        return _key_in(collection, body)
    key = require_object(body).get("_key")
    if key is None:
        handle = body.get("_id")
        if not isinstance(handle, str):
            raise ArangoError(1226)
        return _key_in(collection, handle)
    if type(key) is not str:
        raise ArangoError(1221)
    return key


def _key_in(collection: str, text: str) -> str:
    place, is_handle_text, key = text.partition("/")
    if not is_handle_text:
        return text
    if place != collection:
        raise ArangoError(1202)
    return key


def new_document(
    collection: str, is_edge: bool, key: str, rev: str, body: dict[str, Any]
) -> Document:
    """Return the document that an insert or a replace of `body` stores.

    Raises:
        ArangoError: 1233 if an edge lacks a valid `_from` or `_to`.
    """
    identity: Document = {"_key": key, "_id": f"{collection}/{key}"}
    if is_edge:
        for end in _EDGE_ENDS:
            if not is_handle(body.get(end)):
                raise ArangoError(1233)
            identity[end] = body[end]
    identity["_rev"] = rev
    return identity | body | identity  # its own attributes first, whatever `body` says of them


def merged(
    old: Document,
    patch: dict[str, Any],
    rev: str,
    is_edge: bool,
    *,
    keep_null: bool,
    merge_objects: bool,
) -> Document:
    """Return the document that an update of `old` with `patch` stores.

    Raises:
        ArangoError: 1233 if an edge would get an invalid `_from` or `_to`.
    """
    new = dict(old)
    for name, value in patch.items():
        if name in _IDENTITY:
            continue
        if is_edge and name in _EDGE_ENDS and not is_handle(value):
            raise ArangoError(1233)
        _assign(new, name, value, keep_null, merge_objects)
    new["_rev"] = rev
    return new


def is_empty_patch(patch: dict[str, Any]) -> bool:
    """Return whether `patch` changes no attribute; such an update keeps the revision."""
    return patch.keys() <= _IDENTITY


def is_outdated(old: Document, body: dict[str, Any], attribute: str | None) -> bool:
    """Return whether `versionAttribute` says that `body` is not newer than `old`."""
    if attribute is None:
        return False
    given: Any = body.get(attribute)
    stored: Any = old.get(attribute)
    return bool(_is_version(given) and _is_version(stored) and given <= stored)


def _is_version(value: Any) -> bool:
    return type(value) in (int, float) and value >= 0


def _assign(
    target: dict[str, Any], name: str, value: Any, keep_null: bool, merge_objects: bool
) -> None:
    if value is None and not keep_null:
        target.pop(name, None)
        return
    if type(value) is dict:
        before = target.get(name)
        if merge_objects and type(before) is dict:
            inner = dict(before)
            for key, item in value.items():
                _assign(inner, key, item, keep_null, merge_objects)
            value = inner
        elif not keep_null:
            value = _without_nulls(value)
    target[name] = value


def _without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _without_nulls(item) if type(item) is dict else item
        for name, item in value.items()
        if item is not None
    }
