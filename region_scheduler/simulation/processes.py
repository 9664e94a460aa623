"""The processes of a region as actors, with the loops that `serve` and `worker` run.

A process dies with all its actors, and its next incarnation starts a little later. A pool child
that dies takes only its own attempt with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from region_scheduler.errors import Fenced, LostRace, OutcomeUnknown, Unavailable
from region_scheduler.simulation.acted import ActedWorld
from region_scheduler.simulation.hub import Actor
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import SimulatedRegion, SimulatedWorker

_NO_ANSWER: Final = (Unavailable, OutcomeUnknown, LostRace)
_RETRY_S: Final = 0.5
_IDLE_S: Final = 0.3
_RESTART_S: Final = 3.0


class Process:
    """Actors that live and die together.

    Args:
        world: Gives them turns.
        region: Where it runs.
        name: For the trace.
    """

    def __init__(self, world: ActedWorld, region: SimulatedRegion, name: str) -> None:
        self.world = world
        self.region = region
        self.name = name
        self.actors: list[Actor] = []
        self._is_first = True

    def start(self, after_s: float = 0.0) -> None:
        """Begin its next incarnation, after so many seconds."""
        self.actors = []
        self._spawn("start", self._begin, after_s)

    def die(self) -> None:
        """End all of it where it stands; it comes again."""
        actors, self.actors = self.actors, []
        for actor in actors:
            if not actor.is_over:
                self.world.hub.kill(actor)
        self.start(self.world.chance.uniform(0.5, _RESTART_S))

    def freeze(self, seconds: float) -> None:
        """Let it stand still."""
        until = self.world.clock.seconds + seconds
        for actor in self.actors:
            actor.frozen_until = max(actor.frozen_until, until)

    def thaw(self) -> None:
        """Let it go on."""
        for actor in self.actors:
            if actor.frozen_until > self.world.clock.seconds:
                actor.frozen_until = 0.0
                self.world.hub.wake(actor)

    def _begin(self) -> None:
        while not self._is_first:
            try:
                self._incarnate()
                break
            except _NO_ANSWER:
                self.world.hub.sleep(_RETRY_S)
        self._is_first = False
        for name, act in self._loops():
            self._spawn(name, partial(self._loop, act))

    def _incarnate(self) -> None:
        raise NotImplementedError

    def _loops(self) -> Iterator[tuple[str, Callable[[], float]]]:
        raise NotImplementedError

    def _spawn(self, name: str, act: Callable[[], None], after_s: float = 0.0) -> Actor:
        actors = self.actors

        def life() -> None:
            try:
                act()
            except (Crash, Fenced):
                if self.actors is actors:  # nobody has ended it before
                    self.die()
                raise Crash(name) from None

        actor = self.world.hub.spawn(f"{self.name}.{name}", life, after_s)
        actors.append(actor)
        return actor

    def _loop(self, act: Callable[[], float]) -> None:
        while True:
            try:
                pause_s = act()
            except _NO_ANSWER:
                pause_s = _RETRY_S
            self.world.hub.sleep(pause_s)


class Serving(Process):
    """What `serve` runs."""

    def wake(self) -> None:
        """Let its scheduler look at once."""
        for actor in self.actors:
            if actor.name.endswith(".scheduler") and not actor.frozen_until:
                self.world.hub.wake(actor)

    def _incarnate(self) -> None:
        self.world.restart(self.region)

    def _loops(self) -> Iterator[tuple[str, Callable[[], float]]]:
        services, timings = self.region.services, self.world.timings
        yield "lease", services.keeper.renew
        yield "scheduler", lambda: services.promote().wait_s
        for name, tick, every_s in (
            ("reconciler", services.reconciler.tick, timings.reconcile_every_s),
            ("mender", services.mender.tick, timings.reconcile_every_s),
            ("resources", services.resource_manager.tick, timings.watch_every_s),
            ("admissions", services.cluster_manager.tick, timings.watch_every_s),
            ("failover", services.failover.tick, timings.watch_every_s),
        ):
            yield name, partial(_every, tick, every_s)


class Working(Process):
    """What `worker` runs: a master that keeps the lease, and children that run attempts."""

    def __init__(
        self, world: ActedWorld, region: SimulatedRegion, name: str, worker: SimulatedWorker
    ) -> None:
        super().__init__(world, region, name)
        self.worker = worker

    @property
    def children(self) -> list[Actor]:
        """Its children that live."""
        return [one for one in self.actors if ".child" in one.name and not one.is_over]

    def _incarnate(self) -> None:
        self.worker = self.world.replace_worker(self.region, self.worker)

    def _loops(self) -> Iterator[tuple[str, Callable[[], float]]]:
        yield "lease", self.worker.keeper.renew
        actors = self.actors
        for number in range(self.world.slots):
            self._child(actors, f"child{number}", 0.0)

    def _child(self, actors: list[Actor], name: str, after_s: float) -> None:
        def life() -> None:
            try:
                self._handle_all()
            except Crash:
                if self.actors is actors:  # its master lives, and starts another
                    self._child(actors, name, _RETRY_S)
                raise

        actors.append(self.world.hub.spawn(f"{self.name}.{name}", life, after_s))

    def _handle_all(self) -> None:
        worker, broker = self.worker, self.region.broker
        while True:
            message = broker.take()
            if message is None:
                self.world.hub.sleep(_IDLE_S)
                continue
            try:
                worker.handler.handle(message)
            except (*_NO_ANSWER, Fenced):
                pass  # the lease will tell
            except Crash:
                broker.give_back(message)
                raise
            broker.acknowledge(message)


def _every(tick: Callable[[], object], seconds: float) -> float:
    tick()
    return seconds
