"""The protocol of a claim as a model for `exploration`: who may run a task, whatever goes wrong.

Two schedulers, one observer and one worker with two pool children share two tasks, the second of
which may need the first. They are the product's own decisions (`domain.transitions`) committed by
its own gate (`commit.gate`); around them the model has a store, a queue, steps and their lease, and
each fault at most once. Time is left out but for its order: a lease is over only after its
holder has not renewed it, and an observer acts only after it is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any, Final, NamedTuple

from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.ids import ClaimId, Incarnation, ReceiptId, RunId, TaskId, task_id
from region_scheduler.domain.states import CLAIMABLE, TaskState
from region_scheduler.domain.task import (
    EventKind,
    Exit,
    ExitKind,
    HistoryEntry,
    Holder,
    RetryPolicy,
    Task,
    TaskSpec,
    Token,
)
from region_scheduler.domain.transitions import (
    Stamp,
    claim,
    complete,
    lose,
    requeue,
    start,
    unlock,
)
from region_scheduler.errors import RegionSchedulerError
from region_scheduler.ports.documents import WriteResult, Written
from region_scheduler.simulation.exploration import Answers, Call, next_call

_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)
_REGION: Final = "here"
_RUN: Final = RunId("run")
_SCHEDULERS: Final = 2
_CHILDREN: Final = 2
_FIRST: Final = "worker:0"
_OBSERVER: Final = Incarnation("observer:0")


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
        role: What it does, as a key of `_SCRIPTS`.
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


@dataclass(frozen=True)
class Rules:
    """The decisions under test; a test breaks one to see that it would be found.

    Attributes:
        claim, start, complete, lose, unlock: As in `domain.transitions`.
        is_deadline_kept: Steps end when their lease is over.
    """

    claim: Callable[..., Task] = claim
    start: Callable[..., Task] = start
    complete: Callable[..., Task] = complete
    lose: Callable[..., Task] = lose
    unlock: Callable[..., Task] = unlock
    is_deadline_kept: bool = True


class _Values:
    """Numbers for values. Those that no decision tells apart have one: states are small and few."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._values: list[Any] = []

    def number(self, value: Any) -> int:
        """Return the number of a task, or of an answer."""
        key = self._key(value)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._values)
            self._values.append(value)
        return found

    def task(self, number: int) -> Task:
        """Return the task that has a number."""
        found: Task = self._values[number]
        return found

    def __getitem__(self, number: int) -> Any:
        """Return the value that has a number."""
        return self._values[number]

    def revised(self, task: Task) -> Task:
        """Return a task at the revision that its write gives it.

        No write leads back to a token, holder and state that were left, so they are the revision.
        """
        return replace(task, rev=f"{task.token} {task.state} {task.holder}")

    def _key(self, value: Any) -> Any:
        if isinstance(value, Written):
            return value.result, None if value.value is None else self._key(value.value)
        if isinstance(value, Task):
            ends = tuple(entry.receipt_id for entry in value.history if _is_end(entry))
            return value.id, value.rev, value.state, value.token, value.holder, ends
        return value


class _Store:
    """The tasks as a process sees them; every call may be the last that it makes."""

    def __init__(self, answers: Answers) -> None:
        self._ask = answers.ask

    def read(self, ids: Sequence[str]) -> list[Task | None]:
        return [self._ask("read", id_) for id_ in ids]

    def write(self, changes: Sequence[tuple[Task, Task]]) -> list[Written[Task]]:
        return [self._ask("write", before, after) for before, after in changes]

    def insert(self, values: Sequence[Task]) -> list[Written[Task]]:
        raise NotImplementedError

    def remove(self, values: Sequence[Any]) -> list[WriteResult]:
        raise NotImplementedError


