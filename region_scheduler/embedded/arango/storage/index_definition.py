"""What an index is: the checked form of a POST to /_api/index, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from region_scheduler.embedded.arango.errors import ArangoError

PASSIVE_TYPES = frozenset({"geo", "fulltext", "inverted", "zkd", "mdi", "mdi-prefixed", "vector"})
"""Kept and listed, so that set-ups which create them run, but never used by a query."""

_DEFAULTS: dict[str, dict[str, Any]] = {
    "geo": {
        "geoJson": False,
        "legacyPolygons": False,
        "maxNumCoverCells": 8,
        "bestIndexedLevel": 17,
        "worstIndexedLevel": 4,
    },
    "fulltext": {"minLength": 2},
    "mdi": {"estimates": False},
    "mdi-prefixed": {"estimates": True},
}
_SORTED_TYPES = frozenset({"persistent", "hash", "skiplist"})
_FIELDS_MAX = 32


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """A checked index definition.

    Attributes:
        number: Unique over the server; the part of the id after the collection's name.
        fields: Attribute paths; a part ending in `[*]` expands an array.
        shown: Type-specific attributes as they are answered.
    """

    number: int
    name: str
    type: str
    fields: tuple[tuple[str, ...], ...]
    is_unique: bool = False
    is_sparse: bool = False
    is_deduplicating: bool = True
    expire_after_s: float | None = None
    shown: dict[str, Any] = field(default_factory=dict)

    def describe(self, collection: str) -> dict[str, Any]:
        """Return the definition as the HTTP API shows it."""
        return {
            "id": f"{collection}/{self.number}",
            "type": self.type,
            "name": self.name,
            "fields": [".".join(path) for path in self.fields],
            "unique": self.is_unique,
            "sparse": self.is_sparse,
            **self.shown,
        }

    def is_same_as(self, other: IndexDefinition) -> bool:
        """Return whether both describe the same index, whatever their names and numbers."""
        return (
            (self.type, self.fields, self.is_unique, self.is_sparse, self.expire_after_s)
            == (other.type, other.fields, other.is_unique, other.is_sparse, other.expire_after_s)
        ) and self.shown == other.shown


PRIMARY = IndexDefinition(
    0, "primary", "primary", (("_key",),), is_unique=True, shown={"selectivityEstimate": 1}
)
EDGE = IndexDefinition(1, "edge", "edge", (("_from",), ("_to",)), shown={"selectivityEstimate": 1})


def define_index(body: Any, number: int) -> IndexDefinition:
    """Check the body of an index creation and return its definition.

    Args:
        body: The request body.
        number: The number that the index gets if it is new.

    Raises:
        ArangoError: 10 for anything wrong with the body.
    """
    if not isinstance(body, dict):
        raise ArangoError(10)
    kind = body.get("type")
    if kind not in _SORTED_TYPES and kind != "ttl" and kind not in PASSIVE_TYPES:
        raise ArangoError(10, "invalid index type")
    name = body.get("name") or f"idx_{number}"
    if not isinstance(name, str) or name[0].isdigit():
        raise ArangoError(1208)
    if kind in PASSIVE_TYPES:
        return _passive(body, number, name, kind)
    fields = _fields(body.get("fields"))
    if kind == "ttl":
        return _ttl(body, number, name, fields)
    deduplicates = body.get("deduplicate") is not False
    shown: dict[str, Any] = {
        "deduplicate": deduplicates,
        "estimates": body.get("estimates") is not False,
        "cacheEnabled": bool(body.get("cacheEnabled", False)),
    }
    if body.get("storedValues"):
        shown["storedValues"] = body["storedValues"]
    return IndexDefinition(
        number,
        name,
        kind,
        fields,
        is_unique=bool(body.get("unique", False)),
        is_sparse=bool(body.get("sparse", False)),
        is_deduplicating=deduplicates,
        shown=shown,
    )


def _ttl(
    body: dict[str, Any], number: int, name: str, fields: tuple[tuple[str, ...], ...]
) -> IndexDefinition:
    expire_after: Any = body.get("expireAfter")
    is_number = isinstance(expire_after, int | float) and not isinstance(expire_after, bool)
    if len(fields) != 1 or not is_number or expire_after < 0:
        raise ArangoError(10, "ttl indexes need exactly one field and a positive expireAfter")
    if any("[*]" in part for part in fields[0]):
        raise ArangoError(10, "cannot use array expansion in a ttl index")
    return IndexDefinition(
        number,
        name,
        "ttl",
        fields,
        is_sparse=True,
        expire_after_s=float(expire_after),
        shown={"expireAfter": expire_after, "estimates": False},
    )


def _passive(body: dict[str, Any], number: int, name: str, kind: str) -> IndexDefinition:
    fields = body.get("fields")
    if not isinstance(fields, list) or not fields:
        raise ArangoError(10, "invalid index fields")
    known = {"type", "name", "fields", "unique", "sparse", "inBackground"}
    return IndexDefinition(
        number,
        name,
        kind,
        tuple((str(f.get("name")) if isinstance(f, dict) else str(f),) for f in fields),
        is_unique=bool(body.get("unique", False)),
        is_sparse=kind in ("geo", "fulltext") or bool(body.get("sparse", False)),
        shown={
            **_DEFAULTS.get(kind, {}),
            **{key: value for key, value in body.items() if key not in known},
        },
    )


def _fields(given: Any) -> tuple[tuple[str, ...], ...]:
    if not isinstance(given, list) or not given or len(given) > _FIELDS_MAX:
        raise ArangoError(10, "invalid index fields")
    fields = tuple(_path(text) for text in given)
    if len(set(fields)) != len(fields):
        raise ArangoError(10, "duplicate attribute name in index fields list")
    if sum("[*]" in part for path in fields for part in path) > 1 and _has_two_expansions(fields):
        raise ArangoError(10, "cannot use multiple [*] in one index attribute")
    return fields


def _has_two_expansions(fields: tuple[tuple[str, ...], ...]) -> bool:
    return any(sum("[*]" in part for part in path) > 1 for path in fields)


def _path(text: Any) -> tuple[str, ...]:
    if not isinstance(text, str) or not text:
        raise ArangoError(10, "invalid index fields")
    path = tuple(text.split("."))
    if path == ("_id",) or not all(path):
        raise ArangoError(10, f"cannot index attribute '{text}'")
    return path
