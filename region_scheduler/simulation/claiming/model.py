"""What can happen to the tasks of the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from region_scheduler.domain.states import CLAIMABLE, TaskState
from region_scheduler.domain.task import Task
from region_scheduler.ports.documents import WriteResult, Written
from region_scheduler.simulation.claiming.roles import (
    Roles,
    Rules,
    Values,
    is_end,
    number_of,
    task_at_first,
)
from region_scheduler.simulation.claiming.state import (
    FIRST,
    Message,
    Process,
    State,
    Trouble,
    arranged,
    ended,
    killed,
    publications,
    with_scheduler,
    without,
)
from region_scheduler.simulation.exploration import Call, next_call

_SCHEDULERS: Final = 2
_CHILDREN: Final = 2


class ClaimModel:
    """What can happen to two tasks, or to one.

    Args:
        troubles: What may go wrong, each once.
        is_chain: The second task needs the first.
        rules: The decisions.
        tasks: One or two; a chain has two.
        is_scanning: The observer looks at a task that waits also before it may start.
    """

    def __init__(
        self,
        troubles: frozenset[Trouble] = frozenset(Trouble),
        is_chain: bool = False,
        rules: Rules | None = None,
        *,
        tasks: int = 2,
        is_scanning: bool = False,
    ) -> None:
        self._troubles = troubles
        self._tasks = tasks
        self._is_scanning = is_scanning
        self._is_chain = is_chain
        self._values = Values()
        self._roles = Roles(rules or Rules(), self._values, is_chain)
        self._calls: dict[Process, Call | None] = {}

    def first(self) -> State:
        """Return two tasks that may start, or the first of a chain, and nobody doing anything."""
        tasks = tuple(
            self._values.number(task_at_first(n, waits=self._is_chain and n > 0))
            for n in range(self._tasks)
        )
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
            left=self._troubles,
            problem="",
        )

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield what can happen next."""
        yield from self._late_writes(state)
        yield from self._schedulers(state)
        yield from self._observer(state)
        yield from self._worker(state)

    def broken(self, state: State) -> str:
        """Return which of I1, I2, I4 and I7 a state breaks."""
        if state.problem:
            return state.problem
        tasks = [task for task, _ in state.running]
        if len(set(tasks)) < len(tasks):
            return f"I1: two steps of one task run at once: {state.running}"
        for n, number in enumerate(state.tasks):
            task = self._values.task(number)
            if problem := _under_another_token(n, task):
                return problem
            history = task.history
            ends = [e for e in history if is_end(e) and e.state is TaskState.DONE]
            if len(ends) > 1:
                return f"I4: task {n} has {len(ends)} accepted completions"
        return ""

    def unfinished(self, state: State) -> str:
        """Return which task is not done where nothing can happen any more."""
        states = [self._values[number].state for number in state.tasks]
        stuck = [f"task {n} is {s}" for n, s in enumerate(states) if s is not TaskState.DONE]
        return f"I3: nothing moves, and {', '.join(stuck)}" if stuck else ""

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
                dead = without(with_scheduler(state, s, None), Trouble.SCHEDULER_KILLED)
                yield f"{name} is killed", dead._replace(lives=lives)
            if process is not None:
                for event, after, going in self._called(state, process):
                    yield f"{name} {event}", with_scheduler(after, s, going)
                continue
            for n, number in enumerate(state.tasks):
                task = self._values.task(number)
                if task.state in CLAIMABLE:
                    # Of no two tries: until the number has moved it does not try again.
                    claim_id = f"{name}/{n}.{task.token.number}"
                    picked = Process("promote", (n, name, claim_id, number))
                    yield (
                        f"{name} reads task {n}, which is {task.state}",
                        with_scheduler(state, s, picked),
                    )

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
        if self._is_chain and self._is_unlockable(state):
            yield "observer: task 1 may be unlocked", state._replace(observer=Process("unlock", ()))

    def _fencings(self, state: State) -> Iterator[tuple[str, State]]:
        for name in sorted(self._dead(state) - state.fenced):
            yield f"observer fences {name}", state._replace(fenced=state.fenced | {name})

    def _dead(self, state: State) -> set[str]:
        """Return whose lease is over."""
        dead = {
            f"scheduler-{s}:{life}" for s, lives in enumerate(state.lives) for life in range(lives)
        }
        return dead | {FIRST} if state.is_over else dead

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
                yield "requeue", "timed out", without(state, Trouble.MESSAGE_SLOW)
        is_beating = holder.incarnation != FIRST or not (state.is_paused or state.is_over)
        is_listed = holder.receipt_id in self._listed(state)
        if task.state is TaskState.RUNNING and is_beating and not is_listed:
            yield "lose", "is not in its worker's beats", state

    def _listed(self, state: State) -> set[str]:
        """Return the receipts in the beats: from before the start is sent until its child ends."""
        return {process.what[2] for process in state.children}

    def _is_unpublished(self, state: State, task: Task) -> bool:
        """Say whether nobody was told of a claim, or is any more."""
        told = [*state.queue, *(child.what[0] for child in state.children)]
        is_claiming = any(
            p is not None and p.what[2] == task.token.claim_id for p in state.schedulers
        )
        return not is_claiming and all(m.claim_id != task.token.claim_id for m in told)

    def _is_unlockable(self, state: State) -> bool:
        first, second = (self._values[number].state for number in state.tasks)
        return second is TaskState.PENDING and (self._is_scanning or first is TaskState.DONE)

    def _worker(self, state: State) -> Iterator[tuple[str, State]]:
        yield from self._lease(state)
        if f"worker:{state.worker}" in state.fenced:
            yield f"worker:{state.worker + 1} starts", state._replace(worker=state.worker + 1)
        yield from self._deliveries(state)
        for c, child in enumerate(state.children):
            if state.is_paused and child.what[1] == FIRST:
                continue
            others = state.children[:c] + state.children[c + 1 :]
            for event, after, going in self._called(state, child):
                children = others if going is None else arranged((*others, going))
                yield f"child {child.what[2]} {event}", after._replace(children=children)
            if Trouble.CHILD_KILLED in state.left:
                yield f"child {child.what[2]} is killed", killed(state, child, others)

    def _lease(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield what happens to the lease of the worker's first life; no later one is disturbed."""
        if state.is_paused:
            if not state.is_over:
                rest = () if self._roles.rules.is_deadline_kept else state.running
                yield f"{FIRST}'s lease is over", state._replace(is_over=True, running=rest)
            yield f"{FIRST} goes on", state._replace(is_paused=False)
        elif state.is_over and FIRST not in state.fenced:
            yield f"{FIRST} renews its lease", state._replace(is_over=False)
        elif any(child.what[1] == FIRST for child in state.children) and state.is_over:
            yield f"{FIRST} sees that it is fenced, and ends", ended(state)
        if Trouble.WORKER_PAUSED in state.left:
            paused = without(state, Trouble.WORKER_PAUSED)
            yield f"{FIRST} is paused", paused._replace(is_paused=True)

    def _deliveries(self, state: State) -> Iterator[tuple[str, State]]:
        is_first_well = not (state.is_paused or state.is_over or FIRST in state.fenced)
        lives = [FIRST] if is_first_well else []
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
            taken = taken._replace(children=arranged((*state.children, taker)))
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
            self._calls[process] = next_call(self._roles.script(process), known)
        return self._calls[process]

    def _answers(self, state: State, call: Call) -> Iterator[tuple[str, State, Any]]:
        match call.point:
            case "read":
                (id_,) = call.arguments
                yield (
                    f"reads task {number_of(id_)}",
                    state,
                    self._values[state.tasks[number_of(id_)]],
                )
            case "write":
                yield from self._writes(state, *call.arguments)
            case "publish":
                yield from publications(state, *call.arguments)
            case "begin":
                n, receipt = call.arguments
                is_going = self._may_begin(state, receipt)
                yield "begins its step", self._begun(state, n, receipt, is_going), is_going
            case _:
                step = call.arguments
                rest = tuple(other for other in state.running if other != step)
                yield "ends its step", state._replace(running=rest), step in state.running

    def _may_begin(self, state: State, receipt: str) -> bool:
        """Say whether the deadline of a step is still ahead when it is about to begin."""
        is_out = state.is_over and receipt.startswith(FIRST)
        return not (is_out and self._roles.rules.is_deadline_kept)

    def _begun(self, state: State, n: int, receipt: str, is_going: bool) -> State:
        if not is_going:
            return state
        problem = ""
        holder = self._values.task(state.tasks[n]).holder
        if holder is None or holder.receipt_id != receipt:
            problem = f"I1: a step of task {n} begins whose attempt does not hold it"
        if self._is_chain and n == 1 and self._values[state.tasks[0]].state is not TaskState.DONE:
            problem = "I2: the second task runs before the first is done"
        running = arranged((*state.running, (n, receipt)))
        return state._replace(running=running, problem=state.problem or problem)

    def _writes(self, state: State, before: Task, after: Task) -> Iterator[tuple[str, State, Any]]:
        what = f"writes {after.state} to task {number_of(before.id)}"
        moved, answer = self._written(state, before, after)
        yield what, moved, answer
        unknown: Written[Task] = Written(WriteResult.UNKNOWN)
        if Trouble.REQUEST_LOST in state.left:
            yield f"{what}, not sent", without(state, Trouble.REQUEST_LOST), unknown
        if Trouble.ANSWER_LOST in state.left:
            yield f"{what}, answer lost", without(moved, Trouble.ANSWER_LOST), unknown
        if Trouble.APPLIED_LATE in state.left:
            travelling = (self._values.number(before), self._values.number(after))
            late = without(state, Trouble.APPLIED_LATE)._replace(late=(*state.late, travelling))
            yield f"{what}, on its way", late, unknown

    def _written(self, state: State, before: Task, after: Task) -> tuple[State, Written[Task]]:
        n = number_of(before.id)
        if state.tasks[n] != self._values.number(before):
            return state, Written(WriteResult.CONFLICT)
        value = self._values.revised(after)
        tasks = (*state.tasks[:n], self._values.number(value), *state.tasks[n + 1 :])
        return state._replace(tasks=tasks), Written(WriteResult.APPLIED, value)


def _under_another_token(n: int, task: Task) -> str:
    """Say that the attempt which runs was told of another token; empty if not."""
    if task.state is not TaskState.RUNNING or task.holder is None:
        return ""
    _, _, told = (task.holder.receipt_id or "").partition("/")
    if told.split(".")[1] == str(task.token.number):
        return ""
    return f"I7: task {n} runs under {task.token}, started by {task.holder.receipt_id}"
