"""Close a region, empty it, give it up, let it return; and say beforehand what that would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Final

from region_scheduler.commit.gate import Change, Outcome, commit, commit_one
from region_scheduler.domain.instance import Fence, FenceKind, Instance, Role, fenced
from region_scheduler.domain.region import (
    Region,
    cordoned,
    draining,
    evacuating,
    failed,
    returned,
)
from region_scheduler.domain.relocation import destinations, sites
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.transitions import Stamp, request_stop
from region_scheduler.errors import InvalidInput, NotFound, OutcomeUnknown
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.operations.audit import Auditor
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
    """

    region: Region
    moves: Mapping[str, int]
    waiting: int
    in_flight: int
    locks: tuple[str, ...]


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


def outlook(graph: GraphStores, region: Region, wish: Wish, by: str) -> Outlook:
    """Return what `wish` would do now; writes nothing.

    Raises:
        IllegalMove: The region cannot do so from where it is.
        InvalidInput: No reason, or a rate below 0.
        Unavailable: No answer.
    """
    _check(wish)
    after = wish.after(region, by)
    regions = [after if one.id == region.id else one for one in graph.regions.all()]
    open_sites = sites(regions, graph.instances.unfenced(), graph.tasks.load())
    elsewhere = [site for site in open_sites if site.region != region.id]
    held = graph.tasks.held(region.id)
    found = graph.tasks.unheld(region.id, elsewhere if after.is_leaving else [], _PREVIEW_MAX)
    stopped = [task for task in held if wish.is_stopping and task.state is TaskState.RUNNING]
    chosen = destinations([*found.tasks, *stopped], elsewhere)
    slots = graph.slots.held_by([task.id for task in held]) if held else []
    return Outlook(
        region=after,
        moves=dict(sorted(Counter(chosen.to.values()).items())),
        waiting=found.stuck + len(chosen.waiting),
        in_flight=len(held),
        locks=tuple(sorted({slot.resource for slot in slots})),
    )


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
