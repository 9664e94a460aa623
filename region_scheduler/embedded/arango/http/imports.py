"""/_api/import: many documents in one request, each for itself unless `complete` is asked for."""

from __future__ import annotations

from typing import Any

import orjson

from region_scheduler.embedded.arango.errors import ArangoError, message_of
from region_scheduler.embedded.arango.http.call import Call
from region_scheduler.embedded.arango.http.message import Response
from region_scheduler.embedded.arango.http.router import Table
from region_scheduler.embedded.arango.session import OverwriteMode, WriteOptions
from region_scheduler.embedded.arango.storage.access import CollectionAccess

_MODES: dict[str, OverwriteMode] = {
    "error": "conflict",
    "update": "update",
    "replace": "replace",
    "ignore": "ignore",
}


def load(call: Call) -> Response:
    """POST: insert, update or replace documents and count what became of them."""
    name = call.text("collection")
    if not name:
        raise ArangoError(1204, status=400)
    access = call.collection(name)
    mode = _MODES.get(call.text("onDuplicate") or "error")
    if mode is None:
        raise ArangoError(10, "invalid value for 'onDuplicate'")
    counts = {"created": 0, "errors": 0, "empty": 0, "updated": 0, "ignored": 0}
    details: list[str] = []
    documents, counts["empty"] = _documents(call)
    if call.flag("overwrite"):
        for record in access.records():
            access.remove_record(record.key, None)
    options = WriteOptions(overwrite_mode=mode, merge_objects=True)
    is_complete = call.flag("complete")
    first = 0 if call.text("type") == "documents" else 1
    for place, document in enumerate(documents, first):
        try:
            counts[_load_one(call, access, document, options)] += 1
        except ArangoError as error:
            if is_complete:
                raise ArangoError(error.number, message_of(error.number)) from error
            counts["errors"] += 1
            details.append(f"at position {place}: {_reason(error, document)}")
    call.is_synced(access)
    shown: dict[str, Any] = {"error": False, **counts}
    if call.flag("details"):
        shown["details"] = details
    return Response(201, orjson.dumps(shown))


def _reason(error: ArangoError, document: Any) -> str:
    reason = f"creating document failed with error '{message_of(error.number)}'"
    if error.number == 1233:
        reason = "missing '_from' or '_to' attribute"
    return f"{reason}, offending document: {orjson.dumps(document).decode()}"


def _load_one(call: Call, access: CollectionAccess, document: Any, options: WriteOptions) -> str:
    if isinstance(document, dict) and access.is_edge:
        document = dict(document)
        for end, prefix in (("_from", call.text("fromPrefix")), ("_to", call.text("toPrefix"))):
            if prefix and isinstance(document.get(end), str) and "/" not in document[end]:
                document[end] = f"{prefix.rstrip('/')}/{document[end]}"
    before, after = access.insert_record(document, options)
    if after is None:
        return "ignored"
    return "created" if before is None else "updated"


def _documents(call: Call) -> tuple[list[Any], int]:
    kind = call.text("type")
    body = call.request.body
    if kind == "auto":
        kind = "list" if body.lstrip()[:1] == b"[" else "documents"
    if kind in ("list", "array"):
        documents = call.json() if body else None
        if not isinstance(documents, list):
            raise ArangoError(400, "expecting a JSON array in the request")
        return documents, 0
    lines = body.split(b"\n")
    empty = sum(not line.strip() for line in lines[:-1])
    parsed = [_parse(line) for line in lines if line.strip()]
    if kind == "documents":
        return parsed, empty
    if kind:
        raise ArangoError(10, "invalid type")
    if not lines[0].strip():
        raise ArangoError(400, "no JSON array found in first line")
    return _rows(parsed), empty


def _rows(lines: list[Any]) -> list[Any]:
    if not lines or not isinstance(lines[0], list):
        raise ArangoError(400, "no JSON array found in second line")
    names = lines[0]
    if not all(isinstance(name, str) for name in names):
        raise ArangoError(400, "no JSON string array found in first line")
    return [
        dict(zip(names, line, strict=True))
        if isinstance(line, list) and len(line) == len(names)
        else line
        for line in lines[1:]
    ]


def _parse(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except ValueError:
        return None  # counted as an error of its line: not an object


TABLE: Table = {("POST", 0): load}
