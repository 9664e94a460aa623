"""What may be removed from the graph store, and the removal of what has no store of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from region_scheduler.domain.ids import RunId
from region_scheduler.domain.run import Run
from region_scheduler.ports.consistency import Deciding
from region_scheduler.ports.documents import Identified, Reference, WriteResult


class Leftovers(Protocol):
    """Documents that nothing needs any more, oldest first. Each is removed as it was read."""

    def runs(
        self, before: datetime, kept: int, rested: datetime, limit: int
    ) -> Deciding[list[Run]]:
        """Return ended runs that nothing needs any more.

        Left out is what a schedule has fired and is not done with; and of a zone that there is, the
        run that holds it, and its newest that is done with all that came after it.

        Args:
            before: Those that ended earlier.
            kept: And those beyond so many of the newest,
            rested: if they ended before this.
            limit: How many at most.
        """
        ...

    def admissions(self, before: datetime, limit: int) -> Deciding[list[Reference]]:
        """Return those that came to an end, from before an instant, whose run is not there."""
        ...

    def conflicts(self, before: datetime, kept: int, limit: int) -> Deciding[list[Reference]]:
        """Return conflicts from before an instant, and those beyond `kept` of the newest."""
        ...

    def audit(self, before: datetime, kept: int, limit: int) -> Deciding[list[Reference]]:
        """Return audit entries from before an instant, and those beyond `kept` of the newest."""
        ...

    def tasks(self, run: RunId, limit: int) -> Deciding[list[Reference]]:
        """Return tasks of `run`, also those that only a newer version understands."""
        ...

    def edges(self, run: RunId, limit: int) -> Deciding[list[Reference]]:
        """Return dependencies of `run`."""
        ...

    def unpublished(self) -> Deciding[Mapping[RunId, bool]]:
        """Return the runs whose admission was refused or cancelled.

        And whether any task or dependency of each is there.
        """
        ...

    def remove_edges(self, edges: Sequence[Identified]) -> list[WriteResult]:
        """Remove dependencies, as `Documents.remove` does documents.

        Raises:
            Unavailable: Nothing was removed.
        """
        ...
