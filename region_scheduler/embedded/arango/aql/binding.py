"""Bind values and collections, checked against what a query mentions before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.scope import Layout
from region_scheduler.embedded.arango.errors import ArangoError


def check_bind(layout: Layout, bind: Mapping[str, Any]) -> None:
    """Refuse bind values that do not fit the query.

    Raises:
        ArangoError: 1551 for one that is missing, 1552 for one too many, 1553 for a wrong type.
    """
    for name in (*layout.binds, *layout.collection_binds):
        if name not in bind:
            raise ArangoError(1551, f"AQL: no value specified for declared bind parameter '{name}'")
    for name in layout.collection_binds:
        if not isinstance(bind[name], str) or not bind[name]:
            raise _wrong_type(name)
    for name in layout.attribute_binds:
        if not _is_path(bind[name]):
            raise _wrong_type(name)
    if len(bind) > len(layout.binds) + len(layout.collection_binds):
        for name in bind:
            if name not in layout.binds and name not in layout.collection_binds:
                raise ArangoError(
                    1552, f"AQL: bind parameter '{name}' was not declared in the query"
                )


def _wrong_type(name: str) -> ArangoError:
    return ArangoError(1553, f"AQL: bind parameter '{name}' has an invalid value or type")


def _is_path(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value)
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) for v in value)


def collections_of(layout: Layout, bind: Mapping[str, Any]) -> dict[str, str]:
    """Return the collections that a query names, each with `read` or `write`.

    A collection parameter that `bind` lacks is left out.
    """
    found: dict[str, str] = {}
    mentions = [(collection, "read") for collection in layout.declared]
    mentions += [(touch.collection, touch.kind) for touch in layout.touches if touch.collection]
    for collection, kind in mentions:
        if isinstance(collection, syntax.CollectionBind) and collection.name not in bind:
            continue
        name = name_of(collection, bind)
        if kind == "write" or name not in found:
            found[name] = "write" if kind == "write" else "read"
    return found


def name_of(collection: syntax.CollectionName, bind: Mapping[str, Any]) -> str:
    """Return a collection's name."""
    if isinstance(collection, syntax.CollectionBind):
        return str(bind[collection.name])
    return collection.name


def check_order(layout: Layout, bind: Mapping[str, Any]) -> None:
    """Refuse to touch a collection again after it was written to.

    Raises:
        ArangoError: 1579.
    """
    written: set[str] = set()
    for touch in layout.touches:
        if touch.collection is None:
            if written:
                by = "traversal" if touch.kind == "traverse" else "function DOCUMENT()"
                raise ArangoError(1579, f"AQL: access after data-modification by {by}")
            continue
        name = name_of(touch.collection, bind)
        if name in written:
            raise ArangoError(1579, f"AQL: access after data-modification by collection '{name}'")
        if touch.kind == "write":
            written.add(name)
