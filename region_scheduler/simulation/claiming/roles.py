"""What the processes of the model do: the product's decisions, through its own commit gate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.ids import ClaimId, Incarnation, ReceiptId, RunId, TaskId, task_id
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import (
    EventKind,
    Exit,
    ExitKind,
    HistoryEntry,
    Holder,
    RetryPolicy,
    Task,
    TaskSpec,
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
from region_scheduler.simulation.claiming.state import Message, Process
from region_scheduler.simulation.exploration import Answers

_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)
_REGION: Final = "here"
_RUN: Final = RunId("run")
_OBSERVER: Final = Incarnation("observer:0")


@dataclass(frozen=True)
class Rules:
    """The decisions under test; a test breaks one to see that it would be found.

    Attributes:
        claim, start, complete, requeue, lose, unlock: As in `domain.transitions`.
        is_deadline_kept: Steps end when their lease is over.
    """

    claim: Callable[..., Task] = claim
    start: Callable[..., Task] = start
    complete: Callable[..., Task] = complete
    requeue: Callable[..., Task] = requeue
    lose: Callable[..., Task] = lose
    unlock: Callable[..., Task] = unlock
    is_deadline_kept: bool = True


class Values:
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
            ends = tuple(entry.receipt_id for entry in value.history if is_end(entry))
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


class Roles:
    """The scripts of all processes.

    Args:
        rules: The decisions.
        values: What numbers stand for.
        is_chain: The second task needs the first.
    """

    def __init__(self, rules: Rules, values: Values, is_chain: bool) -> None:
        self.rules = rules
        self._values = values
        self._is_chain = is_chain

    def script(self, process: Process) -> Callable[[Answers], None]:
        """Return what a process does from its beginning to its end."""
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
        stamp = Stamp(_OBSERVER, _AT)
        back = partial(self.rules.requeue, token=token, reason="timed out", stamp=stamp)
        self._committed(answers, n, back, known)

    def _unlock(self, answers: Answers) -> None:
        """Read the dependent first, then its predecessor; unlock it if that is done."""
        if not self._is_chain:
            return
        dependent = answers.ask("read", id_of(1))
        before = answers.ask("read", id_of(0))
        seen = {before.id: str(before.token)} if before.state is TaskState.DONE else {}
        free = partial(self.rules.unlock, seen=seen, stamp=Stamp("settler", _AT))
        self._committed(answers, 1, free, self._values.number(dependent))

    def _committed(
        self, answers: Answers, n: int, decide: Callable[[Task], Task], known: int | None = None
    ) -> Task | None:
        """Commit as every role does, beginning with a value that was read; None if in vain."""
        value = None if known is None else self._values.task(known)
        try:
            return commit_one(_Store(answers), Change(id_of(n), decide, known=value))
        except RegionSchedulerError:
            return None


_IDS: Final = tuple(task_id(_RUN, str(n)) for n in range(2))


def id_of(n: int) -> TaskId:
    """Return the id of the task with a number."""
    return _IDS[n]


def number_of(id_: str) -> int:
    """Return the number of the task with an id."""
    return _IDS.index(TaskId(id_))


def task_at_first(n: int, waits: bool) -> Task:
    """Return a task as it was admitted; one that waits for nothing is ready."""
    return Task(
        id=id_of(n),
        rev="0",
        run=_RUN,
        tenant="acme",
        spec=TaskSpec(
            name=str(n),
            runner="simulate",
            region=_REGION,
            allowed_regions=(_REGION,),
            retry=RetryPolicy(losses_limit=99),
        ),
        needs=1 if waits else 0,
        region=_REGION,
        state=TaskState.PENDING if waits else TaskState.READY,
    )


def is_end(entry: HistoryEntry) -> bool:
    """Say whether an entry tells of the end of an attempt that its holder reported."""
    return entry.kind is EventKind.ENDED
