"""What a region shows of all regions, where it comes from, and how old it is."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Final

from region_scheduler.domain.content import content_digest
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RUN_ENDED
from region_scheduler.errors import NotFound, NotYet, RegionSchedulerError, Unavailable
from region_scheduler.operations.regions import situations
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock
from region_scheduler.regions.replica import ReplicaAge

Content = Mapping[str, Any]
Question = Callable[[GraphStores], Content]

_KEPT_MAX: Final = 500
_RUNS_MAX: Final = 100


class Source(StrEnum):
    """Where a view comes from."""

    FOLLOWER = "follower"
    LEADER = "leader"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class View:
    """Something as it was seen.

    Attributes:
        age_s: How old it is at most, seconds.
        is_stale: It is older than a view should be.
        version: Names what is seen: equal contents have equal versions.
    """

    content: Content
    source: Source
    age_s: float
    is_stale: bool
    version: str


class Views:
    """Reads for people and other systems; nothing may be decided by them.

    They come from the local follower while that is current, else from the leader; where that does
    not answer, from the follower all the same, and last from what was seen before.

    Args:
        follower: The graph store, every read at the local follower.
        leader: The graph store, every read at the leader.
        age: Tells how old the follower's view is.
        clock: This machine's clock.
    """

    def __init__(
        self,
        follower: GraphStores,
        leader: GraphStores,
        age: Callable[[], ReplicaAge],
        clock: Clock,
    ) -> None:
        self._follower = follower
        self._leader = leader
        self._age = age
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, View]] = OrderedDict()

    def regions(self, seen: str = "") -> View:
        """Return how every region stands. `seen` and errors as for `run`."""
        return self._view("regions", _regions, seen)

    def runs(self, limit: int = _RUNS_MAX, seen: str = "") -> View:
        """Return the newest runs. `seen` and errors as for `run`."""
        return self._view(f"runs {limit}", partial(_runs, limit=limit), seen)

    def run(self, run_id: str, seen: str = "") -> View:
        """Return a run and its tasks.

        Args:
            run_id: Its id.
            seen: A version that the caller has seen: the answer is that one or a newer one.

        Raises:
            NotFound: There is no such run, as far as this view goes.
            NotYet: A version at least as new cannot be shown now.
            Unavailable: Nothing can be shown.
        """
        return self._view(f"run {run_id}", partial(_run, run_id=run_id), seen)

    def keep(self) -> None:
        """See what is asked for most, to have it when the store does not answer.

        Raises:
            Unavailable: Not all was seen.
        """
        self.regions()
        for row in self.runs().content["items"]:
            if row["state"] not in RUN_ENDED:
                self.run(row["run"])

    def _view(self, name: str, ask: Question, seen: str) -> View:
        if not seen:
            return self._current(name, ask)
        view = _unless(partial(self._at_follower, name, ask), NotFound, Unavailable)
        if view is not None and view.version == seen:
            return view
        # Of two views that differ nothing says which is newer; the leader has the newest.
        try:
            return self._at_leader(name, ask)
        except Unavailable:
            raise NotYet(thing=name, seen=seen, age_s=self._age().seconds) from None

    def _current(self, name: str, ask: Question) -> View:
        tries = [partial(self._at_follower, name, ask)]
        if self._age().is_stale:
            tries.insert(0, partial(self._at_leader, name, ask))
        for show in tries:
            view = _unless(show, Unavailable)
            if view is not None:
                return view
        return self._snapshot(name)

    def _at_follower(self, name: str, ask: Question) -> View:
        age = self._age()
        return self._keep(name, ask(self._follower), Source.FOLLOWER, age)

    def _at_leader(self, name: str, ask: Question) -> View:
        return self._keep(name, ask(self._leader), Source.LEADER, ReplicaAge(0.0, False))

    def _keep(self, name: str, content: Content, source: Source, age: ReplicaAge) -> View:
        view = View(content, source, age.seconds, age.is_stale, content_digest(content))
        self._kept[name] = (self._clock.monotonic() - age.seconds, view)
        self._kept.move_to_end(name)
        while len(self._kept) > _KEPT_MAX:
            self._kept.popitem(last=False)
        return view

    def _snapshot(self, name: str) -> View:
        found = self._kept.get(name)
        if found is None:
            detail = f"and {name} was not seen before"
            raise Unavailable(dependency="graph store", detail=detail)
        at, view = found
        age_s = self._clock.monotonic() - at
        return View(view.content, Source.SNAPSHOT, age_s, True, view.version)


def _unless(show: Callable[[], View], *errors: type[RegionSchedulerError]) -> View | None:
    try:
        return show()
    except errors:
        return None


def _regions(graph: GraphStores) -> Content:
    return {
        "items": [
            {
                "region": one.region.id,
                "status": one.region.status.value,
                "epoch": one.region.epoch,
                "reason": one.region.reason,
                "schedulers": one.schedulers,
                "workers": one.workers,
                "slots": one.slots,
                "load": one.load,
            }
            for one in situations(graph)
        ]
    }


def _runs(graph: GraphStores, limit: int) -> Content:
    return {"items": [_row(run) for run in graph.runs.recent(limit)]}


def _run(graph: GraphStores, run_id: str) -> Content:
    (found,) = graph.runs.read([run_id])
    if found is None:
        raise NotFound(thing="run", id=run_id)
    tasks = graph.tasks.of_run(found.id)
    return {
        **_row(found),
        "states": dict(sorted(Counter(task.state.value for task in tasks).items())),
        "tasks": [
            {
                "name": task.spec.name,
                "state": task.state.value,
                "region": task.region,
                "attempt": task.attempt,
                "reason": task.reason,
                "seq": task.seq,
            }
            for task in tasks
        ],
    }


def _row(run: Run) -> dict[str, Any]:
    return {
        "run": run.id,
        "name": run.name,
        "tenant": run.tenant,
        "state": run.state.value,
        "home_region": run.home_region,
        "task_count": run.task_count,
        "round": run.round,
        "reason": run.reason,
    }
