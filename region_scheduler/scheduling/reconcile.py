"""The slow scan behind the fast path: whatever a crash left between two writes is found here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from region_scheduler.commit.gate import Change, commit
from region_scheduler.domain.ids import RunId
from region_scheduler.domain.region import RegionStatus
from region_scheduler.domain.run import Run, Zone, cancelling, zone_freed
from region_scheduler.domain.states import RUN_ENDED, RunState, TaskState
from region_scheduler.domain.task import Task
from region_scheduler.domain.transitions import Stamp
from region_scheduler.lifecycle.answers import apply_answers
from region_scheduler.lifecycle.cancel import cancel_tasks
from region_scheduler.lifecycle.rounds import open_round
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.lifecycle.zones import give_zone
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock
from region_scheduler.scheduling.damage import DamageWatch
from region_scheduler.scheduling.deadlines import Deadlines

FOREIGN_EVERY: Final = 5
"""Runs at home elsewhere are scanned so seldom, in case their own region does not."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What one scan found undone."""

    unlocked: tuple[Task, ...] = ()
    answered: tuple[Task, ...] = ()
    ended: tuple[Run, ...] = ()


class Reconciler:
    """Scans published runs; the guarantee behind unlock, answers, cancels, run ends and zones.

    Args:
        region: Runs at home here, or in a region that is down, are scanned at every call, the
            others at every fifth.
        graph: The graph store.
        keeper: This process's lease.
        settler: The same code as on the fast path.
        clock: This machine's clock.
    """

    def __init__(
        self,
        region: str,
        graph: GraphStores,
        keeper: LeaseKeeper,
        settler: Settler,
        clock: Clock,
    ) -> None:
        self._region = region
        self._graph = graph
        self._keeper = keeper
        self._settler = settler
        self._clock = clock
        self._scan = 0
        self._deadlines = Deadlines()
        self._damages = DamageWatch(graph)

    def tick(self) -> Reconciled:
        """Scan once.

        Raises:
            Unavailable, OutcomeUnknown: The next scan does the rest.
        """
        if not self._keeper.may_act():
            return Reconciled()
        self._scan += 1
        runs = self._within_deadline(self._graph.runs.unended())
        is_wide = self._scan % FOREIGN_EVERY == 0
        homes = self._homes()
        mine = [run for run in runs if is_wide or run.home_region in homes]
        self._pass_zones(runs)
        self._damages.keep(runs)
        unlocked: list[Task] = []
        answered: list[Task] = []
        over: list[Run] = []
        for run in mine:
            stamp = Stamp(self._keeper.instance.id, self._clock.now())
            if run.state is RunState.ADMITTED or run.rework is not None:
                open_round(self._graph, self._settler, run, stamp)
                continue
            if run.state is RunState.CANCELLING:
                after, _ = cancel_tasks(self._graph, self._settler, run, stamp)
                is_over = after.state in RUN_ENDED
                ended = after if is_over else self._damages.look(after, stamp.at)
                over += [ended] if ended is not None else []
                continue
            answered += self._apply_answers(run)
            unlocked += self._settler.unlock_run(run)
            finished = self._settler.finish(run.id) or self._damages.look(run, stamp.at)
            if finished is not None:
                over.append(finished)
        return Reconciled(tuple(unlocked), tuple(answered), tuple(over))

    def _homes(self) -> set[str]:
        regions = self._graph.regions.all()
        return {self._region, *(r.id for r in regions if r.status is RegionStatus.DOWN)}

    def _within_deadline(self, unended: Sequence[Run]) -> list[Run]:
        """Return the runs as they are once those are being cancelled that have taken too long."""
        over = self._deadlines.over(unended, self._clock.monotonic())
        changes = [
            Change(run.id, partial(cancelling, reason=_over(run)), known=run)
            for run in over
            if run.state is not RunState.CANCELLING
        ]
        moved = {o.value.id: o.value for o in commit(self._graph.runs, changes) if o.value}
        current = [moved.get(run.id, run) for run in unended]
        return [run for run in current if run.state not in RUN_ENDED]

    def _apply_answers(self, run: Run) -> list[Task]:
        awaiting = self._graph.tasks.of_run(run.id, [TaskState.AWAITING])
        moved = apply_answers(self._graph, awaiting, self._clock)
        if moved:
            self._settler.settle(moved)
        return moved

    def _pass_zones(self, runs: Sequence[Run]) -> None:
        """Free zones whose run has ended, and give free ones to the oldest run that waits."""
        waiting: dict[str, list[Run]] = defaultdict(list)
        for run in runs:
            if run.needs_zone:
                waiting[run.zone].append(run)
        live = {run.id for run in runs}
        for zone in self._graph.zones.held():
            if zone.active_run not in live:
                self._free_if_ended(zone)
        zones = sorted(waiting)
        for zone_now in self._graph.zones.read(zones) if zones else []:
            if zone_now is not None and not zone_now.active_run:
                give_zone(self._graph, zone_now, waiting[zone_now.id])

    def _free_if_ended(self, zone: Zone) -> None:
        (run,) = self._graph.runs.read([zone.active_run])
        if run is None or run.state in RUN_ENDED:
            round_ = run.round if run is not None else zone.active_round
            marks = self._graph.tasks.state_marks(RunId(zone.active_run))
            free = partial(zone_freed, run=zone.active_run, round_=round_, marks=marks)
            commit(self._graph.zones, [Change(zone.id, free, known=zone)])


def _over(run: Run) -> str:
    return f"its deadline of {run.deadline_s:g} s is over"
