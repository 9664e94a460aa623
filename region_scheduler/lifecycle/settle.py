"""Settle ended tasks: unlock, release, end, wake."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from region_scheduler.commit.gate import Change, commit
from region_scheduler.domain.ids import RunId
from region_scheduler.domain.run import Run, ended
from region_scheduler.domain.slot import Slot, is_orphan, release
from region_scheduler.domain.states import ACTIVE, RUN_ENDED, SATISFYING, RunState, TaskState
from region_scheduler.domain.task import Task
from region_scheduler.domain.transitions import Stamp
from region_scheduler.errors import LostRace
from region_scheduler.lifecycle.conditions import Outputs, unlocking
from region_scheduler.lifecycle.zones import doubtful_states, free_zone, holds_zone, take_zone
from region_scheduler.ports.queue import WakeUps
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.tasks import Unlockable
from region_scheduler.ports.time import Clock

_UNLOCK_ROUNDS_MAX = 5
_READY_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class Settled:
    """What a call did; all of it may be empty, for instance because someone else was faster."""

    unlocked: tuple[Task, ...] = ()
    freed: tuple[Slot, ...] = ()
    ended: tuple[Run, ...] = ()


class Settler:
    """Does what follows an ended task. Safe to call twice, by anybody, at any time.

    Args:
        graph: The graph store.
        wake_ups: Wakes schedulers.
        clock: For stamps that people read.
        who: Incarnation or actor on whose behalf transitions are stamped.
    """

    def __init__(self, graph: GraphStores, wake_ups: WakeUps, clock: Clock, who: str) -> None:
        self._graph = graph
        self._wake_ups = wake_ups
        self._clock = clock
        self._who = who

    def settle(self, tasks: Sequence[Task]) -> Settled:
        """Settle tasks that have left their holder, whatever state they are in now.

        Raises:
            Unavailable, OutcomeUnknown: Part of it may be done; the reconciler does the rest.
        """
        satisfied = [task.id for task in tasks if task.state in SATISFYING]
        unlocked = (
            self._unlock(lambda: self._graph.tasks.unlocked_by(satisfied)) if satisfied else []
        )
        for run in self._graph.runs.read(sorted({t.run for t in tasks if _waits_anew(t)})):
            unlocked += self.unlock_run(run) if run is not None else []
        freed = self.release([task for task in tasks if task.spec.locks])
        moving = {task.run for task in unlocked}
        stopped = {task.run for task in tasks if task.state is not TaskState.READY} - moving
        over = [run for run_id in sorted(stopped) if (run := self.finish(run_id)) is not None]
        self._wake(unlocked, freed, [task for task in tasks if task.state is TaskState.READY])
        return Settled(tuple(unlocked), tuple(freed), tuple(over))

    def unlock_run(self, run: Run) -> list[Task]:
        """Unlock whatever of `run` can start: its roots once it is published, and what was missed.

        The roots of a mutating run wait until a leader read shows that it holds its zone. Nothing
        of a run that has ended, is being cancelled, or was published as refused, is unlocked.

        Raises:
            Unavailable, OutcomeUnknown: Call again.
        """
        if run.state in RUN_ENDED or run.state is RunState.CANCELLING:
            return []
        may_start = holds_zone(self._graph, run)
        unlocked = self._unlock(
            lambda: [
                found
                for found in self._graph.tasks.ready(run.id, _READY_LIMIT)
                if found.task.needs > 0 or may_start
            ]
        )
        self._wake(unlocked, (), ())
        return unlocked

    def unlock_roots(self, run: Run, roots: Sequence[Task]) -> list[Task]:
        """Unlock the first tasks of a run that was just published, without a look at the others.

        The reconciler unlocks what is missed here.

        Args:
            run: As published; as for `unlock_run`, it must hold its zone.
            roots: Tasks that need no other, as they were inserted or found at the leader.

        Raises:
            Unavailable, OutcomeUnknown: Call again, or leave it to the reconciler.
        """
        if run.state in RUN_ENDED or not holds_zone(self._graph, run):
            return []
        unlocked: list[Task] = []
        waiting = [Unlockable(t, {}) for t in roots if t.state is TaskState.PENDING]
        for begin in range(0, len(waiting), _READY_LIMIT):
            part = waiting[begin : begin + _READY_LIMIT]
            unlocked += self._unlock(partial(list, part))
        self._wake(unlocked, (), ())
        return unlocked

    def release(self, tasks: Sequence[Task]) -> list[Slot]:
        """Free the slots that `tasks` no longer have a right to; each as read at the leader."""
        if not tasks:
            return []
        by_id = {task.id: task for task in tasks}
        held = self._graph.slots.held_by(list(by_id))
        changes = [
            Change(slot.id, partial(release, holder=slot.holder), known=slot)
            for slot in held
            if slot.holder is not None and is_orphan(slot, by_id[slot.holder.task])
        ]
        outcomes = commit(self._graph.slots, changes)
        return [o.value for o in outcomes if o.is_ours and o.value is not None]

    def finish(self, run_id: RunId) -> Run | None:
        """Write the end of a run that cannot move any more, and hand its zone on.

        Returns:
            The ended run, if this call found it ended; None if it goes on.
        """
        if self._graph.tasks.has_active(run_id):
            return None
        (run,) = self._graph.runs.read([run_id])
        if run is not None and run.state not in RUN_ENDED:
            run = self._end(run)
        if run is None:
            return None
        if free_zone(self._graph, run):
            self._hand_on(run.zone)
        return run

    def _end(self, run: Run) -> Run | None:
        """End `run`, read before its tasks were, if nothing of it moves or can.

        No single read says so: a task may be unlocked after it was counted as pending and before
        it is looked for as ready. Two equal counts without an active task, around a look for what
        could be unlocked, do, because within one round a task never returns from an end.
        """
        tasks = self._graph.tasks
        counts = tasks.state_counts(run.id)
        is_still = not tasks.ready(run.id, 1) and tasks.state_counts(run.id) == counts
        can_move = not is_still or any(counts.get(state) for state in ACTIVE)
        at = self._clock.now()

        def decide(now: Run) -> Run:
            if now.rev != run.rev and now.state not in RUN_ENDED:
                raise LostRace(thing=f"end of run {run.id}", winner="a write to the run")
            return ended(now, counts, can_move, at)

        (outcome,) = commit(self._graph.runs, [Change(run.id, decide, known=run)])
        is_over = outcome.value is not None and outcome.value.state in RUN_ENDED
        return outcome.value if is_over else None

    def _hand_on(self, zone: str) -> None:
        """Let the run that has waited longest for the zone start at once."""
        for run in self._graph.runs.of_zone(zone):
            if run.needs_zone and take_zone(self._graph, run):
                self.unlock_run(run)
                return

    def _unlock(self, find: Callable[[], list[Unlockable]]) -> list[Task]:
        """Unlock what `find` returns, and what is let go by those of them that are skipped."""
        unlocked: list[Task] = []
        moved = self._move_on(find)
        while moved:
            unlocked += [task for task in moved if task.state is TaskState.READY]
            skipped = [task.id for task in moved if task.state is TaskState.SKIPPED]
            if not skipped:
                break
            moved = self._move_on(partial(self._graph.tasks.unlocked_by, skipped))
        return unlocked

    def _move_on(self, find: Callable[[], list[Unlockable]]) -> list[Task]:
        """Move what `find` returns; ask it again for those whose revision had moved."""
        moved: dict[str, Task] = {}
        for _ in range(_UNLOCK_ROUNDS_MAX):
            found = [u for u in find() if u.task.id not in moved]
            if not found:
                break
            changes = self._unlockings(found)
            outcomes = commit(self._graph.tasks, changes)
            for outcome in outcomes:
                if outcome.is_ours and outcome.value is not None:
                    moved[outcome.value.id] = outcome.value
            if all(outcome.is_ours for outcome in outcomes) and len(found) < _READY_LIMIT:
                break
        return list(moved.values())

    def _unlockings(self, found: Sequence[Unlockable]) -> list[Change[Task]]:
        stamp = Stamp(self._who, self._clock.now())
        doubts = doubtful_states(self._graph, [unlockable.task for unlockable in found])
        return [
            Change(
                u.task.id,
                unlocking(
                    u,
                    self._upstream(u.task),
                    stamp,
                    is_doubtful=u.task.spec.state_key in doubts,
                ),
                known=u.task,
            )
            for u in found
        ]

    def _upstream(self, task: Task) -> Outputs:
        """Return what a condition is about; nothing is asked for a task that has none."""
        return self._graph.tasks.outputs_before(task.id) if task.spec.condition else {}

    def _wake(
        self, unlocked: Sequence[Task], freed: Sequence[Slot], returned: Sequence[Task]
    ) -> None:
        regions = {task.region for task in (*unlocked, *returned)}
        if freed:
            # Who waits for a lock may sit in any region; a spare wake-up costs one query.
            regions |= {region.id for region in self._graph.regions.all()}
        self.wake(regions)

    def wake(self, regions: Iterable[str]) -> None:
        """Wake the schedulers of `regions`, best effort."""
        for region in sorted(set(regions)):
            self._wake_ups.wake(region)


def _waits_anew(task: Task) -> bool:
    """Say whether a task was cleared: its predecessors may all be satisfied still."""
    return task.state is TaskState.PENDING
