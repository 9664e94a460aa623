"""What is recorded, to be read by whoever holds it against the promises. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from region_scheduler.domain.admission import AdmissionSummary
from region_scheduler.domain.ids import RunId, TaskId
from region_scheduler.domain.instance import Instance
from region_scheduler.domain.region import Region
from region_scheduler.domain.run import Run, Zone
from region_scheduler.domain.slot import Slot
from region_scheduler.domain.task import Task
from region_scheduler.ports.consistency import Deciding


class Kind(StrEnum):
    """Kinds of documents that are looked at."""

    ADMISSIONS = "admissions"
    AUDIT = "audit"
    INSTANCES = "instances"
    REGIONS = "regions"
    RUNS = "runs"
    SLOTS = "slots"
    TASKS = "tasks"
    ZONES = "zones"


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """A direct predecessor of a task, as a dependency names it.

    Attributes:
        rev: Empty if there is no such task; then the rest is empty, too.
        state: Its state, as it is stored.
        token: Its token, as `str(Token)`.
        cleared: The number of its token when its present submission began; None in its first.
    """

    id: TaskId
    rev: str = ""
    state: str = ""
    token: str = ""
    cleared: int | None = None


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A task with its direct predecessors, each once, read after it."""

    task: Task
    before: tuple[Before, ...]


@dataclass(frozen=True, slots=True)
class Deed:
    """An entry of the audit: who wanted what done to which thing, and when by their own clock."""

    actor: str
    action: str
    thing: str
    at: datetime


class History(Protocol):
    """All that is recorded, in pieces: no answer holds more than a page of documents.

    What only a newer version understands is passed over. All of it may change between two calls,
    and while an iterator is read: what rests on several documents counts only if `revisions` still
    says of all of them what they were read at. Every method raises `Unavailable` if there is no
    answer.
    """

    def runs(self, only: RunId | None = None) -> Deciding[Iterator[Run]]:
        """Yield the runs, or the one that is asked for if it exists."""
        ...

    def counts(self, run: RunId) -> Deciding[tuple[int, int]]:
        """Count the tasks and the dependencies of `run`, also those of a newer version."""
        ...

    def tasks(self, run: RunId) -> Deciding[Iterator[Sequence[TaskRecord]]]:
        """Yield the tasks of `run` in pages, lowest id first."""
        ...

    def owners(self, ids: Sequence[TaskId]) -> Deciding[Mapping[TaskId, Task | None]]:
        """Return the tasks that exist, by id; None for one that only a newer version understands.

        Args:
            ids: At most a page of them.
        """
        ...

    def slots(self) -> Deciding[Iterator[Sequence[Slot]]]:
        """Yield every unit of every resource in pages, by key."""
        ...

    def zone(self, id_: str) -> Deciding[Zone | None]:
        """Return a zone; None if it is not there, or only a newer version understands it."""
        ...

    def regions(self) -> Deciding[Iterator[Region]]:
        """Yield the regions."""
        ...

    def instances(self) -> Deciding[Iterator[Instance]]:
        """Yield the incarnations that are still kept, fenced ones too."""
        ...

    def admissions(self) -> Deciding[Iterator[AdmissionSummary]]:
        """Yield what was ever accepted and is still kept."""
        ...

    def audit(self) -> Deciding[Iterator[Deed]]:
        """Yield what people did."""
        ...

    def revisions(self, kind: Kind, ids: Sequence[str]) -> Deciding[list[str]]:
        """Return the revision of each document in the order of `ids`; empty if it is not there."""
        ...
