"""/_api/transaction: stream transactions, and who uses them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.call import Call
from region_scheduler.embedded.arango.http.message import Response, answer
from region_scheduler.embedded.arango.http.router import Table
from region_scheduler.embedded.arango.storage.database import Database
from region_scheduler.embedded.arango.storage.record import encode
from region_scheduler.embedded.arango.storage.store import Store
from region_scheduler.embedded.arango.storage.streaming import Mode, StreamTransaction

IDLE_S = 60.0
_ENDED_MAX = 1000
_MODES: tuple[Mode, ...] = ("read", "write", "exclusive")
Ending = Literal["committed", "aborted"]


class StreamStore:
    """The stream transactions that run, and how the last ones ended.

    Args:
        store: Begins and ends them.
        clock: For the idle time-out.
    """

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._running: dict[str, StreamTransaction] = {}
        self._used_at: dict[str, float] = {}
        self._ended: OrderedDict[str, Ending] = OrderedDict()

    def begin(self, database: Database, modes: dict[str, Mode], may_read_all: bool) -> str:
        """Begin a transaction and return its id."""
        self.expire()
        transaction = self._store.begin_stream(database, modes, may_read_all)
        self._running[transaction.id] = transaction
        self._used_at[transaction.id] = self._clock()
        return transaction.id

    def running(self, id: str, database: Database) -> StreamTransaction:
        """Return a running transaction and note that it was used.

        Raises:
            ArangoError: 10 for a malformed id, 1655 for one that does not run in this database.
        """
        self.expire()
        transaction = self._running.get(id)
        if transaction is None or transaction.source is not database:
            if not id.isdigit():
                raise ArangoError(10, "invalid transaction ID")
            raise ArangoError(1655, f"transaction '{id}' not found")
        self._used_at[id] = self._clock()
        return transaction

    def end(self, id: str, database: Database, ending: Ending) -> None:
        """Commit or abort; ending it the same way again is no error.

        Raises:
            ArangoError: 10, 1655, or 1653 if it ended the other way.
        """
        if id in self._ended:
            if self._ended[id] != ending:
                raise ArangoError(1653, f"transaction was already {self._ended[id]}")
            return
        transaction = self.running(id, database)
        self._close(transaction, ending)

    def status(self, id: str, database: Database) -> str:
        """Return running, committed or aborted.

        Raises:
            ArangoError: 10 or 1655.
        """
        if id in self._ended:
            return self._ended[id]
        self.running(id, database)
        return "running"

    def ids(self, database: Database) -> list[str]:
        """Return the ids of the running transactions of a database."""
        self.expire()
        return [id for id, one in self._running.items() if one.source is database]

    def expire(self) -> None:
        """Abort what was idle for too long."""
        if self._running:
            now = self._clock()
            for id in [id for id, at in self._used_at.items() if now - at > IDLE_S]:
                self._close(self._running[id], "aborted")

    def forget_database(self, name: str) -> None:
        """Abort the transactions of a database that is gone."""
        for transaction in [t for t in self._running.values() if t.database == name]:
            self._close(transaction, "aborted")

    def abort_all(self) -> None:
        """Abort everything that runs."""
        for transaction in list(self._running.values()):
            self._close(transaction, "aborted")

    def _close(self, transaction: StreamTransaction, ending: Ending) -> None:
        del self._running[transaction.id]
        del self._used_at[transaction.id]
        self._ended[transaction.id] = ending
        if len(self._ended) > _ENDED_MAX:
            self._ended.popitem(last=False)
        self._store.end_stream(transaction, is_commit=ending == "committed")


def begin(call: Call, act: str) -> Response:
    """POST begin."""
    if act != "begin":
        raise ArangoError(404)
    body = call.object()
    collections = body.get("collections")
    if not isinstance(collections, dict):
        raise ArangoError(10, "missing/invalid collections definition for transaction")
    timeout = body.get("lockTimeout")
    if timeout is not None and (type(timeout) not in (int, float) or timeout < 0):
        raise ArangoError(10, "<lockTimeout> needs to be positive")
    modes: dict[str, Mode] = {}
    for mode in _MODES:
        for name in _names(collections.get(mode)):
            modes[name] = mode
    may_read_all = body.get("allowImplicit") is not False
    id = call.engine.streams.begin(call.database, modes, may_read_all)
    if body.get("waitForSync"):
        call.store.log.force()
    return answer(201, result={"id": id, "status": "running"})


def _names(given: Any) -> list[str]:
    names = [given] if isinstance(given, str) else [] if given is None else given
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ArangoError(10, "invalid collections definition for transaction")
    return names


def refuse_script(call: Call) -> Response:
    """POST of a JavaScript transaction: the engine runs no scripts.

    Raises:
        ArangoError: 1203 for an unknown collection, else 9.
    """
    body = call.object()
    collections = body.get("collections")
    if not isinstance(collections, dict):
        raise ArangoError(10, "missing/invalid collections definition for transaction")
    names = [name for mode in _MODES for name in _names(collections.get(mode))]
    if not isinstance(body.get("action"), str):
        raise ArangoError(10, "missing/invalid action definition for transaction")
    for name in names:
        call.database.collection(name)
    raise ArangoError(9, "JavaScript transactions are not supported")


def list_running(call: Call) -> Response:
    """GET: the running transactions."""
    ids = call.engine.streams.ids(call.database)
    running = [{"id": id, "state": "running"} for id in ids]
    return Response(200, encode({"transactions": running}))


def show(call: Call, id: str) -> Response:
    """GET: a transaction's status."""
    status = call.engine.streams.status(id, call.database)
    return answer(200, result={"id": id, "status": status})


def commit(call: Call, id: str) -> Response:
    """PUT: commit."""
    call.engine.streams.end(id, call.database, "committed")
    return answer(200, result={"id": id, "status": "committed"})


def abort(call: Call, id: str) -> Response:
    """DELETE: abort."""
    call.engine.streams.end(id, call.database, "aborted")
    return answer(200, result={"id": id, "status": "aborted"})


TABLE: Table = {
    ("POST", 0): refuse_script,
    ("POST", 1): begin,
    ("GET", 0): list_running,
    ("GET", 1): show,
    ("PUT", 1): commit,
    ("DELETE", 1): abort,
}
