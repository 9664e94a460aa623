"""The world of the model between two events, and small changes of it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final, NamedTuple

from region_scheduler.domain.ids import ClaimId
from region_scheduler.domain.task import Token

FIRST: Final = "worker:0"
"""The worker's first life, the one that may be paused."""


class Trouble(StrEnum):
    """What may go wrong, each once."""

    REQUEST_LOST = "request lost"
    ANSWER_LOST = "answer lost"
    APPLIED_LATE = "applied late"
    MESSAGE_LOST = "message lost"
    MESSAGE_TWICE = "message twice"
    SCHEDULER_KILLED = "scheduler killed"
    CHILD_KILLED = "pool child killed"
    WORKER_PAUSED = "worker paused"
    MESSAGE_SLOW = "message slower than the dispatch time-out"


class Message(NamedTuple):
    """A message in the queue: the task and the token that it is about."""

    task: int
    number: int
    claim_id: ClaimId

    @property
    def token(self) -> Token:
        """The token that it hands over."""
        return Token(self.number, self.claim_id)


class Process(NamedTuple):
    """A process in the middle of something.

    Attributes:
        role: What it does; see `Roles.script`.
        what: Its arguments.
        answers: Numbers of the answers that it got.
    """

    role: str
    what: tuple[Any, ...]
    answers: tuple[int, ...] = ()


class State(NamedTuple):
    """The world between two events.

    Attributes:
        tasks: Numbers of the values that the documents have.
        schedulers: What each does, if anything.
        lives: Which life of each scheduler it is; an earlier one is dead.
        observer: What it does, if anything.
        children: What the worker's pool children do.
        worker: Its last life; the first may still be there.
        deliveries: How often each message was taken.
        running: (task, receipt) of the steps that run.
        queue: Messages that nobody has taken.
        late: (before, after) of writes that travel still, as numbers of values.
        is_paused: The processes of the worker's first life stand still; its steps run on.
        is_over: Their lease is over: the shims have ended the steps.
        fenced: Incarnations that are fenced.
        left: What may still go wrong.
        problem: An invariant that an event has broken.
    """

    tasks: tuple[int, ...]
    schedulers: tuple[Process | None, ...]
    lives: tuple[int, ...]
    observer: Process | None
    children: tuple[Process, ...]
    worker: int
    deliveries: tuple[tuple[Message, int], ...]
    running: tuple[tuple[int, str], ...]
    queue: tuple[Message, ...]
    late: tuple[tuple[int, int], ...]
    is_paused: bool
    is_over: bool
    fenced: frozenset[str]
    left: frozenset[Trouble]
    problem: str


def publications(state: State, message: Message) -> Iterator[tuple[str, State, Any]]:
    """Yield what may become of a message: event, state, answer."""
    queue = arranged((*state.queue, message))
    yield "publishes", state._replace(queue=queue), True
    if Trouble.MESSAGE_LOST in state.left:
        yield "publishes in vain", without(state, Trouble.MESSAGE_LOST), True
    if Trouble.MESSAGE_TWICE in state.left:
        twice = without(state, Trouble.MESSAGE_TWICE)._replace(queue=arranged((*queue, message)))
        yield "publishes twice", twice, True


def killed(state: State, child: Process, others: tuple[Process, ...]) -> State:
    """Return the state after a pool child died: its step with it, its message comes again."""
    receipt = child.what[2]
    return without(state, Trouble.CHILD_KILLED)._replace(
        children=others,
        queue=arranged((*state.queue, child.what[0])),
        running=tuple(step for step in state.running if step[1] != receipt),
    )


def ended(state: State) -> State:
    """Return the state after the worker's first life ended, its steps and its children with it."""
    gone = [child for child in state.children if child.what[1] == FIRST]
    return state._replace(
        children=tuple(child for child in state.children if child.what[1] != FIRST),
        running=tuple(step for step in state.running if not step[1].startswith(FIRST)),
        queue=arranged((*state.queue, *(child.what[0] for child in gone))),
    )


def with_scheduler(state: State, place: int, process: Process | None) -> State:
    """Return the state in which a scheduler does something else."""
    before, after = state.schedulers[:place], state.schedulers[place + 1 :]
    return state._replace(schedulers=(*before, process, *after))


def without(state: State, trouble: Trouble) -> State:
    """Return the state in which a trouble has happened, and may not any more."""
    return state._replace(left=state.left - {trouble})


def arranged(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return items in the one order in which states that are alike have them."""
    return tuple(sorted(items))
