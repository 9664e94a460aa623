"""A world whose processes are paused and cut off, and go on as they would in production."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from region_scheduler.domain.run import Run
from region_scheduler.domain.step import StopWish
from region_scheduler.domain.task import EventKind, Exit
from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.errors import Fenced, LostRace, OutcomeUnknown, Unavailable
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import SimulatedRegion, SimulatedWorker, World
from tests.simulation.acts import task_of

T = TypeVar("T")


class TroubledWorld(World):
    """A world in which a process may stand still, and a store may not answer.

    A process that dies, or whose lease is over, is started anew as soon as the store answers; what
    is not answered is tried again by the next round of its loop.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self._still: list[SimulatedRegion | SimulatedWorker] = []
        super().__init__(*arguments, **more)

    def perform(
        self, region: SimulatedRegion, act: Callable[[], T], worker: SimulatedWorker | None = None
    ) -> T | None:
        """Let a process act, unless it stands still."""
        if any(worker is one or (worker is None and region is one) for one in self._still):
            return None
        try:
            return act()
        except (Crash, Fenced):
            self._start_anew(region, worker)
        except (Unavailable, OutcomeUnknown, LostRace):
            pass
        return None

    @contextmanager
    def paused(self, *processes: SimulatedRegion | SimulatedWorker) -> Iterator[None]:
        """Let workers, or the serving processes of regions, do nothing for a while."""
        self._still.extend(processes)
        try:
            yield
        finally:
            self._still.clear()

    @contextmanager
    def cut(self, *regions: str) -> Iterator[None]:
        """Cut regions off from the store for a while; they are refused everything but old reads."""
        control = FaultControl(self.engine)
        for region in regions:
            control.cut(region, is_refusing=True)
        try:
            yield
        finally:
            for region in regions:
                control.heal(region)

    def _start_anew(self, region: SimulatedRegion, worker: SimulatedWorker | None) -> None:
        try:
            if worker is None:
                self.restart(region)
            else:
                self.replace_worker(region, worker)
        except (Unavailable, OutcomeUnknown):
            pass  # the next round tries again


class Moments:
    """A hook that lets a test act at calls of a port, as `before` or `after` say for its point.

    What a moment does is not met by moments itself.
    """

    def __init__(self) -> None:
        self.before: dict[str, Callable[[partial[Any]], None]] = {}
        self.after: dict[str, Callable[[partial[Any], Any], None]] = {}
        self._is_inside = False

    def __call__(self, point: str, call: partial[Any]) -> Any:
        """Make the call with what happens around it."""
        if self._is_inside:
            return call()
        before, after = self.before.get(point), self.after.get(point)
        if before is not None:
            self._quietly(partial(before, call))
        answer = call()
        if after is not None:
            self._quietly(partial(after, call, answer))
        return answer

    def _quietly(self, act: Callable[[], None]) -> None:
        self._is_inside = True
        try:
            act()
        finally:
            self._is_inside = False


def once(act: Callable[[], object]) -> Callable[[StopWish], Exit | None]:
    """Return what happens in a step: `act`, the first time that it runs."""
    left = [act]

    def during(_: StopWish) -> None:
        if left:
            left.pop()()

    return during


def happened(world: World, run: Run, name: str, *kinds: EventKind) -> list[EventKind]:
    """Return what is recorded of a task, of these kinds if some are given."""
    found = [entry.kind for entry in task_of(world, run, name).history]
    return [kind for kind in found if not kinds or kind in kinds]
