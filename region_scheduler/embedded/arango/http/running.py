"""Queries that are still running, as far as anybody can tell.

A query that sleeps is computed at once and answered when its sleep is over; meanwhile it is listed,
and can be killed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.http.message import Response, failure


@dataclass(slots=True)
class RunningQuery:
    """A query whose answer has not left yet.

    Attributes:
        ends_at: When it does, by the engine's clock.
        response: The answer; a kill replaces its content.
    """

    id: str
    database: str
    user: str
    text: str
    bind: dict[str, Any]
    started_at: str
    begun_at: float
    ends_at: float
    response: Response

    def describe(self, now: float) -> dict[str, Any]:
        """Return the query as /_api/query/current shows it."""
        return {
            "id": self.id,
            "database": self.database,
            "user": self.user,
            "query": self.text,
            "bindVars": self.bind,
            "started": self.started_at,
            "runTime": now - self.begun_at,
            "peakMemoryUsage": 0,
            "state": "executing",
            "stream": False,
            "modificationQuery": False,
        }


class RunningQueries:
    """All queries of an engine that sleep.

    Args:
        clock: For their ends.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._running: dict[str, RunningQuery] = {}

    def add(self, query: RunningQuery) -> None:
        """Note a query that is answered later."""
        self._running[query.id] = query

    def listed(self, database: str) -> list[dict[str, Any]]:
        """Return what runs in a database."""
        now = self._clock()
        self._running = {id: q for id, q in self._running.items() if q.ends_at > now}
        return [q.describe(now) for q in self._running.values() if q.database == database]

    def kill(self, id: str, database: str) -> None:
        """Let a query end with 1500, as soon as its answer is asked for.

        Raises:
            ArangoError: 1591.
        """
        query = self._running.get(id)
        if query is None or query.database != database or query.ends_at <= self._clock():
            raise ArangoError(1591)
        del self._running[id]
        killed = failure(ArangoError(1500))
        query.response.status, query.response.body = killed.status, killed.body
        query.response.headers, query.response.wait_s = killed.headers, 0.0
