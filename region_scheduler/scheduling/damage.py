"""Runs that nothing can move because a part of their graph was lost in the store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from region_scheduler.commit.gate import Change, commit
from region_scheduler.domain.ids import RunId
from region_scheduler.domain.run import Run, damaged, ended
from region_scheduler.domain.states import RUN_ENDED, RunState
from region_scheduler.errors import LostRace
from region_scheduler.ports.records import GraphStores

_LOOKS_MIN: Final = 3
"""A graph that looks damaged may be one of which not all is visible just now."""
_READY_LIMIT: Final = 1_000


class DamageWatch:
    """Ends what looks damaged in the same way at several looks of one scan after the other.

    Args:
        graph: The graph store.
    """

    def __init__(self, graph: GraphStores) -> None:
        self._graph = graph
        self._seen: dict[RunId, tuple[str, int]] = {}

    def keep(self, unended: Sequence[Run]) -> None:
        """Forget all other runs."""
        open_ = {run.id for run in unended}
        self._seen = {id_: seen for id_, seen in self._seen.items() if id_ in open_}

    def look(self, run: Run, at: datetime) -> Run | None:
        """Look at a run that has not ended; return it with its end if this call ended it.

        Args:
            run: As read at the leader.
            at: Wall time for display.

        Raises:
            Unavailable: No answer; the next scan looks again.
        """
        what = self._damage(run, at)
        before, looks = self._seen.get(run.id, ("", 0))
        self._seen[run.id] = (what, looks + 1 if what == before else 1)
        if not what or self._seen[run.id][1] < _LOOKS_MIN:
            return None

        def decide(now: Run) -> Run:
            if now.rev != run.rev:
                raise LostRace(thing=f"end of run {run.id}", winner="a write to the run")
            return damaged(now, what, at)

        (outcome,) = commit(self._graph.runs, [Change(run.id, decide, known=run)])
        is_over = outcome.is_ours and outcome.value is not None and outcome.value.state in RUN_ENDED
        return outcome.value if is_over else None

    def _damage(self, run: Run, at: datetime) -> str:
        """Return what is wrong with a run in which nothing moves, or can, without a reason."""
        tasks = self._graph.tasks
        if run.state not in {RunState.RUNNING, RunState.CANCELLING} or tasks.has_active(run.id):
            return ""
        counts = tasks.state_counts(run.id)
        if ended(run, counts, can_move=False, at=at) is not run or tasks.ready(
            run.id, _READY_LIMIT
        ):
            return ""
        return tasks.damage(run)
