"""What is recorded, read in pages at the leader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from region_scheduler.domain.admission import AdmissionSummary
from region_scheduler.domain.ids import RunId, TaskId
from region_scheduler.domain.instance import Instance
from region_scheduler.domain.region import Region
from region_scheduler.domain.run import Run, Zone
from region_scheduler.domain.slot import Slot
from region_scheduler.domain.task import Task
from region_scheduler.drivers.arango.codec import Codec, in_parts
from region_scheduler.drivers.arango.documents import ArangoDocuments
from region_scheduler.drivers.arango.query import Queries
from region_scheduler.drivers.arango.tasks import ArangoTasks
from region_scheduler.ports.history import Before, Deed, Kind, TaskRecord


class ArangoHistory:
    """All that is recorded; the promises are the port's.

    Args:
        queries: Asks questions.
        tasks: Where the tasks are.
        kinds: Where all documents are, the tasks among them, by kind.
    """

    def __init__(
        self, queries: Queries, tasks: ArangoTasks, kinds: Mapping[Kind, ArangoDocuments[Any]]
    ) -> None:
        self._queries = queries
        self._tasks = tasks
        self._kinds = kinds
        self._summaries = Codec(AdmissionSummary, Kind.ADMISSIONS)

    def runs(self, only: RunId | None = None) -> Iterator[Run]:
        """Yield the runs, or the one that is asked for if it exists."""
        if only is not None:
            yield from self._kinds[Kind.RUNS].present([only])
        else:
            yield from self._each(Kind.RUNS)

    def counts(self, run: RunId) -> tuple[int, int]:
        """Count the tasks and the dependencies of `run`."""
        return self._tasks.counts(run)

    def tasks(self, run: RunId) -> Iterator[Sequence[TaskRecord]]:
        """Yield the tasks of `run` in pages, lowest id first."""
        for ids in in_parts(self._queries.rows("history_tasks", run=run)):
            tasks = self._tasks.present(ids)
            rows = self._queries.rows("history_before", tasks=[task.id for task in tasks])
            before = {row["task"]: msgspec.convert(row["before"], list[Before]) for row in rows}
            yield [TaskRecord(task, tuple(before[task.id])) for task in tasks]

    def owners(self, ids: Sequence[TaskId]) -> Mapping[TaskId, Task | None]:
        """Return the tasks that exist, by id."""
        return self._tasks.known(ids)

    def slots(self) -> Iterator[Sequence[Slot]]:
        """Yield every unit of every resource in pages, by key."""
        yield from self._pages(Kind.SLOTS)

    def zone(self, id_: str) -> Zone | None:
        """Return a zone; None if it is not there, or only a newer version understands it."""
        return next(iter(self._kinds[Kind.ZONES].present([id_])), None)

    def regions(self) -> Iterator[Region]:
        """Yield the regions."""
        return self._each(Kind.REGIONS)

    def instances(self) -> Iterator[Instance]:
        """Yield the incarnations that are still kept."""
        return self._each(Kind.INSTANCES)

    def admissions(self) -> Iterator[AdmissionSummary]:
        """Yield what was ever accepted and is still kept."""
        for keys in in_parts(self._keys(Kind.ADMISSIONS)):
            rows = self._queries.rows("history_admissions", keys=list(keys))
            yield from self._summaries.all_decoded(rows)

    def audit(self) -> Iterator[Deed]:
        """Yield what people did."""
        for entry in self._each(Kind.AUDIT):
            yield Deed(entry.actor, entry.action, entry.thing, entry.at)

    def revisions(self, kind: Kind, ids: Sequence[str]) -> list[str]:
        """Return the revision of each document in the order of `ids`; empty if it is not there."""
        answers = self._kinds[kind].answers(ids)
        return [answer["_rev"] if answer is not None else "" for answer in answers]

    def _keys(self, kind: Kind) -> list[str]:
        return self._queries.rows("history_keys", **{"@kind": kind.value})

    def _pages(self, kind: Kind) -> Iterator[list[Any]]:
        for keys in in_parts(self._keys(kind)):
            yield self._kinds[kind].present(keys)

    def _each(self, kind: Kind) -> Iterator[Any]:
        for page in self._pages(kind):
            yield from page
