"""A world of one seed: real roles as actors, faults and people; first safety, then liveness.

While faults rage nothing that is promised may break; it is looked at every few seconds. Then they
are healed, and within a bound everything must have come to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random  # noqa: TID251 - a world is replayed by its seed
from tempfile import TemporaryDirectory
from typing import Final

from region_scheduler.assembly.in_process import in_process_graph
from region_scheduler.domain.states import RUN_ENDED
from region_scheduler.ports.records import GraphStores
from region_scheduler.simulation.acted import ActedWorld
from region_scheduler.simulation.chaos import Chaos, Trouble
from region_scheduler.simulation.people import People
from region_scheduler.simulation.processes import Process, Serving, Working
from region_scheduler.simulation.troubles import Troubles
from region_scheduler.simulation.workload import plans
from region_scheduler.verify.report import Report
from region_scheduler.verify.verifier import Source, verify

_REGIONS: Final = ("eu-west", "us-east", "ap-south")
_LOOK_S: Final = 10.0
_REST_S: Final = 5.0
LIVENESS_S: Final = 900.0
"""Within so many seconds after the last fault everything must have come to its end. A retry rests
by its region's wall clock: one that was set back by ten minutes lets it rest for as much longer."""
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a directory of its own is made in it


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a seed.

    Attributes:
        faults: How many struck, by kind.
        struck: Each, by number.
        virtual_s: How long the world lived.
        calls: Port calls that were made.
        trace: Its lines, if they were wanted.
    """

    seed: int
    report: Report
    faults: Counter[str]
    struck: dict[int, str]
    virtual_s: float
    turns: int
    runs: dict[str, int]
    trace_hash: str
    trace: Sequence[str] = ()


def play(
    seed: int,
    minutes: float = 1.0,
    only: Collection[int] | None = None,
    focus: tuple[Trouble, ...] = (),
    *,
    keeps_trace: bool = False,
) -> Outcome:
    """Let the world of a seed live, and return what became of it.

    Args:
        seed: Decides everything.
        minutes: How long faults rage, virtual.
        only: Numbers of the faults that strike; all if None.
        focus: What befalls it, and nothing else; by chance if there is nothing.
        keeps_trace: Whether the outcome has the trace.
    """
    parent = _MEMORY if _MEMORY.is_dir() else None
    with TemporaryDirectory(prefix="region-scheduler-", dir=parent) as directory:
        world = SeededWorld(Path(directory), Chaos(seed, only, focus, keeps_trace))
        return world.lived(60 * minutes)


class SeededWorld(ActedWorld):
    """Regions whose processes take turns, and what goes wrong with them.

    Args:
        directory: For the relational stores.
        chaos: What goes wrong.
    """

    def __init__(self, directory: Path, chaos: Chaos) -> None:
        self._shape = Random(f"shape {chaos.seed}")  # noqa: S311 - a replayable world
        regions = _REGIONS[: self._shape.choice([1, 2, 2, 3])]
        self.serving: dict[str, Serving] = {}
        super().__init__(directory, regions, chaos)
        self.graph: GraphStores = in_process_graph(self.engine, regions[0])
        self.working: list[Working] = []
        for name, region in self.regions.items():
            self.serving[name] = Serving(self, region, f"serve {name}")
            region.workers += [self.worker(region) for _ in range(self._shape.choice([0, 1, 1]))]
            self.working += [
                Working(self, region, f"worker{n} {name}", one)
                for n, one in enumerate(region.workers)
            ]

    @property
    def processes(self) -> list[Process]:
        """All of them."""
        return [*self.serving.values(), *self.working]

    def lived(self, seconds: float) -> Outcome:
        """Let it live, faults raging for so many seconds, and return what became of it."""
        began_at = self.clock.seconds
        for process in self.processes:
            process.start(self._shape.random())
        people = People(self, plans(self._shape, list(self.regions)))
        people.start()
        troubles = self._troubles = Troubles(self, self.serving, self.working, people)
        troubles.start()
        self.chaos.is_raging = True
        report = self._watched(seconds)
        if not report.violations:
            self.chaos.is_raging = False
            troubles.heal()
            people.settle()
            self.hub.run(LIVENESS_S, self._is_over)
            self.hub.run(_REST_S)
            report = self._look(is_at_rest=True)
        self.chaos.note(f"end {report.document()}")
        return Outcome(
            seed=self.chaos.seed,
            report=report,
            faults=self.chaos.counts,
            struck=self.chaos.struck,
            virtual_s=self.clock.seconds - began_at,
            turns=self.hub.turns,
            runs=Counter(run.state.value for run in self.graph.runs.recent(100)),
            trace_hash=self.chaos.trace_hash,
            trace=self.chaos.lines,
        )

    def _watched(self, seconds: float) -> Report:
        end = self.clock.seconds + seconds
        while True:
            self.hub.run(min(_LOOK_S, end - self.clock.seconds))
            report = self._look(is_at_rest=False)
            if report.violations or self.clock.seconds >= end:
                return report

    def _look(self, *, is_at_rest: bool) -> Report:
        steps, alive = self.log.seen_now()
        history = self.graph.history
        source = Source(history=history, steps=steps, alive=alive, is_at_rest=is_at_rest)
        with self._troubles.unhindered():
            return verify(source)

    def _is_over(self) -> bool:
        """Say, now and then, whether nothing is left to do."""
        if self.hub.turns % 200:
            return False
        return (
            not self.graph.admissions.unfinished()
            and all(run.state in RUN_ENDED for run in self.graph.runs.recent(100))
            and not self.graph.slots.taken()
        )

    def _wake(self, region: str) -> None:
        super()._wake(region)
        if region in self.serving:
            self.serving[region].wake()
