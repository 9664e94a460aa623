"""Hold the region's relational store against the graph, and mend it either way.

The graph is the truth; a row may be missing, left over, behind, or (after the graph was restored to
an older state) ahead. What seems to differ in a follower's view is read at the leader before
anything is written, and every write keeps to the rule of `seq`, so that a mender that is late, or
one of several, does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from region_scheduler.domain.ids import RunId, TaskId
from region_scheduler.domain.states import CLAIMABLE, FINAL, TaskState
from region_scheduler.domain.task import Task
from region_scheduler.ports.backlog import Backlog, BacklogRow, Metadata, TaskRow
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock

_WIDE_EVERY: Final = 6
_PART: Final = 1_000
_OPEN: Final = tuple(state for state in TaskState if state not in FINAL)


@dataclass(frozen=True, slots=True)
class Mended:
    """What one comparison put right.

    Attributes:
        added: Ready tasks that had no row in the backlog.
        dropped: Rows of tasks that are not ready, or not here, any more.
        renewed: Rows that were behind their task, or ahead of it.
        recorded: Metadata that was missing or behind.
        forgotten: Metadata of tasks that are not here any more.
    """

    added: int = 0
    dropped: int = 0
    renewed: int = 0
    recorded: int = 0
    forgotten: int = 0

    @property
    def is_nothing(self) -> bool:
        """Whether the stores agreed."""
        return self == Mended()


@dataclass(frozen=True, slots=True)
class _Found:
    """How many rows of one table did not agree with their tasks, these as read at the leader.

    Attributes:
        missing: Tasks without a row.
        stale: Rows that showed another state of their task, an earlier or a later one.
        gone: Rows without a task to show.
    """

    missing: int = 0
    stale: int = 0
    gone: int = 0

    def plus(self, missing: int, stale: int, gone: int) -> _Found:
        return _Found(self.missing + missing, self.stale + stale, self.gone + gone)


class Mender:
    """Compares the two stores of one region.

    Args:
        region: The region.
        graph: The graph store.
        backlog: This region's backlog.
        metadata: The attributes of this region's tasks.
        clock: For due times.
    """

    def __init__(
        self,
        region: str,
        graph: GraphStores,
        backlog: Backlog,
        metadata: Metadata,
        clock: Clock,
    ) -> None:
        self._region = region
        self._graph = graph
        self._backlog = backlog
        self._metadata = metadata
        self._clock = clock
        self._ticks = 0
        self._unended: frozenset[RunId] = frozenset()

    def tick(self) -> Mended:
        """Compare the backlog; at the first call, and then at every sixth, the metadata as well.

        A store that was lost is made anew, and refilled.

        Raises:
            Unavailable, OutcomeUnknown: Part of it may be done; the next tick does the rest.
            Misconfigured: The relational store is damaged.
        """
        self._backlog.prepare()
        mended = self._compare_backlog()
        if self._metadata.count() == 0:
            self._ticks = 0
        if self._ticks % _WIDE_EVERY == 0:
            mended = self._compare_metadata(self._runs(), mended)
        self._ticks += 1
        return mended

    def rebuild(self) -> Mended:
        """Drop all rows and refill both tables from the graph.

        Raises:
            Unavailable, OutcomeUnknown: Part of it may be done; call again.
            Misconfigured: The relational store is damaged.
        """
        self._backlog.prepare()
        self._backlog.clear()
        self._metadata.clear()
        return self._compare_metadata(self._graph.runs.ids(), self._compare_backlog())

    def forget(self) -> int:
        """Drop the attributes of tasks whose run is gone from the graph, or never starts.

        Returns:
            How many.

        Raises:
            Unavailable, OutcomeUnknown: Part of it may be done; call again.
            Misconfigured: The relational store is damaged.
        """
        self._backlog.prepare()
        known = set(self._graph.runs.ids()) - self._graph.leftovers.unpublished().keys()
        gone = [run for run in self._metadata.runs_in(tuple(TaskState)) if run not in known]
        return self._compare_metadata(gone, Mended()).forgotten

    def _runs(self) -> list[RunId]:
        """Return the runs whose tasks may have moved since the last wide comparison."""
        now = frozenset(run.id for run in self._graph.runs.unended())
        before, self._unended = self._unended, now
        if self._ticks:
            return sorted(now | before)
        if self._metadata.count() == 0:
            return self._graph.runs.ids()
        return sorted(now | set(self._metadata.runs_in(_OPEN)))

    def _compare_backlog(self) -> Mended:
        found = self._compare(
            self._backlog.marks(),
            self._graph.tasks.marks_claimable(self._region),
            self._is_ready,
            self._backlog.remove,
            self._add,
        )
        return Mended(added=found.missing, dropped=found.gone, renewed=found.stale)

    def _compare_metadata(self, runs: Sequence[RunId], mended: Mended) -> Mended:
        for run in runs:
            found = self._compare(
                self._metadata.marks(run),
                self._graph.tasks.marks_of_run(run, self._region),
                self._is_here,
                self._metadata.remove,
                self._record,
            )
            mended = replace(
                mended,
                recorded=mended.recorded + found.missing + found.stale,
                forgotten=mended.forgotten + found.gone,
            )
        return mended

    def _add(self, tasks: Sequence[Task]) -> None:
        self._backlog.add([BacklogRow.of(task) for task in tasks], self._clock.now().timestamp())

    def _record(self, tasks: Sequence[Task]) -> None:
        self._metadata.record([TaskRow.of(task) for task in tasks])

    def _compare(
        self,
        rows: Mapping[TaskId, int],
        marks: Mapping[TaskId, int],
        belongs: Callable[[Task], bool],
        drop: Callable[[Sequence[tuple[TaskId, int]]], None],
        put: Callable[[Sequence[Task]], None],
    ) -> _Found:
        """Mend where rows, read first, differ from tasks, of which `marks` may be an old view.

        In parts, so that a store that was lost is refilled without all tasks in memory.
        """
        ids = sorted(id_ for id_ in rows.keys() | marks.keys() if rows.get(id_) != marks.get(id_))
        found = _Found()
        for first in range(0, len(ids), _PART):
            part = ids[first : first + _PART]
            missing: list[Task] = []
            stale: list[Task] = []
            gone: list[tuple[TaskId, int]] = []
            ahead: list[tuple[TaskId, int]] = []
            tasks = self._graph.tasks.known(part)
            for id_ in part:
                seq, task = rows.get(id_), tasks.get(id_)
                if task is None and id_ in tasks:
                    continue  # only a newer version knows what to do with it
                if task is None or not belongs(task):
                    gone += [(id_, seq)] if seq is not None else []
                elif seq is None:
                    missing.append(task)
                elif seq != task.seq:
                    stale.append(task)
                    ahead += [(id_, seq)] if seq > task.seq else []
            if gone or ahead:
                drop([*gone, *ahead])
            if missing or stale:
                put([*missing, *stale])
            found = found.plus(len(missing), len(stale), len(gone))
        return found

    def _is_here(self, task: Task) -> bool:
        return task.region == self._region

    def _is_ready(self, task: Task) -> bool:
        return is_ready_in(self._region, task)


def is_ready_in(region: str, task: Task) -> bool:
    """Say whether the backlog of `region` should have a row of `task`."""
    return task.region == region and task.state in CLAIMABLE
