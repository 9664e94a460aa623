"""One request being answered: what a handler needs to know and may touch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.message import Request
from region_scheduler.embedded.arango.storage.access import CollectionAccess
from region_scheduler.embedded.arango.storage.database import Database
from region_scheduler.embedded.arango.storage.transaction import DirectTransaction, Transaction

if TYPE_CHECKING:
    from region_scheduler.embedded.arango.engine import Engine

ROOT = "root"
"""The user that may do everything."""

_TRUE = frozenset({"1", "true", "yes", "on", "True"})


def is_true(value: str | None) -> bool:
    """Return what a boolean query parameter means; None for one that is not there."""
    return value in _TRUE


def _require_unique(body: bytes) -> None:
    def members(pairs: list[tuple[str, Any]]) -> None:
        if len(dict.fromkeys(name for name, _ in pairs)) < len(pairs):
            raise ArangoError(600, "duplicate attribute name")

    json.loads(body, object_pairs_hook=members)


class Call:
    """A request, the database it names, and the transaction it runs in.

    Args:
        engine: Whose lock is held.
        request: The request.
        database: The database of the path.
        user: Who was authenticated.

    Attributes:
        direct: The request's own transaction, once it has one.
        may_show_past: Whether the handler only reads, so that a follower may answer.
    """

    __slots__ = (
        "_transaction",
        "database",
        "direct",
        "engine",
        "may_show_past",
        "request",
        "store",
        "user",
    )

    def __init__(self, engine: Engine, request: Request, database: Database, user: str) -> None:
        self.engine = engine
        self.store = engine.store
        self.request = request
        self.database = database
        self.user = user
        self.direct: DirectTransaction | None = None
        self.may_show_past = False
        self._transaction: Transaction | None = None

    @property
    def transaction(self) -> Transaction:
        """The transaction to read and write in.

        It is the stream transaction of the header, or a reader of a past state if this region's
        coordinator shows one, or the request's own.
        """
        if self._transaction is None:
            self._transaction = self._begin()
        return self._transaction

    def _begin(self) -> Transaction:
        stream = self.request.headers.get("x-arango-trx-id")
        if stream is not None:
            return self.engine.streams.running(stream, self.database)
        if self.may_show_past:
            past = self.engine.past_reader(self.request, self.database)
            if past is not None:
                return past
        self.direct = self.store.begin(self.database)
        return self.direct

    def collection(self, name: str) -> CollectionAccess:
        """Return a collection as this request's transaction sees it.

        Raises:
            ArangoError: 1203, 1652, 1655; 11 if the user may not do with it what the method says.
        """
        access = self.transaction.collection(name)
        if self.user != ROOT:
            self.require_collections({access.name: "read" if self._is_reading else "write"})
        return access

    @property
    def _is_reading(self) -> bool:
        return self.may_show_past or self.request.method in ("GET", "HEAD")

    def require_collections(self, uses: Mapping[str, str]) -> None:
        """Refuse collections that the user may not read or write.

        Args:
            uses: "read" or "write" by name.

        Raises:
            ArangoError: 11.
        """
        for name, use in uses.items():
            self.engine.users.require(self.user, self.database.name, name, writes=use == "write")

    def json(self) -> Any:
        """Return the body.

        Raises:
            ArangoError: 600 if it is not JSON, or an object in it has an attribute twice.
        """
        body = self.request.body
        try:
            decoded = orjson.loads(body)
        except ValueError as error:
            raise ArangoError(600) from error
        # What an attribute that comes twice said first is gone, with its colon.
        if body.count(b":") != orjson.dumps(decoded).count(b":"):
            _require_unique(body)
        return decoded

    def object(self) -> dict[str, Any]:
        """Return the body, which must be an object; an empty one stands for `{}`.

        Raises:
            ArangoError: 600 or 10.
        """
        if not self.request.body:
            return {}
        body = self.json()
        if not isinstance(body, dict):
            raise ArangoError(10, "expecting a JSON object in the body")
        return body

    def flag(self, name: str, is_default: bool = False) -> bool:
        """Return a boolean query parameter."""
        value = self.request.query.get(name)
        return is_default if value is None else is_true(value)

    def text(self, name: str) -> str | None:
        """Return a query parameter."""
        return self.request.query.get(name)

    def header(self, name: str) -> str | None:
        """Return a header by its lower-case name."""
        return self.request.headers.get(name)

    def is_synced(self, access: CollectionAccess) -> bool:
        """Return whether a write to this collection must reach the disk before its answer."""
        is_synced = access.source.properties.wait_for_sync or self.flag("waitForSync")
        if is_synced:
            self.store.log.force()
        return is_synced
