"""Trials: each a region with a database of its own, a victim, a second scheduler and a worker.

The second scheduler is an instance with a lease of its own; those of all trials live in this
process, and so do the workers. A worker dies, so to say, after each completion: what follows from
it (unlocking, freeing slots, ending the run) is left to the schedulers.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import redis

from region_scheduler.admission.intake import Intake
from region_scheduler.assembly.member import Membership, new_instance
from region_scheduler.assembly.production import open_ports
from region_scheduler.assembly.services import Services, intake, lease_keeper, settler
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.config.load import Values, load
from region_scheduler.domain.ids import ClaimId, Incarnation
from region_scheduler.domain.instance import Instance, Role
from region_scheduler.domain.lease import LOCAL_TIMINGS
from region_scheduler.domain.region import Region
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RUN_ENDED
from region_scheduler.domain.task import LockNeed, Task
from region_scheduler.domain.transitions import claim
from region_scheduler.drivers.celery.message import decode
from region_scheduler.errors import RegionSchedulerError, Unavailable
from region_scheduler.ports.queue import queue_name
from region_scheduler.resources.sweep import Swept
from region_scheduler.runtime.system import SystemClock
from region_scheduler.scheduling.reconcile import Reconciled
from region_scheduler.scheduling.scheduler import Promoted
from region_scheduler.simulation.steps import EffectLog
from region_scheduler.simulation.world import Receipts
from region_scheduler.worker.attempt import AttemptHandler, WorkerIdentity, WorkerPaths
from tests.integration.scheduling.victim import Moment, Order, launch, services_on
from tests.simulation.scenarios import a_plan, spec

KEY = "a key of these trials only"
POOL = "default"
LOCK = "acme/lock"
_MEND_EVERY = 5
_PAUSE_S = 0.05


@dataclass
class Place:
    """Where trials are held: an engine and a Valkey that they share."""

    engine_url: str
    broker_url: str
    folder: Path


@dataclass
class Trial:
    """One region, and what became of its run.

    Attributes:
        settings: Of all its processes.
        began_at: When the victim was seen dead or stopped.
        went_on_at: When the second scheduler had first moved anything of the run.
        ended_at: When the run had ended.
    """

    place: Place
    name: str
    closing: ExitStack
    log: EffectLog = field(default_factory=partial(EffectLog, SystemClock().monotonic))
    memberships: list[Membership] = field(default_factory=list)
    second: Services | None = None
    began_at: float = 0.0
    went_on_at: float = 0.0
    ended_at: float = 0.0
    rounds: int = 0

    def __post_init__(self) -> None:
        """Open its stores, and admit its run."""
        folder = self.place.folder / self.name
        self.settings: Values = {
            "region": self.name,
            "signing_key": KEY,
            "arango": {"url": self.place.engine_url, "database": self.name, "is_embedded": True},
            "relational": {"url": f"sqlite:///{folder}/region.db"},
            "broker": {"url": self.place.broker_url},
            "lease": asdict(LOCAL_TIMINGS),
        }
        self.ports = open_ports(load(self.settings).settings, self.closing)
        self.ports.graph.regions.insert([Region(id=self.name)])
        self._handler = self._worker(folder)
        self.run = self._admitted().run
        self._left_claimed("a")

    @property
    def graph(self) -> Any:
        """Its graph store."""
        return self.ports.graph

    def launch(self, moment: Moment) -> None:
        """Start the victim."""
        self.process, self.told = launch(Order(self.settings, self.run.id, moment))

    @cached_property
    def victim(self) -> Incarnation:
        """The first scheduler, once it has a lease."""
        return Incarnation(self.told.recv())

    @property
    def successor(self) -> Incarnation:
        """The second scheduler."""
        assert self.second is not None
        return self.second.keeper.instance.id

    def is_taken_over(self) -> bool:
        """Say whether the second scheduler has seen the first one's lease run out, and leads."""
        (region,) = self.ports.graph.regions.read([self.name])
        (victim,) = self.ports.graph.instances.read([self.victim])
        assert region is not None
        assert victim is not None
        fence = victim.fenced
        is_fenced = fence is not None and (fence.kind, fence.by) == ("expired", self.successor)
        return is_fenced and region.leader == self.successor

    def go_on(self) -> None:
        """Let a second scheduler of the region begin, the first being dead or stopped."""
        self.began_at = time.monotonic()
        self.second = services_on(self.ports, self.settings, self.memberships)

    def tick(self) -> None:
        """Let the second scheduler do what each of its loops does."""
        if self.second is None:
            return
        second = self.second
        acts: list[Callable[[], object]] = [
            second.resource_manager.tick,
            second.scheduler.tick,
            second.reconciler.tick,
        ]
        if self.rounds % _MEND_EVERY == 0:
            acts.insert(0, second.mender.tick)
        self.rounds += 1
        for act in acts:
            with suppress(RegionSchedulerError):
                if _moves(act()) and not self.went_on_at:
                    self.went_on_at = time.monotonic()
        if not self.ended_at and self.now().state in RUN_ENDED:
            self.ended_at = time.monotonic()

    def work(self, broker: redis.Redis) -> None:
        """Let the worker handle what waits in its queue."""
        while raw := broker.rpop(queue_name(self.name, POOL)):
            assert isinstance(raw, bytes)
            (text,), _, _ = json.loads(base64.b64decode(json.loads(raw)["body"]))
            with suppress(Unavailable):  # see `_worker`
                self._handler.handle(decode(text.encode(), KEY.encode()))

    def now(self) -> Run:
        """Return its run."""
        (run,) = self.ports.graph.runs.read([self.run.id])
        assert run is not None
        return run

    def tasks(self) -> list[Task]:
        """Return its tasks."""
        return self.ports.graph.tasks.of_run(self.run.id)

    def revisions(self) -> dict[str, str]:
        """Return the revision of all that decides: tasks, run, region."""
        (region,) = self.ports.graph.regions.read([self.name])
        assert region is not None
        found = {task.id: task.rev for task in self.tasks()}
        return {**found, self.run.id: self.now().rev, self.name: region.rev}

    def close(self) -> None:
        """Give up the leases."""
        for membership in self.memberships:
            membership.stop()
        for membership in self.memberships:
            membership.join(5.0)

    def _admitted(self) -> Any:
        """Admit two tasks that want one lock, two that want none, and one after all of them."""
        here = (self.name,)
        plan = a_plan(
            [
                *(spec(n, self.name, allowed_regions=here) for n in "abz"),
                *(
                    spec(n, self.name, allowed_regions=here, locks=(LockNeed(LOCK, capacity=1),))
                    for n in "xy"
                ),
            ],
            "a>z", "b>z", "x>z", "y>z",
            home_region=self.name,
            regions=here,
        )  # fmt: skip
        submits: Intake = intake(self.ports, self._instance("cli", Role.SUBMITTER))
        return submits.admit(plan, "the run")

    def _left_claimed(self, name: str) -> None:
        """Leave a task with a scheduler that claimed it and gave up its lease."""
        instance = self._instance("before", Role.SCHEDULER)
        keeper = lease_keeper(self.ports, instance, LOCAL_TIMINGS)
        keeper.register()
        task = self.graph.tasks.named(self.run.id, name)
        taken = partial(
            claim,
            claim_id=ClaimId(self.ports.ids.new()),
            scheduler=instance.id,
            region=self.name,
            at=self.ports.clock.now(),
        )
        commit_one(self.graph.tasks, Change(task.id, taken, known=task))
        keeper.surrender()

    def _worker(self, folder: Path) -> AttemptHandler:
        """Return a worker's handler that settles nothing."""
        receipts = Receipts()
        instance = self._instance("worker", Role.WORKER, {POOL: 8})
        keeper = lease_keeper(self.ports, instance, LOCAL_TIMINGS, receipts.live)
        self.memberships.append(Membership(keeper))
        self.memberships[-1].start()
        log_dir, state_dir, work_dir = (folder / name for name in ("log", "state", "work"))
        return AttemptHandler(
            WorkerIdentity(instance.id, self.name),
            self.ports.graph,
            settler(self.ports.through(_lost_after_completion), instance.id),
            {"simulate": self.log},
            receipts,
            lambda: keeper.deadline,
            LOCAL_TIMINGS,
            self.ports.clock,
            self.ports.ids,
            WorkerPaths(work_dir, state_dir, log_dir, log_dir / "steps.jsonl", folder / "lease"),
            time.sleep,
        )

    def _instance(self, kind: str, role: Role, capacity: dict[str, int] | None = None) -> Instance:
        loaded, ports = load(self.settings).settings, self.ports
        return new_instance(loaded, kind, [role], ports.clock, ports.ids, capacity=capacity)


def _moves(did: object) -> bool:
    """Say whether a round of a loop moved a task or ended the run."""
    match did:
        case Swept(moved=moved):
            return bool(moved)
        case Promoted(dispatched=dispatched):
            return bool(dispatched)
        case Reconciled(unlocked=unlocked, ended=ended):
            return bool(unlocked or ended)
    return False


def _lost_after_completion(point: str, call: partial[Any]) -> Any:
    if point == "tasks.unlocked_by":
        raise Unavailable(dependency=point, detail="this worker settles nothing")
    return call()


@contextmanager
def all_going_on(trials: Iterable[Trial], broker_url: str) -> Iterator[None]:
    """Let the workers of all trials, and second schedulers once there are, go on in threads."""
    ending = threading.Event()
    mine = list(trials)
    broker = redis.Redis.from_url(broker_url)

    def work() -> None:
        while not ending.wait(_PAUSE_S):
            for trial in mine:
                trial.work(broker)

    def schedule() -> None:
        while not ending.wait(_PAUSE_S):
            for trial in mine:
                trial.tick()

    threads = [threading.Thread(target=act, daemon=True) for act in (work, schedule)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ending.set()
        for thread in threads:
            thread.join(30)
        broker.close()
        for trial in mine:
            trial.close()
