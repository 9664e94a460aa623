"""The role that fires schedules. Any number may: each occurrence is decided by one write.

`domain.schedule` says what a decision is. The decider admits what it decided to fire; if it dies
between the two, another finds a firing without a run, and admits it under the same key and id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from region_scheduler.admission.intake import Intake
from region_scheduler.commit.gate import Change, Decision, commit_one
from region_scheduler.domain.admission import Admission, AdmissionState, Plan
from region_scheduler.domain.ids import RunId
from region_scheduler.domain.lease import Instant, LeaseTimings
from region_scheduler.domain.schedule import (
    Firing,
    Overlap,
    Schedule,
    adopted,
    decided,
    freed,
    is_behind_another,
    occurrence_key,
    refused,
    waiting_for,
)
from region_scheduler.domain.skew import ahead_s
from region_scheduler.domain.states import RUN_ENDED
from region_scheduler.errors import (
    BrokenInvariant,
    LostRace,
    NotFound,
    RegionSchedulerError,
    Rejected,
    Throttled,
)
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock, Ids

Planner = Callable[[Schedule], Plan]
"""Makes the plan of a schedule's next run; raises `Rejected` or `NotFound` if there can be none."""

_ROUNDS_MAX: Final = 100
"""Decisions on one schedule in one tick; one that takes in too much at once needs several."""


@dataclass(frozen=True, slots=True)
class Fired:
    """What one tick did.

    Attributes:
        wait_s: Seconds after which the next tick is due. Computed anew at every tick: a wall clock
            that is set meanwhile delays nothing for longer than the slow pace.
        fired, missed: How many occurrences were decided to run, or recorded as missed, by the
            schedule's name.
        clock_ahead_s: How far the wall clock is ahead, if so far that nothing was fired; else 0.
        held: What occurrences began to wait for, by the schedule's name.
    """

    wait_s: float
    fired: Mapping[str, int] = field(default_factory=dict)
    missed: Mapping[str, int] = field(default_factory=dict)
    clock_ahead_s: float = 0.0
    held: Mapping[str, str] = field(default_factory=dict)


