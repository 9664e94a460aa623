"""/_api/edges: the edges of one vertex."""

from __future__ import annotations

from region_scheduler.embedded.arango import aql
from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.call import Call
from region_scheduler.embedded.arango.http.message import Response
from region_scheduler.embedded.arango.http.queries import statistics_of
from region_scheduler.embedded.arango.http.router import Table
from region_scheduler.embedded.arango.storage.keys import is_handle
from region_scheduler.embedded.arango.storage.record import Record, encode


def read(call: Call, name: str) -> Response:
    """GET: edges that leave, enter or do either."""
    call.may_show_past = True
    access = call.collection(name)
    if not access.is_edge:
        raise ArangoError(1218)
    vertex = call.text("vertex")
    if not is_handle(vertex) or vertex is None:
        raise ArangoError(1205)
    direction = call.text("direction") or "any"
    if direction not in ("in", "out", "any"):
        raise ArangoError(400, "<direction> must be any, in, or out")
    source = access.source
    records: list[Record] = []
    if direction in ("out", "any"):
        records += access.edge_records(source.leaving, vertex)
    if direction in ("in", "any"):
        records += access.edge_records(source.entering, vertex)
    blobs = list({record.key: record.blob for record in records}.values())
    found = aql.Statistics()
    found.document_lookups = found.scanned_index = len(blobs)
    stats = encode(statistics_of(found, 0.0))
    body = b'{"edges":[' + b",".join(blobs) + b'],"error":false,"code":200,"stats":' + stats + b"}"
    return Response(200, body)


TABLE: Table = {("GET", 1): read}
