"""The state of one execution of a query."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import CollectionView, Document, Session

_CHECK_EVERY_ROWS: Final = 1000

_MESSAGES: Final = {
    10: "{}",
    1504: "number out of range",
    1539: "unknown/invalid OPTIONS attribute used: {}",
    1541: "invalid number of arguments for function '{}()'",
    1542: "invalid argument type in call to function '{}()'",
    1543: "invalid regex value",
    1561: "invalid arithmetic value",
    1562: "division by zero",
    1563: "array expected",
    1572: "invalid date value",
    1594: "{}",
}


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """What the caller of a query may set.

    Attributes:
        check: Called every thousand rows; raises to stop the query (kill, run time).
        memory_limit: Bytes that results and materialised rows may take, roughly; 0 means no limit.
        clock: Seconds since the epoch; read at most once a query.
        sleep: Waits some seconds, for SLEEP().
    """

    fail_on_warning: bool = False
    max_warning_count: int = 10
    full_count: bool = False
    memory_limit: int = 0
    check: Callable[[], None] | None = None
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    chance: random.Random = field(default_factory=random.Random)
    user: str | None = None
    version: str = "3.12.10-embedded"


@dataclass(slots=True)
class Statistics:
    """Counts of one execution, as `extra.stats` reports them."""

    writes_executed: int = 0
    writes_ignored: int = 0
    scanned_full: int = 0
    scanned_index: int = 0
    filtered: int = 0
    document_lookups: int = 0
    seeks: int = 0
    full_count: int | None = None
    peak_memory: int = 0


class Run:
    """One execution: the session, the bind values, what was counted and warned of."""

    __slots__ = (
        "_now",
        "_rows_left",
        "bind",
        "declared",
        "memory",
        "options",
        "session",
        "statistics",
        "views",
        "warnings",
        "written",
    )

    def __init__(self, session: Session, bind: Mapping[str, Any], options: QueryOptions) -> None:
        self.session = session
        self.bind = bind
        self.options = options
        self.statistics = Statistics()
        self.warnings: list[tuple[int, str]] = []
        self.views: dict[str, CollectionView] = {}
        self.declared: set[str] = set()
        self.written: set[str] = set()
        self.memory = 0
        self._now: float | None = None
        self._rows_left = _CHECK_EVERY_ROWS

    def now(self) -> float:
        """Return the query's one instant, in seconds since the epoch."""
        if self._now is None:
            self._now = self.options.clock()
        return self._now

    def tick(self) -> None:
        """Count a row, and ask the caller now and then whether to go on."""
        self._rows_left -= 1
        if self._rows_left <= 0:
            self._rows_left = _CHECK_EVERY_ROWS
            if self.options.check is not None:
                self.options.check()

    def account(self, value: Any) -> None:
        """Count the memory a kept value takes.

        Raises:
            ArangoError: 32 if the query's limit is passed.
        """
        limit = self.options.memory_limit
        if not limit:
            return
        self.memory += size_of(value)
        if self.memory > limit:
            raise ArangoError(32, "AQL: query would use more memory than allowed")

    def warn(self, number: int, detail: str = "") -> None:
        """Record a warning, or fail if the caller asked for it.

        Raises:
            ArangoError: The warning itself, with failOnWarning.
        """
        message = _MESSAGES[number].format(detail)
        if self.options.fail_on_warning:
            raise ArangoError(number, f"AQL: {message} (while executing)")
        if len(self.warnings) < self.options.max_warning_count:
            self.warnings.append((number, message))

    def view(self, name: str) -> CollectionView:
        """Return a collection of the session, looked up once.

        Raises:
            ArangoError: 1203 if there is none.
        """
        view = self.views.get(name)
        if view is None:
            view = self.views[name] = self.session.collection(name)
        return view

    def document(self, document_id: str) -> Document | None:
        """Return the document with an `_id`, or None."""
        name, _, key = document_id.partition("/")
        if not key:
            return None
        try:
            view = self.view(name)
        except ArangoError:
            return None
        return view.get(key)

    def require_declared(self, document_id: str) -> None:
        """Refuse a vertex of a collection that the query did not name, as a cluster does.

        Raises:
            ArangoError: 1521.
        """
        name = document_id.partition("/")[0]
        if self.session.is_cluster and name not in self.declared:
            raise ArangoError(
                1521,
                f"collection not known to traversal: '{name}'. please add 'WITH {name}' as the"
                " first line in your AQL",
            )

    def vertex(self, document_id: str) -> Document | None:
        """Return a document that a traversal met, or None for an edge that leads nowhere.

        Raises:
            ArangoError: 1521 in a cluster, if the query did not name the collection.
        """
        name, _, key = document_id.partition("/")
        view = self.views.get(name)
        if view is None or (self.session.is_cluster and name not in self.declared):
            self.require_declared(document_id)
            return self.document(document_id)
        return view.get(key)


def size_of(value: Any) -> int:
    """Return roughly the bytes a value takes."""
    kind = type(value)
    if kind is str:
        return 16 + len(value)
    if kind is list:
        return 16 + sum(size_of(item) for item in value)
    if kind is dict:
        return 16 + sum(16 + len(name) + size_of(item) for name, item in value.items())
    return 16
