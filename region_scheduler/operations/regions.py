"""Close a region, empty it, give it up, let it return; and say beforehand what that would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, Final

from region_scheduler.commit.gate import Change, Outcome, commit, commit_one
from region_scheduler.domain.ids import TaskId
from region_scheduler.domain.instance import Fence, FenceKind, Instance, Role, fenced
from region_scheduler.domain.region import (
    Region,
    cordoned,
    draining,
    evacuating,
    failed,
    returned,
)
from region_scheduler.domain.relocation import Site, destinations, sites
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import Task
from region_scheduler.domain.tenant import Level
from region_scheduler.domain.transitions import Stamp, request_stop
from region_scheduler.errors import InvalidInput, NotFound, OutcomeUnknown
from region_scheduler.identity.tenants import levels_of
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.operations.audit import Auditor
from region_scheduler.operations.forecast import TASKS_MAX, Forecast, Places, forecast
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock

EVACUATE: Final = "evacuate"
"""The reason of a stop request that sends a running task to another region."""
_PREVIEW_MAX: Final = 100_000


class Verb(StrEnum):
    """What can be done with a region."""

    CORDON = "cordon"
    DRAIN = "drain"
    EVACUATE = "evacuate"
    FAIL = "fail"
    RETURN = "return"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What somebody wants of a region.

    Attributes:
        why: For people; needed by all verbs but `return`.
        moves_per_s: Tasks that an evacuation moves a second, at least 0; 0 for no bound.
        is_stopping: Whether an evacuation stops what runs there, so that it goes elsewhere too.
    """

    verb: Verb
    why: str = ""
    moves_per_s: float = 0.0
    is_stopping: bool = False

    def after(self, region: Region, by: str) -> Region:
        """Return the region as it is then.

        Raises:
            IllegalMove: It is down, and must return first.
        """
        match self.verb:
            case Verb.CORDON:
                return cordoned(region, self.why, by)
            case Verb.DRAIN:
                return draining(region, self.why, by)
            case Verb.EVACUATE:
                return evacuating(region, self.moves_per_s, self.why, by)
            case Verb.FAIL:
                return failed(region, self.why, by)
            case Verb.RETURN:
                return returned(region, by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a wish would do, by the rules that the failover goes by, as things stand.

    Attributes:
        region: As it would be.
        moves: How many tasks would go to which region.
        waiting: How many would wait here, with nowhere to go or because nothing moves.
        in_flight: How many are claimed or running here now; they go on unless they are stopped.
        locks: The resources that those hold meanwhile.
        now: When all that goes on would be done as things are; None of too many tasks.
        then: The same after the wish.
    """

    region: Region
    moves: Mapping[str, int]
    waiting: int
    in_flight: int
    locks: tuple[str, ...]
    now: Forecast | None = None
    then: Forecast | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A region and what it has to do.

    Attributes:
        schedulers: Live serving processes with that role.
        workers: Live workers.
        slots: Attempts that they can run at once.
        load: Tasks that are ready, in doubt, claimed or running there.
    """

    region: Region
    schedulers: int
    workers: int
    slots: int
    load: int


def situations(graph: GraphStores) -> list[Situation]:
    """Return how every region stands, by name.

    Raises:
        Unavailable: No answer.
    """
    load = graph.tasks.load()
    members: dict[str, list[Instance]] = {}
    for one in graph.instances.unfenced():
        members.setdefault(one.region, []).append(one)
    return [
        Situation(
            region=region,
            schedulers=sum(Role.SCHEDULER in one.roles for one in members.get(region.id, ())),
            workers=sum(Role.WORKER in one.roles for one in members.get(region.id, ())),
            slots=sum(one.slots for one in members.get(region.id, ())),
            load=load.get(region.id, 0),
        )
        for region in graph.regions.all()
    ]


def find_region(graph: GraphStores, name: str) -> Region:
    """Return a region, as read at the leader.

    Raises:
        NotFound: There is no such region.
    """
    (found,) = graph.regions.read([name]) if name else [None]
    if found is None:
        raise NotFound(thing="region", id=name)
    return found


def outlook(
    graph: GraphStores, region: Region, wish: Wish, by: str, foretelling: Foretelling | None = None
) -> Outlook:
    """Return what `wish` would do now; writes nothing.

    Args:
        graph: The graph store.
        region: As read.
        wish: What is wanted of it.
        by: Who wants it.
        foretelling: Says when all would be done, before and after; None leaves that out.

    Raises:
        IllegalMove: The region cannot do so from where it is.
        InvalidInput: No reason, or a rate below 0.
        Unavailable: No answer.
    """
    _check(wish)
    after = wish.after(region, by)
    before = graph.regions.all()
    regions = [after if one.id == region.id else one for one in before]
    members = graph.instances.unfenced()
    open_sites = sites(regions, members, graph.tasks.load())
    elsewhere = [site for site in open_sites if site.region != region.id]
    held = graph.tasks.held(region.id)
    found = graph.tasks.unheld(region.id, elsewhere if after.is_leaving else [], _PREVIEW_MAX)
    stopped = [task for task in held if wish.is_stopping and task.state is TaskState.RUNNING]
    chosen = destinations([*found.tasks, *stopped], elsewhere)
    slots = graph.slots.held_by([task.id for task in held]) if held else []
    now = then = None
    if foretelling is not None:
        stopping = {task.id for task in stopped}
        now = foretelling.told(sites(before, members, {}), {}, frozenset())
        then = foretelling.told(sites(regions, members, {}), chosen.to, stopping)
    return Outlook(
        region=after,
        moves=dict(sorted(Counter(chosen.to.values()).items())),
        waiting=found.stuck + len(chosen.waiting),
        in_flight=len(held),
        locks=tuple(sorted({slot.resource for slot in slots})),
        now=now,
        then=then,
    )


class Foretelling:
    """Everything that goes on, read once, to say when it would be done under this or that.

    Args:
        graph: The graph store.
        level_default: Of tenants that have no document.
        clock: This machine's clock.

    Raises:
        Unavailable: No answer.
    """

    def __init__(self, graph: GraphStores, level_default: Level, clock: Clock) -> None:
        self._now = clock.now()
        self._tasks: list[Task] = []
        runs = graph.runs.unended()
        self._is_known = sum(run.task_count for run in runs) <= TASKS_MAX
        if self._is_known:
            self._tasks = [task for run in runs for task in graph.tasks.of_run(run.id)]
        pending = [task.id for task in self._tasks if task.state is TaskState.PENDING]
        self._before = graph.tasks.numbers_before(pending) if pending else {}
        tenants = sorted({task.tenant for task in self._tasks})
        self._levels = levels_of(graph.tenants, tenants, level_default)

    def told(
        self, open_sites: Sequence[Site], to: Mapping[TaskId, str], stopping: Collection[TaskId]
    ) -> Forecast | None:
        """Return when all would be done; None of too many tasks.

        Args:
            open_sites: The regions that promote.
            to: Tasks that are moved, with the region that each goes to.
            stopping: Running tasks that are stopped first.
        """
        if not self._is_known:
            return None
        places = Places({site.region: site.slots for site in open_sites}, self._levels)
        tasks = [
            replace(
                task,
                region=to.get(task.id, task.region),
                state=TaskState.READY if task.id in stopping else task.state,
            )
            for task in self._tasks
        ]
        return forecast(tasks, self._before, places, self._now)


def carry_out(
    graph: GraphStores, settler: Settler, auditor: Auditor, clock: Clock, name: str, wish: Wish
) -> Region:
    """Do with a region what is wished; schedulers and the failover see it at their next look.

    `fail` also fences the region's processes: what still runs there stops at its deadline, and
    only then are its tasks taken.

    Raises:
        IllegalMove: It cannot do so from where it is; nothing was written.
        InvalidInput: No reason, or a rate below 0; nothing was written.
        NotFound: There is no such region.
        Unavailable, OutcomeUnknown: Part of it may be done; call again.
    """
    _check(wish)
    region = find_region(graph, name)
    wish.after(region, auditor.actor)
    detail = f"{wish.moves_per_s:g} tasks a second" if wish.moves_per_s else ""
    auditor.record(f"regions.{wish.verb}", name, detail, wish.why)
    change = Change(name, partial(_as_wished, wish=wish, by=auditor.actor), known=region)
    after = commit_one(graph.regions, change)
    if wish.verb is Verb.FAIL:
        _fence(graph, clock, name, auditor.actor)
    if wish.is_stopping:
        _stop(graph, Stamp(auditor.actor, clock.now()), name)
    settler.wake(one.id for one in graph.regions.all())
    return after


def _check(wish: Wish) -> None:
    if wish.verb is not Verb.RETURN and not wish.why.strip():
        raise InvalidInput(field="--reason", value=wish.why, expected="say why, for those who wait")
    if not 0 <= wish.moves_per_s < float("inf"):
        expected = "tasks a second, at least 0; 0 for no bound"
        raise InvalidInput(field="--rate", value=str(wish.moves_per_s), expected=expected)


def _as_wished(region: Region, wish: Wish, by: str) -> Region:
    return wish.after(region, by)


def _fence(graph: GraphStores, clock: Clock, region: str, by: str) -> None:
    fence = Fence(kind=FenceKind.UNRESPONSIVE, by=by, at=clock.now())
    there = [one for one in graph.instances.unfenced() if one.region == region]
    outcomes = commit(
        graph.instances,
        [Change(one.id, partial(_fenced, fence=fence), known=one) for one in there],
    )
    _all_written(outcomes, "fencing of the region's processes")


def _fenced(instance: Instance, fence: Fence) -> Instance:
    """Return the instance fenced, whatever its beat is now."""
    return fenced(instance, instance.beat, fence)


def _stop(graph: GraphStores, stamp: Stamp, region: str) -> None:
    running = [task for task in graph.tasks.held(region) if task.state is TaskState.RUNNING]
    stop = partial(request_stop, reason=EVACUATE, stamp=stamp)
    outcomes = commit(graph.tasks, [Change(task.id, stop, known=task) for task in running])
    _all_written(outcomes, "stopping what runs in the region")


def _all_written(outcomes: Sequence[Outcome[Any]], what: str) -> None:
    if any(not outcome.is_ours for outcome in outcomes):
        raise OutcomeUnknown(dependency="graph store", detail=what)
