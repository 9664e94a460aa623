"""Compiled queries: what callers of the AQL engine use."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.binding import (
    check_bind,
    check_order,
    collections_of,
    name_of,
)
from region_scheduler.embedded.arango.aql.compile import Pipeline, QueryCompiler
from region_scheduler.embedded.arango.aql.explain import plan_of
from region_scheduler.embedded.arango.aql.parse import parse
from region_scheduler.embedded.arango.aql.run import QueryOptions, Run, Statistics
from region_scheduler.embedded.arango.aql.scope import Layout, Scope
from region_scheduler.embedded.arango.aql.walk import used_names
from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import Session

_CACHE_SIZE: Final = 1024
_DEFAULTS: Final = QueryOptions()


@dataclass(slots=True)
class QueryResult:
    """What a query gave.

    Attributes:
        rows: The values of RETURN; they may be documents of the storage: treat them as frozen.
        warnings: (number, message), at most as many as the options allow.
    """

    rows: list[Any]
    warnings: list[tuple[int, str]] = field(default_factory=list)
    statistics: Statistics = field(default_factory=Statistics)


class Compiled:
    """One query text, ready to run in any session and with any bind values; safe to share.

    Args:
        text: The query.

    Raises:
        ArangoError: 1501, 1502, 1511, 1540, 1541, … for what is wrong with the text itself.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = parse(text)
        compiler = QueryCompiler()
        compiler.layout.declared = self.tree.declared
        compiler.layout.used = used_names(self.tree)
        for collection in self.tree.declared:
            if isinstance(collection, syntax.CollectionBind):
                compiler.layout.collection_binds.add(collection.name)
        try:
            self._pipeline: Pipeline = compiler.pipeline(self.tree.clauses, Scope(), is_main=True)
        except RecursionError:
            raise ArangoError(1524, "AQL: query nesting is too deep") from None
        self._layout: Layout = compiler.layout
        self._checked: set[tuple[str, ...]] = set()

    @property
    def is_modification(self) -> bool:
        """Whether the query writes."""
        return self._layout.is_modification

    @property
    def bind_parameters(self) -> list[str]:
        """The parameters' names as in bindVars: collections with an `@` in front."""
        return sorted(set(self._layout.binds) | self._layout.collection_binds)

    def collections(self, bind: Mapping[str, Any]) -> dict[str, str]:
        """Return the collections that the query names, each with `read` or `write`.

        A collection parameter that `bind` lacks is left out.
        """
        return collections_of(self._layout, bind)

    def explain(self, session: Session, bind: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the plan that `execute` would follow, in the shape of /_api/explain.

        Raises:
            ArangoError: For bind values or collections that `execute` would refuse too.
        """
        run = self._started(session, bind or {}, _DEFAULTS)
        collections = collections_of(self._layout, run.bind)
        return plan_of(self._layout.plan, run, collections, self._layout.is_modification)

    def execute(
        self,
        session: Session,
        bind: Mapping[str, Any] | None = None,
        options: QueryOptions = _DEFAULTS,
    ) -> QueryResult:
        """Run the query to its end.

        Raises:
            ArangoError: Whatever fails; then the session is as it was before.
        """
        run = self._started(session, bind or {}, options)
        frame: list[Any] = [None] * self._layout.slot_count
        frame[0] = run
        for name, slot in self._layout.binds.items():
            frame[slot] = run.bind[name]
        mark = session.savepoint() if self._layout.is_modification else None
        try:
            rows = self._collect(run, frame)
        except BaseException as error:
            if mark is not None:
                session.rollback(mark)
            if isinstance(error, RecursionError):
                raise ArangoError(1524, "AQL: values are nested too deep") from None
            raise
        if options.full_count and run.statistics.full_count is None:
            run.statistics.full_count = len(rows)
        return QueryResult(rows, run.warnings, run.statistics)

    def _collect(self, run: Run, frame: list[Any]) -> list[Any]:
        if not run.options.memory_limit:
            return list(self._pipeline(frame))
        rows = []
        for row in self._pipeline(frame):
            run.account(row)
            rows.append(row)
        return rows

    def _started(self, session: Session, bind: Mapping[str, Any], options: QueryOptions) -> Run:
        """Return a run whose bind values and collections are checked."""
        layout = self._layout
        check_bind(layout, bind)
        run = Run(session, bind, options)
        names = collections_of(layout, bind)
        run.declared.update(names)
        for name in names:
            run.view(name)
        if layout.is_modification:
            bound = tuple(str(bind[name]) for name in sorted(layout.collection_binds))
            if bound not in self._checked:
                check_order(layout, bind)
                self._checked.add(bound)
        if layout.operands:
            name = name_of(layout.operands[0], bind)
            raise ArangoError(1568, f"AQL: collection '{name}' used as expression operand")
        for option in layout.unknown_options:
            run.warn(1539, option)
        return run


class QueryCache:
    """Compiled queries by text, the least recently used forgotten first; safe to share."""

    def __init__(self, size: int = _CACHE_SIZE) -> None:
        self._size = size
        self._queries: OrderedDict[str, Compiled] = OrderedDict()
        self._lock = threading.Lock()

    def compile(self, text: str) -> Compiled:
        """Return the compiled query, from the cache if it is there.

        Raises:
            ArangoError: See Compiled.
        """
        with self._lock:
            query = self._queries.get(text)
            if query is not None:
                self._queries.move_to_end(text)
                return query
        query = Compiled(text)
        with self._lock:
            self._queries[text] = query
            while len(self._queries) > self._size:
                self._queries.popitem(last=False)
        return query


_shared = QueryCache()


def compile_query(text: str) -> Compiled:
    """Return a compiled query from the process-wide cache.

    Raises:
        ArangoError: See Compiled.
    """
    return _shared.compile(text)
