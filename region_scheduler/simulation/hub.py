"""Actors that take turns on virtual time: one runs, until it waits; then the next that is due.

Each actor has a stack of its own (a greenlet), so that the real roles, which know nothing of this,
can be stopped in the middle of any call. There are no threads: the same seed gives the same turns.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from greenlet import greenlet

from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.time import VirtualClock


@dataclass(eq=False, slots=True)
class Actor:
    """Something that acts, waits, and goes on.

    Attributes:
        name: For the trace.
        frozen_until: Its process stands still; what is due goes on then.
        is_dying: It was killed: its next turn is its last.
        ticket: Of the turn that it waits for; turns of others are over.
    """

    name: str
    frozen_until: float = 0.0
    is_dying: bool = False
    is_over: bool = False
    ticket: int = 0
    stack: greenlet = field(default_factory=greenlet)


class Hub:
    """Gives turns.

    Args:
        clock: Moves on to whoever is due next: time in which nobody acts is skipped.

    Attributes:
        turns: How many were given.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.turns = 0
        self._main = greenlet.getcurrent()
        self._current: Actor | None = None
        self._due: list[tuple[float, int, Actor, int]] = []
        self._number = count()

    @property
    def current(self) -> Actor | None:
        """Whose turn it is; None if it is nobody's: the world itself acts."""
        return self._current

    def spawn(self, name: str, act: Callable[[], None], after_s: float = 0.0) -> Actor:
        """Let an actor begin, after so many seconds."""
        actor = Actor(name)

        def life() -> None:
            try:
                if not actor.is_dying:
                    act()
            except Crash:
                pass
            finally:
                actor.is_over = True

        actor.stack = greenlet(life, self._main)
        self._await(actor, after_s)
        return actor

    def sleep(self, seconds: float) -> None:
        """Let the actor whose turn it is wait.

        Raises:
            Crash: It was killed meanwhile.
        """
        actor = self._current
        assert actor is not None  # noqa: S101 - nobody else can wait
        if actor.is_dying:
            raise Crash(actor.name)
        self._await(actor, seconds)
        self._main.switch()
        if actor.is_dying:
            raise Crash(actor.name)

    def wake(self, actor: Actor) -> None:
        """Let an actor that waits go on now."""
        if not actor.is_over:
            self._await(actor, 0.0)

    def kill(self, actor: Actor) -> None:
        """Let an actor die where it stands, frozen or not; itself it kills by raising `Crash`."""
        actor.is_dying = True
        actor.frozen_until = 0.0
        if actor is not self._current:
            self.wake(actor)

    def run(self, seconds: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Give turns for so many seconds of virtual time, or until `is_over` says so."""
        end = self.clock.seconds + seconds
        while self._due and self._due[0][0] <= end:
            at, _, actor, ticket = heapq.heappop(self._due)
            if ticket != actor.ticket or actor.is_over:
                continue
            if actor.frozen_until > at:
                self._await(actor, actor.frozen_until - self.clock.seconds)
                continue
            self.clock.seconds = max(self.clock.seconds, at)
            self._turn(actor)
            if is_over():
                return
        self.clock.seconds = max(self.clock.seconds, end)

    def _turn(self, actor: Actor) -> None:
        self.turns += 1
        self._current = actor
        try:
            actor.stack.switch()
        finally:
            self._current = None

    def _await(self, actor: Actor, seconds: float) -> None:
        actor.ticket = next(self._number)
        at = self.clock.seconds + max(0.0, seconds)
        heapq.heappush(self._due, (at, actor.ticket, actor, actor.ticket))