class Timekeeper:
    """Fires the schedules of its region, and those of others whose region does not.

    Args:
        region: This process's.
        graph: The graph store.
        intake: Admits runs.
        planner: Makes their plans.
        keeper: This process's lease; without it nothing is fired.
        timings: Paces, and how far ahead a clock may be.
        clock: This machine's clock.
        ids: For runs.
    """

    def __init__(
        self,
        region: str,
        graph: GraphStores,
        intake: Intake,
        planner: Planner,
        keeper: LeaseKeeper,
        timings: LeaseTimings,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._region = region
        self._graph = graph
        self._intake = intake
        self._planner = planner
        self._keeper = keeper
        self._timings = timings
        self._clock = clock
        self._ids = ids
        self._strangers: dict[RunId, Instant] = {}

    def tick(self) -> Fired:
        """Decide what is due, admit what was decided, free what has ended.

        One schedule that cannot be served does not keep the others waiting.

        Raises:
            Unavailable, OutcomeUnknown: Of the first that was not served; the next tick goes on.
            BrokenInvariant: The same.
        """
        slow = self._timings.reconcile_every_s
        if not self._keeper.may_act():
            return Fired(slow)
        now = self._clock.now()
        found = self._graph.schedules.open(now)
        ahead = self._clock_ahead_s(found, now)
        served: list[tuple[Schedule, Schedule]] = []
        failures: list[Exception] = []
        for schedule in found:
            try:
                served.append((schedule, self._serve(schedule, now, is_firing=not ahead)))
            except LostRace:
                continue  # others are at it
            except (RegionSchedulerError, BrokenInvariant) as failure:
                failures.append(failure)
        open_runs = {firing.run for one in found for firing in one.firings}
        self._strangers = {run: at for run, at in self._strangers.items() if run in open_runs}
        if failures:
            raise failures[0]
        return Fired(
            self._wait_s(),
            _risen(served, lambda schedule: schedule.fired_count),
            _risen(served, lambda schedule: schedule.missed_count),
            ahead,
            {after.name: told for before, after in served if (told := _held(before, after))},
        )

    def _clock_ahead_s(self, found: Sequence[Schedule], now: datetime) -> float:
        """Return how far our clock is ahead, if that is too far for what is due; else 0."""
        if not any(_is_due(schedule, now) for schedule in found):
            return 0.0
        ahead = ahead_s(now, self._graph.instances.unfenced())
        return ahead if ahead > self._timings.skew_max_s else 0.0

    def _wait_s(self) -> float:
        slow, now = self._timings.reconcile_every_s, self._clock.now()
        next_at = self._graph.schedules.next_at(self._region, now)
        return slow if next_at is None else min(slow, (next_at - now).total_seconds())

    def _serve(self, schedule: Schedule, now: datetime, *, is_firing: bool) -> Schedule:
        """Return the schedule after everything that this tick can do for it."""
        for firing in schedule.firings:
            schedule = self._cared_for(schedule, firing)
        if not is_firing or not self._is_ours(schedule, now):
            return schedule
        for _ in range(_ROUNDS_MAX):
            before = {firing.run for firing in schedule.firings}
            after = self._commit(schedule, partial(decided, now=now, new_run=self._new_run))
            if after.rev == schedule.rev:
                break
            schedule = after
            for firing in [f for f in after.firings if f.run not in before]:
                schedule = self._admitted(schedule, firing)
        return schedule

    def _is_ours(self, schedule: Schedule, now: datetime) -> bool:
        """Say whether to decide now: at home at once, elsewhere when home has had its time."""
        if schedule.home_region == self._region or schedule.next_at is None:
            return True
        patience = timedelta(seconds=self._timings.reconcile_every_s)
        return schedule.next_at + patience <= now or bool(schedule.waiting)

    def _cared_for(self, schedule: Schedule, firing: Firing) -> Schedule:
        """Admit a firing that has no run for a while; free one that needs nothing any more."""
        (run,) = self._graph.runs.read([firing.run])
        if run is not None:
            is_over = schedule.overlap is Overlap.ALLOW or run.state in RUN_ENDED
            return self._commit(schedule, partial(freed, run=run.id)) if is_over else schedule
        if firing.waits_for and schedule.is_deleted:
            told = "the schedule was deleted while it waited"
            return self._recorded(schedule, firing, self._refusal(schedule, firing, told))
        if firing.waits_for and not schedule.is_enabled:
            return schedule
        # Whoever decided it is most likely just admitting it; what waits is not asked all the time.
        since = self._strangers.setdefault(firing.run, self._clock.monotonic())
        if self._clock.monotonic() - since < self._timings.reconcile_every_s:
            return schedule
        return self._admitted(schedule, firing)

    def _admitted(self, schedule: Schedule, firing: Firing) -> Schedule:
        """Admit a firing, or refuse it for good; the admission says which it was.

        One whose tenant is at its quota waits for its turn, and those after it wait behind it.
        """
        if is_behind_another(schedule, firing):
            return schedule
        try:
            standing = self._admission(schedule, firing)
        except Throttled as full:
            self._strangers[firing.run] = self._clock.monotonic()
            told = f"quota of {full.quota}, at most {full.limit}"
            return self._commit(schedule, partial(waiting_for, run=firing.run, reason=told))
        return self._recorded(schedule, firing, standing)

    def _recorded(self, schedule: Schedule, firing: Firing, standing: Admission) -> Schedule:
        """Return the schedule after it is written there what became of a firing."""
        if standing.state is AdmissionState.REFUSED:
            no = partial(refused, firing=firing, reason=standing.reason, now=self._clock.now())
            return self._commit(schedule, no)
        if schedule.overlap is Overlap.ALLOW:
            return self._commit(schedule, partial(freed, run=firing.run))
        if standing.run != firing.run:
            return self._commit(schedule, partial(adopted, firing=firing, run=standing.run))
        return self._commit(schedule, partial(waiting_for, run=firing.run, reason=""))

    def _admission(self, schedule: Schedule, firing: Firing) -> Admission:
        key = occurrence_key(schedule, firing.nominal_at)
        try:
            return self._intake.admit_occurrence(self._planner(schedule), key, firing.run)
        except (Rejected, NotFound) as error:
            return self._refusal(schedule, firing, str(error))

    def _refusal(self, schedule: Schedule, firing: Firing, reason: str) -> Admission:
        """Refuse a firing for good, unless it was admitted before, and return what stands."""
        nothing = Plan(
            name=schedule.name,
            tenant=schedule.tenant,
            zone=schedule.zone,
            mode=schedule.mode,
            home_region=schedule.home_region,
            regions=(schedule.home_region,),
            tasks=(),
            edges=(),
        )
        key = occurrence_key(schedule, firing.nominal_at)
        return self._intake.refuse_occurrence(nothing, key, firing.run, reason)

    def _commit(self, schedule: Schedule, decide: Decision[Schedule]) -> Schedule:
        return commit_one(self._graph.schedules, Change(schedule.id, decide, known=schedule))

    def _new_run(self) -> RunId:
        return RunId(self._ids.new())


def _is_due(schedule: Schedule, now: datetime) -> bool:
    return bool(schedule.waiting) or (schedule.next_at is not None and schedule.next_at <= now)


def _held(before: Schedule, after: Schedule) -> str:
    """Return what a firing began to wait for; empty if none did."""
    known = {firing.run for firing in before.firings if firing.waits_for}
    return next((f.waits_for for f in after.firings if f.waits_for and f.run not in known), "")


def _risen(
    served: Sequence[tuple[Schedule, Schedule]], count: Callable[[Schedule], int]
) -> dict[str, int]:
    risen = {after.name: count(after) - count(before) for before, after in served}
    return {name: more for name, more in risen.items() if more}
