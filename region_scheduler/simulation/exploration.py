"""Every order of events of a small model, breadth first: the first path to a fault is a shortest.

A process of a model is an ordinary function that calls a store. Its place is the list of the
answers that it got: it is run again from its beginning with those, up to the first call that has
none yet (as in Godefroid, "Model checking for programming languages using VeriSoft", 1997).
So the very code of the product is explored, call by call, and places that are alike are met once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

S = TypeVar("S", bound=Hashable)


class Unanswered(BaseException):
    """A process stands before a call that has no answer yet; no handler of errors may see it."""

    def __init__(self, call: Call) -> None:
        super().__init__(call.point)
        self.call = call


@dataclass(frozen=True, slots=True)
class Call:
    """What a process waits for.

    Attributes:
        point: Names the call.
        arguments: What it is called with.
    """

    point: str
    arguments: tuple[Any, ...]


class Answers:
    """What a process was answered so far; the next call after that stops it."""

    def __init__(self, known: Sequence[Any]) -> None:
        self._known = known
        self._next = 0

    def ask(self, point: str, *arguments: Any) -> Any:
        """Return the answer to a call.

        Raises:
            Unanswered: There is none yet.
        """
        if self._next == len(self._known):
            raise Unanswered(Call(point, arguments))
        self._next += 1
        return self._known[self._next - 1]


def next_call(process: Callable[[Answers], None], known: Sequence[Any]) -> Call | None:
    """Return the call that a process stands before, given its answers; None if it has ended."""
    try:
        process(Answers(known))
    except Unanswered as waiting:
        return waiting.call
    return None


class Model(Protocol[S]):
    """What can happen."""

    def first(self) -> S:
        """Return the state at the beginning."""
        ...

    def steps(self, state: S) -> Iterator[tuple[str, S]]:
        """Yield everything that can happen next, by name, and the state after it."""
        ...

    def broken(self, state: S) -> str:
        """Return which invariant a state breaks, and how; empty if none."""
        ...

    def unfinished(self, state: S) -> str:
        """Return what is not as it should be in a state in which nothing can happen any more."""
        ...


@dataclass(frozen=True, slots=True)
class Explored(Generic[S]):
    """What an exploration met.

    Attributes:
        states: How many different ones.
        steps: How many ways from one to another.
        broken: Which invariant is broken at the end of `path`; empty if none ever is.
        path: The fewest events that lead there.
        is_whole: Nothing was left out.
    """

    states: int
    steps: int
    broken: str = ""
    path: tuple[str, ...] = ()
    is_whole: bool = True


def explore(model: Model[S], states_max: int | None = None) -> Explored[S]:
    """Visit every state that can be reached, until one breaks an invariant.

    Args:
        model: What can happen.
        states_max: Stop at so many states; None for all.
    """
    first = model.first()
    came: dict[S, tuple[S, str] | None] = {first: None}
    layer, steps = [first], 0
    while layer:
        following: list[S] = []
        for state in layer:
            is_end = True
            for event, after in model.steps(state):
                is_end = False
                steps += 1
                if after not in came:
                    came[after] = (state, event)
                    following.append(after)
            if problem := model.broken(state) or (model.unfinished(state) if is_end else ""):
                return Explored(len(came), steps, problem, _path(came, state))
            if states_max is not None and len(came) >= states_max:
                return Explored(len(came), steps, is_whole=False)
        layer = following
    return Explored(len(came), steps)


def _path(came: dict[S, tuple[S, str] | None], state: S) -> tuple[str, ...]:
    events: list[str] = []
    while (step := came[state]) is not None:
        state, event = step
        events.append(event)
    return tuple(reversed(events))
