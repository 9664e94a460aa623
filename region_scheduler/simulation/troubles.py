"""What befalls the processes, links and stores of a seeded world, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random  # noqa: TID251 - a world is replayed by its seed
from typing import Final

from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.simulation.acted import ActedWorld
from region_scheduler.simulation.chaos import Trouble
from region_scheduler.simulation.people import People
from region_scheduler.simulation.processes import Process, Serving, Working

_LONGEST_LEASES: Final = 2.5
_LAG_S_MAX: Final = 5.0
_AHEAD_S_MAX: Final = 300.0


class Troubles:
    """Draws them, and heals what lasts.

    Args:
        world: Where they happen.
        serving: Whom they befall, by region.
        working: And whom else.
        people: The operators among them.
    """

    def __init__(
        self,
        world: ActedWorld,
        serving: Mapping[str, Serving],
        working: Sequence[Working],
        people: People,
    ) -> None:
        self._world = world
        self._serving = serving
        self._working = working
        self._people = people
        self._chance = Random(f"troubles {world.chaos.seed}")  # noqa: S311 - replayable
        self._control = FaultControl(world.engine)
        self._is_over = False
        self._cut: set[str] = set()

    def start(self) -> None:
        """Let them begin."""
        self._world.hub.spawn("troubles", self._go_on)

    def heal(self) -> None:
        """End all that lasts; nothing more befalls anybody."""
        self._is_over = True
        for name in self._world.regions:
            self._mend(name)
            self._control.set_lag(name, 0.0)
            self._world.clocks[name].ahead_s = 0.0
        processes: list[Process] = [*self._serving.values(), *self._working]
        for process in processes:
            process.thaw()

    @contextmanager
    def unhindered(self) -> Iterator[None]:
        """Let whoever looks at the world reach its store meanwhile."""
        for name in self._cut:
            self._control.heal(name)
        try:
            yield
        finally:
            for name in self._cut:
                self._control.cut(name, is_refusing=True)

    def _mend(self, name: str) -> None:
        self._cut.discard(name)
        self._control.heal(name)

    def _go_on(self) -> None:
        chaos = self._world.chaos
        while True:
            self._world.hub.sleep(self._chance.expovariate(1 / chaos.swarm.every_s))
            if self._is_over:
                return
            trouble = self._chance.choice(chaos.swarm.troubles)
            where = self._chance.choice(sorted(self._world.regions))
            how_long_s = self._chance.uniform(0.5, _LONGEST_LEASES * self._world.timings.lease_s)
            if chaos.strikes(f"{trouble} {where}"):
                self._befall(trouble, where, how_long_s)

    def _befall(self, trouble: Trouble, where: str, how_long_s: float) -> None:  # noqa: C901 - a table
        world = self._world
        serving = self._serving[where]
        working = self._chance.choice([w for w in self._working if w.region.name == where])
        broker = world.regions[where].broker
        match trouble:
            case Trouble.FREEZE_SERVING:
                serving.freeze(how_long_s)
            case Trouble.FREEZE_WORKER:
                working.freeze(how_long_s)
            case Trouble.KILL_SERVING:
                serving.die()
            case Trouble.KILL_WORKER:
                working.die()
            case Trouble.KILL_CHILD:
                for child in working.children[:1]:
                    world.hub.kill(child)
            case Trouble.CUT:
                self._cut.add(where)
                self._control.cut(where, is_refusing=True)
                world.hub.spawn(f"heal {where}", partial(self._mend, where), how_long_s)
            case Trouble.LAG:
                self._control.set_lag(where, self._chance.uniform(0, _LAG_S_MAX))
            case Trouble.WIPE:
                broker.lose_all()
            case Trouble.REDELIVER:
                broker.return_unacknowledged()
            case Trouble.CLOCK:
                world.clocks[where].ahead_s = self._chance.uniform(-_AHEAD_S_MAX, _AHEAD_S_MAX)
            case Trouble.LOSE_STORE:
                world.lose_stores()
            case Trouble.OPERATOR:
                self._people.act(self._people.meddle())
