"""What goes wrong during the demo, one thing after the other, and what can be seen of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from typing import Final, TypeVar

from region_scheduler.assembly.operator import Operator
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.ids import TaskId, task_id
from region_scheduler.domain.region import RegionStatus
from region_scheduler.domain.relocation import sites
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import FINAL, TaskState
from region_scheduler.domain.task import EventKind, Task
from region_scheduler.errors import OutcomeUnknown, Unavailable
from region_scheduler.local.demo.work import Submitted, bound_steps, long_steps
from region_scheduler.local.evidence import late_completions, step_records
from region_scheduler.local.links import Links
from region_scheduler.local.up import LocalStack
from region_scheduler.ports.tasks import Unheld
from region_scheduler.worker.steplog import StepEvent

T = TypeVar("T")

_LOOK_S: Final = 0.1
_STEPS: Final = 2
_STEP_TTLS: Final = 2.0
"""A long step takes so many times what a lease lasts: its lease runs out before it ends."""
_PATIENCE_LEASES: Final = 10
"""What is not seen within so many leases is not awaited any longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A region all of whose processes were killed; instants are seconds after that.

    Attributes:
        detected_s: It was given up.
        recovered_s: Nothing was left there that may run elsewhere, and its long steps did so.
        waited: Tasks that no other region may take.
        since: When it was killed, by the wall clock.
        until: When it took work again.
    """

    region: str
    detected_s: float
    recovered_s: float
    waited: int
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOff:
    """A region that was cut off from the graph; instants are seconds after that.

    Attributes:
        stopped_s: The last of its long steps had ended, by what their shims wrote down.
        taken_over_s: The first of them was begun in another region, likewise.
        returned_s: It took work again, the cut being mended as soon as all were taken over.
    """

    region: str
    stopped_s: float
    taken_over_s: float
    returned_s: float


@dataclass(slots=True)
class Seen:
    """What a drill saw.

    Attributes:
        submitted: Runs of its own.
        problem: What should have been seen and was not; empty if there is no such thing.
    """

    submitted: list[Submitted] = field(default_factory=list)
    lost: Lost | None = None
    cut_off: CutOff | None = None
    problem: str = ""


class Drill:
    """Freezes a worker, kills a region and lets it return, cuts another off and mends it.

    One at a time: a cluster over three regions lives on while two of them are there.

    Args:
        operator: Of the region that nothing happens to as a whole.
        local: The stack; it has three regions.
        say: Told in one line.
        stopping: Set from outside, it ends the drill where it is.
    """

    def __init__(
        self, operator: Operator, local: LocalStack, say: Callable[[str], None], stopping: Event
    ) -> None:
        self._operator = operator
        self._local = local
        self._say = say
        self._stopping = stopping
        self._clock = operator.clock
        self._lease = operator.settings.lease
        self._seen = Seen()

    def run(self) -> Seen:
        """Do it all; whatever happens, nothing is left broken.

        Raises:
            Unavailable, OutcomeUnknown: The graph store does not answer.
        """
        lost, cut, calm = self._local.stack.regions
        try:
            self._freeze_a_worker(calm)
            self._lose(lost)
            if self._local.stack.store is None:
                self._cut_off(cut)
            else:
                self._say("nothing is cut off: the graph store is not ours")
        except _NotSeen as problem:
            self._seen.problem = str(problem)
        return self._seen

    def _freeze_a_worker(self, region: str) -> None:
        """Hold a worker's renewals back until its step was taken from it; let it complete then."""
        ids = self._run(long_steps("frozen", self._from(region), 1, self._step_s))
        worker, before = f"worker {region}", late_completions(self._local.stack)
        self._say(f"{worker} stands still in the middle of a step, and renews no lease")
        self._until(f"{worker} is frozen", lambda: self._local.freeze(worker))
        try:
            self._until("a frozen worker's step is taken from it", lambda: self._are_lost(ids))
        finally:
            self._local.thaw(worker)
        self._say(f"{worker} goes on, and completes a step that is no longer its own")
        self._until(
            "a late completion is refused", lambda: late_completions(self._local.stack) > before
        )

    def _lose(self, region: str) -> None:
        """Kill a region, and bring it back when its work goes on elsewhere."""
        ids = self._run(bound_steps("lost", self._from(region), _STEPS, self._step_s))
        self._say(f"{region} is lost: all its processes are killed")
        since, at = self._clock.now(), self._clock.monotonic()
        self._local.kill(region)
        try:
            self._until("its processes are dead", lambda: not self._local.lives(region))
            self._until(f"{region} is given up", lambda: self._is(region, RegionStatus.DOWN))
            detected_s = self._clock.monotonic() - at
            self._say(f"{region} is given up after {detected_s:.1f} s")
            self._until("what may leave it has left", lambda: self._is_empty(region))
            self._until("its steps go on elsewhere", lambda: self._go_on(ids, region))
            recovered_s = self._clock.monotonic() - at
            waited = self._insist("what waits is counted", lambda: self._left_in(region).stuck)
        finally:
            self._local.bring_back(region)
        self._say(
            f"its work goes on elsewhere after {recovered_s:.1f} s, {waited} tasks may run nowhere"
            f" else and wait; {region} is started again"
        )
        self._until(f"{region} takes work again", lambda: self._is(region, RegionStatus.ACTIVE))
        self._seen.lost = Lost(
            region=region,
            detected_s=detected_s,
            recovered_s=recovered_s,
            waited=waited,
            since=since,
            until=self._clock.now(),
        )

    def _cut_off(self, region: str) -> None:
        """Cut a region off until its steps go on elsewhere; note who ended and began when."""
        ids = self._run(long_steps("cut-off", self._from(region), _STEPS, self._step_s))
        self._say(f"{region} is cut off from the graph; its processes live")
        at, links = self._clock.monotonic(), Links(self._local.stack)
        self._insist(f"{region} is cut off", lambda: links.cut(region))
        try:
            self._until("what it ran goes on elsewhere", lambda: self._go_on(ids, region))
        finally:
            self._insist("the cut is mended", lambda: links.heal(region))
        self._say(f"its steps go on elsewhere; {region} is no longer cut off")
        self._until(f"{region} takes work again", lambda: self._is(region, RegionStatus.ACTIVE))
        returned_s = self._clock.monotonic() - at
        records = [one for one in step_records(self._local.stack) if one.task in ids]
        ends = [r.boot for r in records if r.event is StepEvent.END and r.region == region]
        begins = [r.boot for r in records if r.event is StepEvent.START and r.region != region]
        if len(ends) < len(ids) or len(begins) < len(ids):
            raise _NotSeen(
                "in the steps log: each step that was cut off ends, and begins elsewhere"
            )
        self._seen.cut_off = CutOff(
            region=region,
            stopped_s=max(ends) - at,
            taken_over_s=min(begins) - at,
            returned_s=returned_s,
        )

    @property
    def _step_s(self) -> float:
        return _STEP_TTLS * self._lease.ttl_s

    def _from(self, region: str) -> list[str]:
        """Return all regions, `region` first."""
        return [region, *(name for name in self._local.stack.regions if name != region)]

    def _run(self, plan: Plan) -> list[TaskId]:
        """Submit a plan, and return those of its tasks that need no others, once they run."""
        key = self._operator.ids.new()
        run = self._insist(f"run {plan.name} is admitted", lambda: self._admitted(plan, key))
        self._seen.submitted.append((run, plan))
        later = {then for _, then in plan.edges}
        ids = [task_id(run.id, spec.name) for spec in plan.tasks if spec.name not in later]

        def run_there() -> bool:
            where = {(task.state, task.region) for task in self._tasks(ids)}
            if where != {(TaskState.RUNNING, plan.home_region)}:
                return False
            # Between the start and the step lies another question to the graph.
            return {one.task for one in step_records(self._local.stack)} >= set(ids)

        self._until(f"the steps of run {plan.name} run in {plan.home_region}", run_there)
        return ids

    def _admitted(self, plan: Plan, key: str) -> Run:
        with self._operator.submitter() as intake:
            return intake.admit(plan, key).run

    def _are_lost(self, ids: Sequence[TaskId]) -> bool:
        kinds = [{entry.kind for entry in task.history} for task in self._tasks(ids)]
        return all(EventKind.LOST in of_one for of_one in kinds)

    def _go_on(self, ids: Sequence[TaskId], region: str) -> bool:
        """Say whether each has ended, or runs outside of a region."""
        return all(
            task.state in FINAL or (task.state is TaskState.RUNNING and task.region != region)
            for task in self._tasks(ids)
        )

    def _tasks(self, ids: Sequence[TaskId]) -> list[Task]:
        return [task for task in self._operator.graph.tasks.read(ids) if task is not None]

    def _is(self, region: str, status: RegionStatus) -> bool:
        (found,) = self._operator.graph.regions.read([region])
        return found is not None and found.status is status

    def _is_empty(self, region: str) -> bool:
        """Say whether nothing is held in a region, and nothing is left that may run in another."""
        return not self._operator.graph.tasks.held(region) and not self._left_in(region).tasks

    def _left_in(self, region: str) -> Unheld:
        graph = self._operator.graph
        there = sites(graph.regions.all(), graph.instances.unfenced(), {})
        return graph.tasks.unheld(region, [one for one in there if one.region != region], 1)

    def _until(self, what: str, holds: Callable[[], bool]) -> None:
        """Look until it holds.

        Raises:
            _NotSeen: It does not, for too long; or the drill is stopped.
        """
        give_up_at = self._give_up_at()
        while not self._insist(what, holds):
            if self._clock.monotonic() > give_up_at:
                raise _NotSeen(what)
            self._stopping.wait(_LOOK_S)

    def _insist(self, what: str, act: Callable[[], T]) -> T:
        """Do something that may be repeated, until the store answers: somebody may have killed it.

        Raises:
            _NotSeen: It does not, for too long; or the drill is stopped.
        """
        give_up_at = self._give_up_at()
        while not self._stopping.is_set() and self._clock.monotonic() < give_up_at:
            try:
                return act()
            except (Unavailable, OutcomeUnknown):
                self._stopping.wait(_LOOK_S)
        raise _NotSeen(what)

    def _give_up_at(self) -> float:
        return self._clock.monotonic() + _PATIENCE_LEASES * self._lease.lease_s


class _NotSeen(Exception):
    """Something that should have been seen within ten leases was not."""
