"""What may be removed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from arango.database import StandardDatabase

from region_scheduler.domain.admission import NEVER_PUBLISHED
from region_scheduler.domain.ids import RunId
from region_scheduler.domain.run import Run, RunMode
from region_scheduler.domain.states import RUN_ENDED
from region_scheduler.drivers.arango.codec import Codec, instant
from region_scheduler.drivers.arango.documents import removed
from region_scheduler.drivers.arango.query import Queries
from region_scheduler.drivers.arango.schema import DEPENDENCIES
from region_scheduler.ports.documents import Identified, Reference, WriteResult


class ArangoLeftovers:
    """Documents that nothing needs any more; the promises are the port's."""

    def __init__(self, db: StandardDatabase, queries: Queries) -> None:
        self._queries = queries
        self._runs = Codec(Run, "runs")
        self._edges = db.collection(DEPENDENCIES)

    def runs(self, before: datetime, kept: int, rested: datetime, limit: int) -> list[Run]:
        """Return ended runs that nothing needs any more, oldest first."""
        rows = self._queries.rows(
            "leftover_runs",
            states=sorted(RUN_ENDED),
            modes=[RunMode.APPLY, RunMode.DESTROY],
            before=instant(before),
            kept=kept,
            rested=instant(rested),
            limit=limit,
        )
        return self._runs.all_decoded(rows)

    def admissions(self, before: datetime, limit: int) -> list[Reference]:
        """Return those that came to an end, from before an instant, whose run is not there."""
        return self._references("leftover_admissions", before=instant(before), limit=limit)

    def conflicts(self, before: datetime, kept: int, limit: int) -> list[Reference]:
        """Return conflicts from before an instant, and those beyond `kept` of the newest."""
        bounds = {"before": instant(before), "kept": kept, "limit": limit}
        return self._references("leftover_conflicts", **bounds)

    def audit(self, before: datetime, kept: int, limit: int) -> list[Reference]:
        """Return audit entries from before an instant, and those beyond `kept` of the newest."""
        bounds = {"before": instant(before), "kept": kept, "limit": limit}
        return self._references("leftover_audit", **bounds)

    def tasks(self, run: RunId, limit: int) -> list[Reference]:
        """Return tasks of `run`, also those that only a newer version understands."""
        return self._references("leftover_tasks", run=run, limit=limit)

    def edges(self, run: RunId, limit: int) -> list[Reference]:
        """Return dependencies of `run`."""
        return self._references("leftover_edges", run=run, limit=limit)

    def unpublished(self) -> dict[RunId, bool]:
        """Return the runs whose admission was refused or cancelled, and if anything is left."""
        rows = self._queries.rows("unpublished", states=sorted(NEVER_PUBLISHED))
        return {RunId(row["run"]): row["is_left"] for row in rows}

    def remove_edges(self, edges: Sequence[Identified]) -> list[WriteResult]:
        """Remove dependencies, each on the condition of its revision."""
        return removed(self._edges, [(edge.id, edge.rev) for edge in edges])

    def _references(self, question: str, /, **parameters: Any) -> list[Reference]:
        return [Reference(*row) for row in self._queries.rows(question, **parameters)]
