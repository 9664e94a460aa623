"""Whether the holder of a running task is wanted to stop."""

from __future__ import annotations

from collections.abc import Callable

from region_scheduler.domain.task import Task
from region_scheduler.errors import OutcomeUnknown, Unavailable
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock


class StopWatch:
    """Asks the task's document now and then whether its holder is wanted to stop.

    Args:
        graph: The graph store.
        task: The running task.
        is_ending: Whether the worker itself is to end; asked at every look, it costs nothing.
        clock: This machine's clock.
        every_s: Pause between two looks at the document, in seconds.
    """

    def __init__(
        self,
        graph: GraphStores,
        task: Task,
        is_ending: Callable[[], bool],
        clock: Clock,
        every_s: float,
    ) -> None:
        self._graph = graph
        self._task = task
        self._is_ending = is_ending
        self._clock = clock
        self._every_s = every_s
        self._look_at = clock.monotonic() + every_s
        self._wish = ""

    def ask(self) -> str:
        """Return why the step should stop; empty while it should go on."""
        now = self._clock.monotonic()
        if not self._wish and self._is_ending():
            self._wish = "the worker is ending"
        if self._wish or now < self._look_at:
            return self._wish
        self._look_at = now + self._every_s
        try:
            (found,) = self._graph.tasks.read([self._task.id])
        except (Unavailable, OutcomeUnknown):
            return ""  # the lease decides how long a step may go on unseen
        if found is None or found.token != self._task.token:
            self._wish = "fenced"
        elif found.stop_requested is not None:
            self._wish = found.stop_requested.reason
        return self._wish
