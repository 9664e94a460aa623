"""When what is there would be done: the scheduler's own choice, played on a copy of the state."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from heapq import heappop, heappush
from typing import Final

from region_scheduler.domain.durations import path_left_s
from region_scheduler.domain.ids import TaskId
from region_scheduler.domain.slot import Slot, assign
from region_scheduler.domain.states import CLAIMABLE, FINAL, HELD, SATISFYING, TaskState
from region_scheduler.domain.task import Task, units_needed
from region_scheduler.domain.tenant import Level
from region_scheduler.ports.backlog import BacklogRow
from region_scheduler.resources.assign import unit_of
from region_scheduler.scheduling.promote import Claimant, Room, pick

TASKS_MAX: Final = 5_000
"""Of more nothing is foretold: it would keep a person waiting."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where tasks can run.

    Attributes:
        slots: Attempts that each region's live workers can run at once, by pool; only of regions
            that promote.
        levels: Of the tenants.
    """

    slots: Mapping[str, Mapping[str, int]]
    levels: Mapping[str, Level]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What would come of it, if every step took as long as is expected and none failed.

    Attributes:
        makespan_s: Until the last task that can run is done, seconds.
        stuck: How many would not run at all: they wait for a region, a person, or a task that does.
    """

    makespan_s: float
    stuck: int


@dataclass(slots=True)
class _Yard:
    """A copy of the state, that time passes in."""

    tasks: dict[TaskId, Task]
    before: Mapping[TaskId, Collection[TaskId]]
    places: Places
    units: dict[str, list[Slot]]
    now_s: float = 0.0
    running: list[tuple[float, TaskId]] = field(default_factory=list)
    done: set[TaskId] = field(default_factory=set)
    ready: dict[str, list[TaskId]] = field(default_factory=lambda: defaultdict(list))

    def promote(self) -> None:
        """Let every region take what its room, its tenants' shares and the locks allow."""
        for region, slots in sorted(self.places.slots.items()):
            flying = [
                self.tasks[id_] for _, id_ in self.running if self.tasks[id_].region == region
            ]
            pools = Counter(task.spec.pool for task in flying)
            by_pool = {pool: count - pools[pool] for pool, count in slots.items()}
            room = Room(max(slots.values(), default=0) - len(flying), by_pool)
            rows = sorted((BacklogRow.of(self.tasks[i]) for i in self.ready[region]), key=_order)
            tenants = Counter(task.tenant for task in flying)
            names = {row.tenant for row in rows}
            claimants = {n: Claimant(self.places.levels[n], tenants[n]) for n in sorted(names)}
            for row in pick(rows, self.units, room, claimants).rows if room.total > 0 else ():
                self.begin(row.task, self.tasks[row.task].spec.expected_s)
                self.ready[region].remove(row.task)

    def begin(self, id_: TaskId, lasts_s: float) -> None:
        """Let a task run; it holds its locks until it ends."""
        task = self.tasks[id_]
        for name, count in units_needed(task.spec).items():
            for _ in range(count):
                units = self.units[name]
                free = next((n for n, unit in enumerate(units) if unit.holder is None), None)
                if free is not None:
                    units[free] = assign(units[free], id_, task.token)
        heappush(self.running, (self.now_s + max(0.0, lasts_s), id_))

    def end(self) -> None:
        """Go on to the next end, and unlock what waited for it alone."""
        self.now_s, id_ = heappop(self.running)
        self.finish(id_)

    def finish(self, id_: TaskId) -> None:
        """Take a task as done."""
        self.done.add(id_)
        for name in units_needed(self.tasks[id_].spec):
            units = self.units[name]
            for n, unit in enumerate(units):
                if unit.holder is not None and unit.holder.task == id_:
                    units[n] = replace(unit, holder=None)

    def unlock(self, waiting: set[TaskId]) -> set[TaskId]:
        """Make ready whatever of `waiting` has all it needs; return the rest."""
        free = {id_ for id_ in waiting if self.done.issuperset(self.before.get(id_, ()))}
        for id_ in sorted(free):
            self.ready[self.tasks[id_].region].append(id_)
        return waiting - free


def forecast(
    tasks: Sequence[Task],
    before: Mapping[TaskId, Collection[TaskId]],
    places: Places,
    now: datetime,
) -> Forecast:
    """Return when all that can run would be done.

    Rests, retries, look-ahead and tasks drawn by idle regions are left out.

    Args:
        tasks: Of the runs that go on, where they are, or would be.
        before: The direct predecessors of those that are pending.
        places: Where they can run.
        now: For what the running ones have done already.
    """
    yard = _Yard({task.id: task for task in tasks}, before, places, _units(tasks))
    waiting: set[TaskId] = set()
    for task in tasks:
        if task.state in SATISFYING:
            yard.done.add(task.id)
        elif task.state in HELD:
            lasts_s = task.spec.expected_s - (task.spec.remaining_s - path_left_s(task, now))
            yard.begin(task.id, lasts_s)
        elif task.state in CLAIMABLE:
            yard.ready[task.region].append(task.id)
        elif task.state is TaskState.PENDING:
            waiting.add(task.id)
    waiting = yard.unlock(waiting)
    yard.promote()
    while yard.running:
        yard.end()
        waiting = yard.unlock(waiting)
        yard.promote()
    over = len(yard.done) + sum(task.state in FINAL - SATISFYING for task in tasks)
    return Forecast(yard.now_s, len(tasks) - over)


def _order(row: BacklogRow) -> tuple[int, float, TaskId]:
    """Return how a backlog orders the rows of a tenant that became ready together."""
    return -row.priority, -row.remaining_s, row.task


def _units(tasks: Sequence[Task]) -> dict[str, list[Slot]]:
    needs = {need.resource: need for task in tasks for need in task.spec.locks}
    return {
        name: [unit_of(name, n, need.when_holder_lost) for n in range(need.capacity)]
        for name, need in sorted(needs.items())
    }