@dataclass
class ClaimModel:
    """What can happen to two tasks.

    Args:
        troubles: What may go wrong, each once.
        is_chain: The second task needs the first.
        rules: The decisions.
    """

    troubles: frozenset[Trouble] = frozenset(Trouble)
    is_chain: bool = False
    rules: Rules = Rules()
    _values: _Values = field(default_factory=_Values)
    _calls: dict[Process, Call | None] = field(default_factory=dict)

    def first(self) -> State:
        """Return two tasks that may start, or the first of a chain, and nobody doing anything."""
        tasks = tuple(self._values.number(self._task(n)) for n in range(2))
        return State(
            tasks=tasks,
            schedulers=(None,) * _SCHEDULERS,
            lives=(0,) * _SCHEDULERS,
            observer=None,
            children=(),
            worker=0,
            deliveries=(),
            running=(),
            queue=(),
            late=(),
            is_paused=False,
            is_over=False,
            fenced=frozenset(),
            left=self.troubles,
            problem="",
        )

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield what can happen next."""
        yield from self._late_writes(state)
        yield from self._schedulers(state)
        yield from self._observer(state)
        yield from self._worker(state)

    def broken(self, state: State) -> str:
        """Return which of I1, I2 and I4 a state breaks."""
        if state.problem:
            return state.problem
        tasks = [task for task, _ in state.running]
        if len(set(tasks)) < len(tasks):
            return f"I1: two steps of one task run at once: {state.running}"
        for n, number in enumerate(state.tasks):
            history = self._values.task(number).history
            ends = [e for e in history if _is_end(e) and e.state is TaskState.DONE]
            if len(ends) > 1:
                return f"I4: task {n} has {len(ends)} accepted completions"
        return ""

    def unfinished(self, state: State) -> str:
        """Return which task is not done where nothing can happen any more."""
        states = [self._values[number].state for number in state.tasks]
        stuck = [f"task {n} is {s}" for n, s in enumerate(states) if s is not TaskState.DONE]
        return f"I3: nothing moves, and {', '.join(stuck)}" if stuck else ""

    # What the processes do.

    def _script(self, process: Process) -> Callable[[Answers], None]:
        roles: dict[str, Callable[..., None]] = {
            "promote": self._promote,
            "attempt": self._attempt,
            "lose": self._lose,
            "requeue": self._requeue,
            "unlock": self._unlock,
        }
        return lambda answers: roles[process.role](answers, *process.what)

    def _promote(self, answers: Answers, n: int, scheduler: str, claim_id: str, known: int) -> None:
        take = partial(
            self.rules.claim,
            claim_id=ClaimId(claim_id),
            scheduler=Incarnation(scheduler),
            region=_REGION,
            at=_AT,
        )
        task = self._committed(answers, n, take, known)
        if task is not None:
            answers.ask("publish", Message(n, task.token.number, task.token.claim_id))

    def _attempt(
        self, answers: Answers, message: Message, worker: str, receipt: str, known: int
    ) -> None:
        holder = Holder(Incarnation(worker), ReceiptId(receipt))
        begin = partial(self.rules.start, token=message.token, holder=holder, at=_AT)
        if self._committed(answers, message.task, begin, known) is None:
            return
        kind = ExitKind.HAND_BACK
        if answers.ask("begin", message.task, receipt):
            is_well = answers.ask("end", message.task, receipt)
            kind = ExitKind.OK if is_well else ExitKind.FENCED
        ended = Exit(kind=kind)
        finish = partial(
            self.rules.complete, token=message.token, holder=holder, ended=ended, at=_AT
        )
        done = self._committed(answers, message.task, finish)
        if done is not None and done.state is TaskState.DONE and message.task == 0:
            self._unlock(answers)

    def _lose(self, answers: Answers, n: int, known: int) -> None:
        task: Task = self._values[known]
        seen = {"token": task.token, "holder": task.holder}
        taken = partial(self.rules.lose, **seen, reason="lost", stamp=Stamp(_OBSERVER, _AT))
        self._committed(answers, n, taken, known)

    def _requeue(self, answers: Answers, n: int, known: int) -> None:
        token = self._values[known].token
        back = partial(requeue, token=token, reason="timed out", stamp=Stamp(_OBSERVER, _AT))
        self._committed(answers, n, back, known)

    def _unlock(self, answers: Answers) -> None:
        """Read the dependent first, then its predecessor; unlock it if that is done."""
        if not self.is_chain:
            return
        dependent = answers.ask("read", _id(1))
        before = answers.ask("read", _id(0))
        seen = {before.id: str(before.token)} if before.state is TaskState.DONE else {}
        free = partial(self.rules.unlock, seen=seen, stamp=Stamp("settler", _AT))
        self._committed(answers, 1, free, self._values.number(dependent))

    def _committed(
        self, answers: Answers, n: int, decide: Callable[[Task], Task], known: int | None = None
    ) -> Task | None:
        """Commit as every role does, beginning with a value that was read; None if in vain."""
        value = None if known is None else self._values.task(known)
        try:
            return commit_one(_Store(answers), Change(_id(n), decide, known=value))
        except RegionSchedulerError:
            return None

    # What happens.

    def _late_writes(self, state: State) -> Iterator[tuple[str, State]]:
        for n, (before, after) in enumerate(state.late):
            left = state._replace(late=state.late[:n] + state.late[n + 1 :])
            moved, _ = self._written(left, self._values[before], self._values[after])
            yield "the late write arrives", moved

    def _schedulers(self, state: State) -> Iterator[tuple[str, State]]:
        for s, process in enumerate(state.schedulers):
            name = f"scheduler-{s}:{state.lives[s]}"
            if Trouble.SCHEDULER_KILLED in state.left:
                lives = (*state.lives[:s], state.lives[s] + 1, *state.lives[s + 1 :])
                dead = _without(_with(state, s, None), Trouble.SCHEDULER_KILLED)
                yield f"{name} is killed", dead._replace(lives=lives)
            if process is not None:
                for event, after, going in self._called(state, process):
                    yield f"{name} {event}", _with(after, s, going)
                continue
            for n, number in enumerate(state.tasks):
                task = self._values.task(number)
                if task.state in CLAIMABLE:
                    # Of no two tries: until the number has moved it does not try again.
                    claim_id = f"{name}/{n}.{task.token.number}"
                    picked = Process("promote", (n, name, claim_id, number))
                    yield f"{name} reads task {n}, which is {task.state}", _with(state, s, picked)

    def _observer(self, state: State) -> Iterator[tuple[str, State]]:
        if state.observer is not None:
            for event, after, going in self._called(state, state.observer):
                yield f"observer {event}", after._replace(observer=going)
            return
        yield from self._fencings(state)
        for n, number in enumerate(state.tasks):
            task: Task = self._values[number]
            for role, why, after in self._verdicts(state, task):
                act = Process(role, (n, number))
                yield f"observer: task {n} {why}", after._replace(observer=act)
        if self.is_chain and self._is_unlockable(state):
            yield "observer: task 1 may start", state._replace(observer=Process("unlock", ()))

    def _fencings(self, state: State) -> Iterator[tuple[str, State]]:
        dead = {
            f"scheduler-{s}:{life}" for s, lives in enumerate(state.lives) for life in range(lives)
        }
        if state.is_over:
            dead.add(_FIRST)
        for name in sorted(dead - state.fenced):
            yield f"observer fences {name}", state._replace(fenced=state.fenced | {name})

    def _verdicts(self, state: State, task: Task) -> Iterator[tuple[str, str, State]]:
        """Yield what an observer may do about a held task, and why."""
        holder = task.holder
        if holder is None:
            return
        if holder.incarnation in state.fenced:
            yield "lose", "has a fenced holder", state
        if task.state is TaskState.CLAIMED:
            if self._is_unpublished(state, task):
                yield "requeue", "timed out", state
            elif Trouble.MESSAGE_SLOW in state.left:
                yield "requeue", "timed out", _without(state, Trouble.MESSAGE_SLOW)
        is_beating = holder.incarnation != _FIRST or not (state.is_paused or state.is_over)
        listed = {process.what[2] for process in state.children}
        if task.state is TaskState.RUNNING and is_beating and holder.receipt_id not in listed:
            yield "lose", "is not in its worker's beats", state

    def _is_unpublished(self, state: State, task: Task) -> bool:
        """Say whether nobody was told of a claim, or is any more."""
        told = [*state.queue, *(child.what[0] for child in state.children)]
        is_claiming = any(
            p is not None and p.what[2] == task.token.claim_id for p in state.schedulers
        )
        return not is_claiming and all(m.claim_id != task.token.claim_id for m in told)

    def _is_unlockable(self, state: State) -> bool:
        first, second = (self._values[number].state for number in state.tasks)
        return first is TaskState.DONE and second is TaskState.PENDING

    def _worker(self, state: State) -> Iterator[tuple[str, State]]:
        yield from self._lease(state)
        if f"worker:{state.worker}" in state.fenced:
            yield f"worker:{state.worker + 1} starts", state._replace(worker=state.worker + 1)
        yield from self._deliveries(state)
        for c, child in enumerate(state.children):
            if state.is_paused and child.what[1] == _FIRST:
                continue
            others = state.children[:c] + state.children[c + 1 :]
            for event, after, going in self._called(state, child):
                children = others if going is None else _sorted((*others, going))
                yield f"child {child.what[2]} {event}", after._replace(children=children)
            if Trouble.CHILD_KILLED in state.left:
                yield f"child {child.what[2]} is killed", _killed(state, child, others)

    def _lease(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield what happens to the lease of the worker's first life; no later one is disturbed."""
        if state.is_paused:
            if not state.is_over:
                ended = () if self.rules.is_deadline_kept else state.running
                yield f"{_FIRST}'s lease is over", state._replace(is_over=True, running=ended)
            yield f"{_FIRST} goes on", state._replace(is_paused=False)
        elif state.is_over and _FIRST not in state.fenced:
            yield f"{_FIRST} renews its lease", state._replace(is_over=False)
        elif any(child.what[1] == _FIRST for child in state.children) and state.is_over:
            yield f"{_FIRST} sees that it is fenced, and ends", _ended(state)
        if Trouble.WORKER_PAUSED in state.left:
            paused = _without(state, Trouble.WORKER_PAUSED)
            yield f"{_FIRST} is paused", paused._replace(is_paused=True)

    def _deliveries(self, state: State) -> Iterator[tuple[str, State]]:
        is_first_well = not (state.is_paused or state.is_over or _FIRST in state.fenced)
        lives = [_FIRST] if is_first_well else []
        lives += [f"worker:{life}" for life in range(1, state.worker + 1)]
        for name in lives:
            if sum(child.what[1] == name for child in state.children) == _CHILDREN:
                continue
            for message in sorted(set(state.queue)):
                yield self._delivered(state, name, message)

    def _delivered(self, state: State, name: str, message: Message) -> tuple[str, State]:
        queue, counts = list(state.queue), dict(state.deliveries)
        known = {*queue, *(child.what[0] for child in state.children)}
        queue.remove(message)
        counts[message] = counts.get(message, 0) + 1
        receipt = f"{name}/{message.task}.{message.number}.{counts[message]}"
        taken = state._replace(
            queue=tuple(queue),
            deliveries=tuple(sorted((m, n) for m, n in counts.items() if m in known)),
        )
        taker = Process("attempt", (message, name, receipt, state.tasks[message.task]))
        if self._call(taker) is not None:
            taken = taken._replace(children=_sorted((*state.children, taker)))
        return f"child {receipt} takes a message and reads task {message.task}", taken

    def _called(
        self, state: State, process: Process
    ) -> Iterator[tuple[str, State, Process | None]]:
        """Yield what may become of a process's next call: event, state, what it then does."""
        call = self._call(process)
        if call is None:
            return
        for event, after, answer in self._answers(state, call):
            known = (*process.answers, self._values.number(answer))
            going = process._replace(answers=known)
            yield event, after, going if self._call(going) is not None else None

    def _call(self, process: Process) -> Call | None:
        if process not in self._calls:
            known = [self._values[number] for number in process.answers]
            self._calls[process] = next_call(self._script(process), known)
        return self._calls[process]

    def _answers(self, state: State, call: Call) -> Iterator[tuple[str, State, Any]]:
        match call.point:
            case "read":
                (id_,) = call.arguments
                yield f"reads task {_number(id_)}", state, self._values[state.tasks[_number(id_)]]
            case "write":
                yield from self._writes(state, *call.arguments)
            case "publish":
                yield from _publications(state, *call.arguments)
            case "begin":
                n, receipt = call.arguments
                is_out = state.is_over and receipt.startswith(_FIRST)
                is_going = not (is_out and self.rules.is_deadline_kept)
                yield "begins its step", self._begun(state, n, receipt, is_going), is_going
            case _:
                step = call.arguments
                rest = tuple(other for other in state.running if other != step)
                yield "ends its step", state._replace(running=rest), step in state.running

    def _begun(self, state: State, n: int, receipt: str, is_going: bool) -> State:
        if not is_going:
            return state
        problem = ""
        if self.is_chain and n == 1 and self._values[state.tasks[0]].state is not TaskState.DONE:
            problem = "I2: the second task runs before the first is done"
        running = _sorted((*state.running, (n, receipt)))
        return state._replace(running=running, problem=state.problem or problem)

    def _writes(self, state: State, before: Task, after: Task) -> Iterator[tuple[str, State, Any]]:
        what = f"writes {after.state} to task {_number(before.id)}"
        moved, answer = self._written(state, before, after)
        yield what, moved, answer
        unknown: Written[Task] = Written(WriteResult.UNKNOWN)
        if Trouble.REQUEST_LOST in state.left:
            yield f"{what}, not sent", _without(state, Trouble.REQUEST_LOST), unknown
        if Trouble.ANSWER_LOST in state.left:
            yield f"{what}, answer lost", _without(moved, Trouble.ANSWER_LOST), unknown
        if Trouble.APPLIED_LATE in state.left:
            travelling = (self._values.number(before), self._values.number(after))
            late = _without(state, Trouble.APPLIED_LATE)._replace(late=(*state.late, travelling))
            yield f"{what}, on its way", late, unknown

    def _written(self, state: State, before: Task, after: Task) -> tuple[State, Written[Task]]:
        n = _number(before.id)
        if state.tasks[n] != self._values.number(before):
            return state, Written(WriteResult.CONFLICT)
        value = self._values.revised(after)
        tasks = (*state.tasks[:n], self._values.number(value), *state.tasks[n + 1 :])
        return state._replace(tasks=tasks), Written(WriteResult.APPLIED, value)

    def _task(self, n: int) -> Task:
        waits = self.is_chain and n == 1
        retry = RetryPolicy(losses_limit=99)
        return Task(
            id=_id(n),
            rev="0",
            run=_RUN,
            tenant="acme",
            spec=TaskSpec(
                name=str(n),
                runner="simulate",
                region=_REGION,
                allowed_regions=(_REGION,),
                retry=retry,
            ),
            needs=1 if waits else 0,
            region=_REGION,
            state=TaskState.PENDING if waits else TaskState.READY,
        )


