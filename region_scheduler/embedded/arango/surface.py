"""Which part of the API and of AQL a program uses: a recorder of request shapes and features.

An entry is a line of text: `PATCH /_api/document/*/*` for a request, the same followed by one
option (`?ignoreRevs=false`, `header if-match`, `body options.fullCount`), or `aql` followed by one
feature of a query (`aql Call LENGTH`, `aql Upsert options ignoreErrors`). Names, keys and values of
the program's own are left out, so that two programs that ask the same have the same entries.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.parse import parse
from region_scheduler.embedded.arango.aql.walk import nodes
from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.message import Request
from region_scheduler.embedded.arango.http.router import target_of
from region_scheduler.embedded.arango.storage.record import decode

VARIABLE: Final = "EMBEDDED_ARANGO_RECORD_SURFACE"
"""Names a directory; every engine of every process then writes there what it is asked."""

# The words of a path that belong to the API, by area and place; all others are names and keys.
_WORDS: Final = {
    "_api/collection": (1,),
    "_api/gharial": (1,),
    "_api/user": (1,),
    "_api/database": (0,),
    "_api/query": (0,),
    "_api/query-cache": (0,),
    "_admin/server": (0,),
}
_FIXED: Final = ("begin", "all", "done", "pending", "expired")
_HEADERS: Final = (
    "if-match",
    "if-none-match",
    "x-arango-trx-id",
    "x-arango-async",
    "x-arango-allow-dirty-read",
    "x-arango-queue-time-seconds",
    "content-encoding",
)
_VALUES: Final = {
    **dict.fromkeys(("1", "true"), "true"),
    **dict.fromkeys(("0", "false"), "false"),
    **{mode: mode for mode in ("replace", "update", "ignore", "conflict")},
}
# Areas whose bodies are options and not documents.
_OPTION_AREAS: Final = frozenset(
    "_api/collection _api/cursor _api/database _api/explain _api/gharial _api/index _api/query "
    "_api/transaction".split()
)
_NESTED: Final = frozenset({"collections", "keyOptions", "options"})
_VALUED_FIELDS: Final = frozenset({"direction", "kind", "operator", "is_replace", "is_filter"})
_OPTIONAL_FIELDS: Final = frozenset(
    "aggregates condition depth groups into into_value is_count is_distinct keep limit projection "
    "prune prune_name range_value".split()
)


class SurfaceRecorder:
    """Collects entries; writes each once, when it first comes.

    Args:
        file: Gets a line an entry; None keeps them in memory only.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.entries: set[str] = set()
        self._texts: set[str] = set()
        self._file = file

    @classmethod
    def from_environment(cls) -> SurfaceRecorder | None:
        """Return a recorder if this process is to record; each has a file of its own."""
        directory = os.environ.get(VARIABLE)
        return None if directory is None else cls(Path(directory) / f"{os.getpid()}.txt")

    def note(self, request: Request) -> None:
        """Add what a request uses."""
        try:
            found = set(_request_entries(request)) - self.entries
            for text in _query_texts(request):
                if text not in self._texts:
                    self._texts.add(text)
                    found |= set(_query_entries(text)) - self.entries
        except (ArangoError, ValueError):
            return  # no path, body or query of the API: there is nothing to be faithful to
        if found:
            self.entries |= found
            if self._file is not None:
                with self._file.open("a", encoding="utf-8") as file:
                    file.writelines(f"{entry}\n" for entry in sorted(found))


def _request_entries(request: Request) -> Iterator[str]:
    target = target_of(request.path)
    if target.area == "_admin/faults":  # ours, not ArangoDB's
        return
    kept = _WORDS.get(target.area, ())
    segments = [
        word if place in kept or word in _FIXED else "*"
        for place, word in enumerate(target.segments)
    ]
    shape = "/".join([f"{request.method} /{target.area}", *segments])
    yield shape
    for name, value in request.query.items():
        yield f"{shape} ?{name}={_VALUES.get(value, '*')}"
    for name in _HEADERS:
        if name in request.headers:
            yield f"{shape} header {name}"
    if request.body:
        yield from (f"{shape} body {part}" for part in _body_parts(target.area, request))


def _body_parts(area: str, request: Request) -> Iterator[str]:
    body = decode(request.body)
    if isinstance(body, list):
        yield "array"
    elif isinstance(body, dict) and area in _OPTION_AREAS and not _is_document(area, request):
        for name, value in body.items():
            yield name
            if name in _NESTED and isinstance(value, dict):
                yield from (f"{name}.{inner}" for inner in value)
            elif name == "type" and isinstance(value, str):
                yield f"type={value}"
    elif isinstance(body, dict):
        yield from (name for name in ("_key", "_rev") if name in body)


def _is_document(area: str, request: Request) -> bool:
    segments = target_of(request.path).segments
    return area == "_api/gharial" and len(segments) > 2 and request.method != "DELETE"


def _query_texts(request: Request) -> Iterator[str]:
    area = target_of(request.path).area
    if area in ("_api/cursor", "_api/explain", "_api/query") and request.body:
        body = decode(request.body)
        if isinstance(body, dict) and isinstance(body.get("query"), str):
            yield body["query"]


def _query_entries(text: str) -> Iterator[str]:
    query = parse(text)
    if query.declared:
        yield "aql With"
    for node in nodes(query):
        yield from _node_entries(node)


def _node_entries(node: Any) -> Iterator[str]:
    kind = f"aql {type(node).__name__}"
    yield kind
    if isinstance(node, syntax.Call):
        yield f"{kind} {node.name}"
    for part in fields(node):
        value = getattr(node, part.name)
        if part.name in _VALUED_FIELDS and isinstance(value, str | bool):
            yield f"{kind} {part.name} {str(value).lower()}"
        elif part.name == "options" and isinstance(value, syntax.ObjectLiteral):
            for key, _ in value.items:
                if isinstance(key, syntax.Literal):
                    yield f"{kind} options {key.value}"
        elif part.name in _OPTIONAL_FIELDS and value not in (None, (), False):
            yield f"{kind} {part.name}"
