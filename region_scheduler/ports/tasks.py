"""The tasks and their dependencies, and the graph questions asked of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from region_scheduler.domain.doubt import StateMark
from region_scheduler.domain.ids import Incarnation, RunId, TaskId
from region_scheduler.domain.relocation import Site
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import Json, Task
from region_scheduler.ports.consistency import Deciding, Suggesting
from region_scheduler.ports.documents import Documents


@dataclass(frozen=True, slots=True)
class Unlockable:
    """A pending task whose predecessors are all satisfied.

    Attributes:
        task: The dependent; its revision was read before its predecessors were.
        seen: Completion token of each predecessor, by id; exactly `task.needs` of them.
    """

    task: Task
    seen: Mapping[TaskId, str]


@dataclass(frozen=True, slots=True)
class Related:
    """A task reached by walking the graph.

    Attributes:
        distance: Shortest number of dependencies from the start.
    """

    id: TaskId
    name: str
    state: TaskState
    region: str
    distance: int


@dataclass(frozen=True, slots=True)
class InFlight:
    """How many tasks of a region are claimed or running, by tenant and pool."""

    counts: Mapping[tuple[str, str], int]

    @property
    def by_tenant(self) -> Mapping[str, int]:
        """All pools together."""
        return _summed((tenant, count) for (tenant, _), count in self.counts.items())

    @property
    def by_pool(self) -> Mapping[str, int]:
        """All tenants together."""
        return _summed((pool, count) for (_, pool), count in self.counts.items())

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.counts.values())


def _summed(parts: Iterable[tuple[str, int]]) -> Mapping[str, int]:
    sums: Counter[str] = Counter()
    for name, count in parts:
        sums[name] += count
    return dict(sums)


@dataclass(frozen=True, slots=True)
class Unheld:
    """What has to leave a region.

    Attributes:
        tasks: Those that another region may and can take, those that could run first.
        stuck: How many of unended runs there are besides, which no other region may and can take.
    """

    tasks: Sequence[Task]
    stuck: int


class TaskStore(Documents[Task], Protocol):
    """Tasks of all regions. Lists come lowest id first unless they say more."""

    def known(self, ids: Sequence[TaskId]) -> Deciding[Mapping[TaskId, Task | None]]:
        """Return the tasks that exist, by id; None for one that only a newer version understands.

        Raises:
            Unavailable: No answer; reading again is safe.
        """
        ...

    def glimpse(self, task: TaskId) -> Suggesting[Task | None]:
        """Return a task as the local follower shows it, to try a conditional write on; else None.

        Raises:
            Unavailable: No answer; reading again is safe.
        """
        ...

    def marks_claimable(
        self, region: str, limit: int | None = None
    ) -> Suggesting[Mapping[TaskId, int]]:
        """Return the `seq` of every ready or doubtful task of `region`.

        With a limit, of about so many if there are more: each tenant has an equal part of it, and
        of each tenant those with the longest remaining path come first.
        """
        ...

    def marks_of_run(self, run: RunId, region: str) -> Suggesting[Mapping[TaskId, int]]:
        """Return the `seq` of every task of `run` that is in `region`."""
        ...

    def unlocked_by(self, completed: Sequence[TaskId]) -> Deciding[list[Unlockable]]:
        """Return the pending dependents of `completed` that now have all they need."""
        ...

    def ready(self, run: RunId, limit: int) -> Deciding[list[Unlockable]]:
        """Return every pending task of `run` all of whose predecessors are satisfied."""
        ...

    def held(self, region: str) -> Deciding[list[Task]]:
        """Return the claimed and running tasks whose region is `region`, for its observers."""
        ...

    def held_by(self, holders: Sequence[Incarnation]) -> Deciding[list[Task]]:
        """Return the claimed and running tasks, of any region, that `holders` hold."""
        ...

    def unheld(self, region: str, sites: Sequence[Site], limit: int) -> Deciding[Unheld]:
        """Return what is in `region`, has not ended and is held by nobody.

        Args:
            region: Where it is.
            sites: Where it may go, if it is allowed and its pool is served there.
            limit: How many tasks at most.
        """
        ...

    def movable(
        self, source: str, target: str, pools: Sequence[str], limit: int
    ) -> Suggesting[list[Task]]:
        """Return what is ready in `source` and may as well run in `target`, if in one of `pools`.

        Those with the shortest remaining path first.
        """
        ...

    def load(self) -> Suggesting[Mapping[str, int]]:
        """Count the ready, doubtful, claimed and running tasks of each region that has some."""
        ...

    def state_marks(self, run: RunId) -> Deciding[list[StateMark]]:
        """Return what `run` leaves of each terraform state that its tasks work on."""
        ...

    def state_counts(self, run: RunId) -> Deciding[Mapping[TaskState, int]]:
        """Count the tasks of `run` in each state."""
        ...

    def has_active(self, run: RunId) -> Deciding[bool]:
        """Say whether any task of `run` is ready, claimed, running, in doubt or awaiting."""
        ...

    def outputs_before(self, task: TaskId) -> Deciding[Mapping[str, Mapping[str, Json]]]:
        """Return the outputs of the direct predecessors of `task`, by name."""
        ...

    def of_run(
        self, run: RunId, states: Sequence[TaskState] = (), limit: int = 100_000
    ) -> Suggesting[list[Task]]:
        """Return the tasks of `run`, in `states` only if any are given."""
        ...

    def named(self, run: RunId, name: str) -> Suggesting[Task | None]:
        """Return the task of `run` with that name."""
        ...

    def insert_edges(self, edges: Sequence[tuple[TaskId, TaskId]]) -> list[bool | None]:
        """Insert dependencies, insert-only; True inserted, False was there, None unknown.

        Raises:
            Unavailable: Nothing was written.
        """
        ...

    def counts(self, run: RunId) -> Deciding[tuple[int, int]]:
        """Count the tasks and the dependencies of `run`."""
        ...

    def damage(self, run: Run) -> Deciding[str]:
        """Return what is wrong with the graph of a run that nothing can move; empty if nothing.

        Fewer tasks or dependencies than were counted when it was published, a dependency from a
        task that is not there, or a task that cannot be read. What only a newer version
        understands is not wrong.
        """
        ...

    def blocks(self, task: TaskId) -> Suggesting[list[Related]]:
        """Return everything that waits, directly or not, for `task` (transitive closure)."""
        ...

    def dependents(self, task: TaskId) -> Deciding[list[Related]]:
        """Return what `blocks` does, for a walk that must miss nothing: nearest first."""
        ...

    def numbers_before(
        self, tasks: Sequence[TaskId]
    ) -> Deciding[Mapping[TaskId, Mapping[TaskId, int]]]:
        """Return the token numbers of each task's direct predecessors, by id."""
        ...

    def failed(self, region: str, limit: int) -> Suggesting[list[Task]]:
        """Return the failed tasks of `region`, of the newest runs first."""
        ...

    def ancestors(self, task: TaskId) -> Suggesting[list[Related]]:
        """Return everything that `task` waits for, directly or not."""
        ...

    def order(self, run: RunId) -> Suggesting[list[tuple[int, Related]]]:
        """Return (wave, task) in topological order."""
        ...

    def critical_path(self, run: RunId) -> Suggesting[list[Task]]:
        """Return the tasks of the longest expected path of `run`, first to last."""
        ...
