"""/_api/cursor: run a query, hand out its result in batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.call import Call
from region_scheduler.embedded.arango.http.message import Response, answer
from region_scheduler.embedded.arango.http.queries import Answer, bind_of, run, text_of
from region_scheduler.embedded.arango.http.router import Table
from region_scheduler.embedded.arango.http.running import RunningQuery

_BATCH_SIZE = 1000
_TTL_S = 30.0


@dataclass(slots=True)
class Cursor:
    """A result that was not fetched to its end.

    Attributes:
        next_batch: Number of the batch that comes next, from 2.
        repeatable: The last answer, if the client asked that a batch may be fetched again.
    """

    id: str
    database: str
    answer: Answer
    batch_size: int
    ttl_s: float
    has_count: bool
    may_retry: bool
    expires_at: float
    position: int = 0
    next_batch: int = 1
    repeatable: dict[int, Response] = field(default_factory=dict)


class CursorStore:
    """The open cursors.

    Args:
        clock: For the time to live.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._cursors: dict[str, Cursor] = {}

    def open(self, cursor: Cursor) -> None:
        """Keep a cursor."""
        self._cursors[cursor.id] = cursor

    def find(self, id: str, database: str) -> Cursor:
        """Return an open cursor and lengthen its life.

        Raises:
            ArangoError: 1600.
        """
        self.expire()
        cursor = self._cursors.get(id)
        if cursor is None or cursor.database != database:
            raise ArangoError(1600)
        cursor.expires_at = self._clock() + cursor.ttl_s
        return cursor

    def expire(self) -> None:
        """Forget what was not used for longer than its time to live."""
        if self._cursors:
            now = self._clock()
            self._cursors = {id: c for id, c in self._cursors.items() if c.expires_at >= now}

    def close(self, cursor: Cursor) -> None:
        """Forget a cursor."""
        self._cursors.pop(cursor.id, None)

    def forget_database(self, name: str) -> None:
        """Forget the cursors of a database that is gone."""
        self._cursors = {id: c for id, c in self._cursors.items() if c.database != name}


def create(call: Call) -> Response:
    """POST: run a query, return the first batch."""
    if not call.request.body:
        raise ArangoError(1502)
    body = call.json()
    if not isinstance(body, dict):
        raise ArangoError(1502)
    batch_size = body.get("batchSize", _BATCH_SIZE)
    if type(batch_size) not in (int, float) or batch_size < 1:
        raise ArangoError(10, "expecting a positive batchSize")
    options = body.get("options")
    options = options if isinstance(options, dict) else {}
    found = run(call, body)
    if found.extra["stats"]["writesExecuted"]:
        _force(call, options)
    ttl_s = float(body.get("ttl") or _TTL_S)
    cursor = Cursor(
        id=str(call.store.ticks.next_tick()),
        database=call.database.name,
        answer=found,
        batch_size=int(batch_size),
        ttl_s=ttl_s,
        has_count=bool(body.get("count")) and not options.get("stream"),
        may_retry=bool(options.get("allowRetry")),
        expires_at=call.engine.clock() + ttl_s,
    )
    response = _next_batch(call, cursor, 201)
    if cursor.position < len(found.rows) or cursor.may_retry:
        call.engine.cursors.open(cursor)
    if found.slept_s:
        response.wait_s = found.slept_s
        _note_running(call, body, response)
    return response


def _note_running(call: Call, body: dict[str, Any], response: Response) -> None:
    engine = call.engine
    now = engine.clock()
    started_at = datetime.fromtimestamp(engine.wall(), UTC).isoformat(timespec="seconds")
    engine.running.add(
        RunningQuery(
            id=str(call.store.ticks.next_tick()),
            database=call.database.name,
            user=call.user,
            text=text_of(body),
            bind=bind_of(body),
            started_at=started_at.replace("+00:00", "Z"),
            begun_at=now,
            ends_at=now + response.wait_s,
            response=response,
        )
    )


def _force(call: Call, options: dict[str, Any]) -> None:
    direct = call.direct
    if options.get("waitForSync") or (
        direct is not None and any(c.properties.wait_for_sync for c, _, _ in direct.changes)
    ):
        call.store.log.force()


def _next_batch(call: Call, cursor: Cursor, status: int) -> Response:
    rows = cursor.answer.rows
    end = cursor.position + cursor.batch_size
    batch = rows if cursor.position == 0 and end >= len(rows) else rows[cursor.position : end]
    cursor.position = min(end, len(rows))
    has_more = end < len(rows)
    shown: dict[str, Any] = {"result": batch, "hasMore": has_more}
    if has_more:
        shown["id"] = cursor.id
        shown["nextBatchId"] = str(cursor.next_batch + 1)
    if cursor.has_count:
        shown["count"] = len(rows)
    shown["cached"] = False
    shown["extra"] = cursor.answer.extra
    headers = {}
    if call.header("x-arango-allow-dirty-read") == "true":
        headers["x-arango-potential-dirty-read"] = "true"
    response = answer(status, headers, **shown)
    if cursor.may_retry:
        cursor.repeatable = {cursor.next_batch: response}
    cursor.next_batch += 1
    return response


def fetch(call: Call, id: str) -> Response:
    """POST or PUT: the next batch."""
    cursor = call.engine.cursors.find(id, call.database.name)
    if cursor.may_retry and cursor.position >= len(cursor.answer.rows):
        raise ArangoError(1600)
    response = _next_batch(call, cursor, 200)
    if cursor.position >= len(cursor.answer.rows) and not cursor.may_retry:
        call.engine.cursors.close(cursor)
    return response


def fetch_numbered(call: Call, id: str, number: str) -> Response:
    """POST: the batch of this number: the next one, or the last one again."""
    cursor = call.engine.cursors.find(id, call.database.name)
    if not cursor.may_retry or not number.isdigit():
        raise ArangoError(1600)
    if int(number) in cursor.repeatable:
        return cursor.repeatable[int(number)]
    if int(number) != cursor.next_batch or cursor.position >= len(cursor.answer.rows):
        raise ArangoError(1600, "batch id not found")
    return _next_batch(call, cursor, 200)


def close(call: Call, id: str) -> Response:
    """DELETE: forget a cursor."""
    call.engine.cursors.close(call.engine.cursors.find(id, call.database.name))
    return answer(202, id=id)


def refuse_nameless(_call: Call) -> Response:
    """PUT without an id.

    Raises:
        ArangoError: 400.
    """
    raise ArangoError(400, "expecting POST /_api/cursor/<cursor-id>")


TABLE: Table = {
    ("POST", 0): create,
    ("PUT", 0): refuse_nameless,
    ("POST", 1): fetch,
    ("PUT", 1): fetch,
    ("POST", 2): fetch_numbered,
    ("DELETE", 1): close,
}