_IDS: Final = tuple(task_id(_RUN, str(n)) for n in range(2))


def _id(n: int) -> TaskId:
    return _IDS[n]


def _number(id_: str) -> int:
    return _IDS.index(TaskId(id_))


def _publications(state: State, message: Message) -> Iterator[tuple[str, State, Any]]:
    queue = _sorted((*state.queue, message))
    yield "publishes", state._replace(queue=queue), True
    if Trouble.MESSAGE_LOST in state.left:
        yield "publishes in vain", _without(state, Trouble.MESSAGE_LOST), True
    if Trouble.MESSAGE_TWICE in state.left:
        twice = _without(state, Trouble.MESSAGE_TWICE)._replace(queue=_sorted((*queue, message)))
        yield "publishes twice", twice, True


def _killed(state: State, child: Process, others: tuple[Process, ...]) -> State:
    """Return the state after a pool child died: its step with it, its message comes again."""
    receipt = child.what[2]
    return _without(state, Trouble.CHILD_KILLED)._replace(
        children=others,
        queue=_sorted((*state.queue, child.what[0])),
        running=tuple(step for step in state.running if step[1] != receipt),
    )


def _ended(state: State) -> State:
    """Return the state after the worker's first life ended, its steps and its children with it."""
    gone = [child for child in state.children if child.what[1] == _FIRST]
    return state._replace(
        children=tuple(child for child in state.children if child.what[1] != _FIRST),
        running=tuple(step for step in state.running if not step[1].startswith(_FIRST)),
        queue=_sorted((*state.queue, *(child.what[0] for child in gone))),
    )


def _with(state: State, place: int, process: Process | None) -> State:
    """Return the state in which a scheduler does something else."""
    before, after = state.schedulers[:place], state.schedulers[place + 1 :]
    return state._replace(schedulers=(*before, process, *after))


def _without(state: State, trouble: Trouble) -> State:
    return state._replace(left=state.left - {trouble})


def _sorted(items: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted(items))


def _is_end(entry: HistoryEntry) -> bool:
    return entry.kind is EventKind.ENDED
