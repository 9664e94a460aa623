"""Runs that may take only so long, judged by one's own monotonic clock."""

from __future__ import annotations

from collections.abc import Sequence

from region_scheduler.domain.ids import RunId
from region_scheduler.domain.lease import Instant
from region_scheduler.domain.run import Run


class Deadlines:
    """Counts how long each round of a run goes on, from this judge's first sight of it.

    A judge that begins anew counts anew: a deadline is passed late then, never too early.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[RunId, int], Instant] = {}

    def over(self, unended: Sequence[Run], now: Instant) -> list[Run]:
        """Return the runs whose present round has gone on for its deadline or longer.

        Args:
            unended: All runs that have not ended; what is not among them is forgotten.
            now: This judge's monotonic clock.
        """
        limited = [(run, run.deadline_s) for run in unended if run.deadline_s is not None]
        self._seen = {
            (run.id, run.round): self._seen.get((run.id, run.round), now) for run, _ in limited
        }
        return [run for run, most in limited if now - self._seen[run.id, run.round] >= most]
