"""A world of several regions in one process, driven by ticks on a virtual clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

from region_scheduler.assembly.in_process import in_process_graph, in_process_ports
from region_scheduler.assembly.instrumented import Hook
from region_scheduler.assembly.services import (
    Ports,
    Services,
    lease_keeper,
    region_services,
    settler,
)
from region_scheduler.domain.ids import Incarnation, ReceiptId, TaskId
from region_scheduler.domain.instance import Instance, Role
from region_scheduler.domain.lease import LOCAL_TIMINGS, LeaseTimings
from region_scheduler.domain.region import Region
from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.lifecycle.residence import Residence
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.ports.blobs import Blobs
from region_scheduler.scheduling.settings import SchedulerSettings
from region_scheduler.simulation.broker import SimulatedBroker
from region_scheduler.simulation.steps import EffectLog, SimulatedRunner
from region_scheduler.simulation.storage import ReachedBlobs
from region_scheduler.simulation.time import SeededChance, SetClock, VirtualClock
from region_scheduler.verify.report import Report
from region_scheduler.verify.verifier import Source, verify
from region_scheduler.worker.attempt import AttemptHandler, WorkerIdentity, WorkerPaths

T = TypeVar("T")

POOL: Final = "default"


@dataclass(slots=True)
class Receipts:
    """The receipts of a worker whose attempts run in this process."""

    held: set[ReceiptId] = field(default_factory=set)

    def enter(self, receipt_id: ReceiptId) -> None:
        """Answer for a receipt."""
        self.held.add(receipt_id)

    def leave(self, receipt_id: ReceiptId) -> None:
        """Answer for it no longer."""
        self.held.discard(receipt_id)

    def live(self) -> tuple[ReceiptId, ...]:
        """Return what the beat lists."""
        return tuple(sorted(self.held))


@dataclass(slots=True)
class SimulatedWorker:
    """A worker whose attempts run when it is told to work.

    Attributes:
        refused: Whose completions came too late.
    """

    keeper: LeaseKeeper
    handler: AttemptHandler
    broker: SimulatedBroker
    receipts: Receipts
    ending: threading.Event
    pools: tuple[str, ...] = (POOL,)
    refused: list[TaskId] = field(default_factory=list)

    def work(self) -> bool:
        """Handle the next message; say whether there was one."""
        taken = (self.broker.take(pool) for pool in self.pools)
        message = next((found for found in taken if found is not None), None)
        if message is None:
            return False
        self.handler.handle(message)
        self.broker.acknowledge(message)
        return True


@dataclass(slots=True)
class SimulatedRegion:
    """One region: its ports, roles, broker and workers."""

    name: str
    ports: Ports
    services: Services
    broker: SimulatedBroker
    workers: list[SimulatedWorker] = field(default_factory=list)


class World:
    """Regions around one engine in memory.

    Args:
        directory: For the relational stores and steps' files.
        regions: Names of the regions.
        seed: Decides ids and jitter.
        timings: Lease arithmetic.
        slots: Attempts that each worker can run at once.
        hook: Sees every port call of the roles; see `assembly.instrumented`.

    Attributes:
        store_ahead_s: How far the store's own clock has jumped ahead; may only grow.
    """

    def __init__(
        self,
        directory: Path,
        regions: Sequence[str] = ("eu-west", "us-east", "ap-south"),
        seed: int = 1,
        timings: LeaseTimings = LOCAL_TIMINGS,
        slots: int = 4,
        hook: Hook | None = None,
    ) -> None:
        self.clock = VirtualClock()
        self.store_ahead_s = 0.0
        self.chance = SeededChance(seed)
        self.timings = timings
        self.log = EffectLog(self.clock.monotonic)
        self.woken: set[str] = set()
        self.is_waking = True
        self.lost: set[str] = set()
        self._directory = directory
        self._hook = hook
        self.slots = slots
        self.engine = Engine(is_cluster=True, regions=regions, clock=self._store_s, seed=seed)
        self.clocks = {name: SetClock(self.clock) for name in regions}
        self.regions: Mapping[str, SimulatedRegion] = {name: self._region(name) for name in regions}
        for region in self.regions.values():
            region.workers.append(self.worker(region))

    def worker(self, region: SimulatedRegion, pools: Sequence[str] = (POOL,)) -> SimulatedWorker:
        """Return a further worker of `region`, registered, not yet listed there."""
        receipts, ending = Receipts(), threading.Event()
        refused: list[TaskId] = []
        capacity = dict.fromkeys(pools, self.slots)
        instance = self._instance(region.name, "worker", (Role.WORKER,), capacity)
        runner = self.runner()
        keeper = lease_keeper(
            region.ports, instance, self.timings, receipts.live, runner.lease_moved
        )
        keeper.register()
        paths = WorkerPaths(
            work_dir=self._directory / "work",
            state_dir=self._directory / "state",
            log_dir=self._directory / "log",
            steps_log=self._directory / "steps.jsonl",
            lease_path=self._directory / "lease",
        )
        handler = AttemptHandler(
            WorkerIdentity(instance.id, region.name),
            region.ports.graph,
            settler(region.ports, instance.id),
            dict.fromkeys(_RUNNERS, runner),
            receipts,
            lambda: keeper.deadline,
            self.timings,
            self.clock,
            self.chance,
            paths,
            self.pause,
            ending.is_set,
            lambda task, _: refused.append(task.id),
            region.ports.residence,
        )
        served = tuple(pools)
        return SimulatedWorker(keeper, handler, region.broker, receipts, ending, served, refused)

    def runner(self) -> SimulatedRunner:
        """Return what runs the steps of a worker."""
        return self.log

    def pause(self, seconds: float) -> None:
        """Let a worker wait between two tries of a call: here everybody waits."""
        self.clock.advance(seconds)

    def perform(
        self, region: SimulatedRegion, act: Callable[[], T], worker: SimulatedWorker | None = None
    ) -> T | None:
        """Let a process of `region` act: `worker`, or else the serving one.

        Here every failure is a failure of the test; a world with faults handles them.
        """
        del region, worker
        return act()

    def restart(self, region: SimulatedRegion) -> None:
        """Replace the serving process by its next incarnation; the old one is seen no more."""
        region.services = self._services(region.name, region.ports)

    def replace_worker(self, region: SimulatedRegion, dead: SimulatedWorker) -> SimulatedWorker:
        """Replace a worker that died; what it had not acknowledged is delivered again."""
        worker = self.worker(region, dead.pools)
        region.workers[region.workers.index(dead)] = worker
        region.broker.return_unacknowledged()
        return worker

    def lose_region(self, name: str) -> None:
        """Let every process of a region die, and all that its broker held be gone."""
        self.lost.add(name)
        self.regions[name].broker.lose_all()

    def regain_region(self, name: str) -> None:
        """Start the processes of a lost region anew: other incarnations, the same files."""
        region = self.regions[name]
        self.lost.discard(name)
        self.restart(region)
        for worker in list(region.workers):
            self.replace_worker(region, worker)

    @property
    def living(self) -> list[SimulatedRegion]:
        """The regions that are not lost."""
        return [region for name, region in self.regions.items() if name not in self.lost]

    def lose_stores(self) -> None:
        """Delete the relational store of every region; processes still have the files open."""
        for file in self._directory.glob("*.db*"):
            file.unlink()

    def renew(self) -> None:
        """Let every process beat."""
        for region in self.living:
            self.perform(region, region.services.keeper.renew)
        self.renew_workers()

    def renew_workers(self) -> None:
        """Let every worker beat."""
        for region in self.living:
            for worker in list(region.workers):
                self.perform(region, worker.keeper.renew, worker)

    def fast_path(self) -> int:
        """Run woken schedulers and workers until nothing moves; return the attempts handled."""
        handled = 0
        while True:
            woken, self.woken = sorted(self.woken - self.lost), set()
            for name in woken:
                region = self.regions[name]
                self.perform(region, region.services.promote)
            done = sum(self._work(region) for region in self.living)
            handled += done
            if not done and not self.woken:
                return handled

    def slow_path(self) -> None:
        """Run every region's slow loops once."""
        for region in self.living:
            self.perform(region, region.services.timekeeper.tick)
            self.perform(region, region.services.cluster_manager.tick)
            self.perform(region, region.services.reconciler.tick)
            self.perform(region, region.services.mender.tick)
            self.perform(region, region.services.resource_manager.tick)
            self.perform(region, region.services.failover.tick)
            self.perform(region, region.services.promote)

    def pass_time(self, seconds: float) -> None:
        """Let time pass in steps of a renewal, with all loops running."""
        step = self.timings.renew_every_s / 2
        for _ in range(max(1, round(seconds / step))):
            self.clock.advance(step)
            self.renew()
            self.slow_path()
            self.fast_path()

    def report(self, is_at_rest: bool = False) -> Report:
        """Return what the public checker says of all that has happened.

        Args:
            is_at_rest: Whatever was to happen has happened.
        """
        graph = in_process_graph(self.engine, next(iter(self.regions)))
        source = Source(history=graph.history, steps=self.log.facts, is_at_rest=is_at_rest)
        return verify(source)

    def _work(self, region: SimulatedRegion) -> int:
        """Let the workers of `region` handle what waits; return how many messages."""
        handled = 0
        while any(self.perform(region, worker.work, worker) for worker in list(region.workers)):
            handled += 1
        return handled

    def _store_s(self) -> float:
        return self.clock.monotonic() + self.store_ahead_s

    def _region(self, name: str) -> SimulatedRegion:
        broker = SimulatedBroker(name, self._wake)
        ports = in_process_ports(
            self.engine,
            name,
            self._directory,
            broker,
            broker,
            self.clocks[name],
            self.chance,
            self.chance,
        )
        ports = replace(ports, residence=self._residence(name))
        if self._hook is not None:
            ports = ports.through(self._hook)
        ports.graph.regions.insert([Region(id=name)])
        return SimulatedRegion(name, ports, self._services(name, ports), broker)

    def resident_dir(self, region: str) -> Path:
        """Return where a region's own resident data lies."""
        return self._directory / "resident" / region

    def _residence(self, name: str) -> Residence:
        stores: dict[str, Blobs] = {
            region: ReachedBlobs(region, self.resident_dir(region), self.lost)
            for region in self.clocks
        }
        return Residence(name, stores.pop(name), stores, self.chance)

    def _services(self, region: str, ports: Ports) -> Services:
        instance = self._instance(region, "serve", tuple(Role), {})
        keeper = lease_keeper(ports, instance, self.timings)
        keeper.register()
        return region_services(ports, SchedulerSettings(region=region), self.timings, keeper)

    def _instance(
        self, region: str, kind: str, roles: tuple[Role, ...], capacity: Mapping[str, int]
    ) -> Instance:
        return Instance(
            id=Incarnation(f"{kind}.{region}:{self.chance.new()}"),
            roles=roles,
            region=region,
            ttl_s=self.timings.ttl_s,
            capacity=capacity,
            stamped_at=self.clock.now(),
        )

    def _wake(self, region: str) -> None:
        if self.is_waking:
            self.woken.add(region)
            if region in self.regions:
                self.regions[region].services.scheduler.notice()


_RUNNERS = (
    "simulate",
    "terraform",
    "command",
    "verify",
    "check",
    "approval",
    "external-wait",
)
