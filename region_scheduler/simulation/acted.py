"""A world whose processes are actors: each call of a port may be the end of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from region_scheduler.simulation.chaos import Chaos
from region_scheduler.simulation.hub import Hub
from region_scheduler.simulation.time import SeededChance
from region_scheduler.simulation.timed import TimedSteps
from region_scheduler.simulation.world import World

_SLOTS: Final = 2
_SLOW: Final = 3.0
"""Where only a few things go wrong, steps are long enough to meet them."""


class ActedWorld(World):
    """Regions around one engine, driven by whoever is due next.

    Args:
        directory: For the relational stores.
        regions: Names of the regions.
        chaos: What goes wrong; its seed decides ids, jitter and durations, too.
    """

    def __init__(self, directory: Path, regions: Sequence[str], chaos: Chaos) -> None:
        self.chaos = chaos
        self._step_chance = SeededChance(chaos.seed)
        super().__init__(directory, regions, chaos.seed, slots=_SLOTS, hook=chaos)
        self.hub = chaos.hub = Hub(self.clock)

    def runner(self) -> TimedSteps:
        """Return what runs the steps of a worker: they take time."""
        slowness = _SLOW if self.chaos.focus else 1.0
        return TimedSteps(self.log, self._step_chance, self.pause, self.clock.monotonic, slowness)

    def pause(self, seconds: float) -> None:
        """Let whoever asks wait."""
        self.hub.sleep(seconds)
