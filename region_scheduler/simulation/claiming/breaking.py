"""What stands in the place of the product's decisions and of the model's rules in `mutants`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from region_scheduler.commit import gate
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import Holder, Task, Token
from region_scheduler.domain.transitions import claim, complete, lose, requeue, start, unlock
from region_scheduler.ports.documents import WriteResult, Written
from region_scheduler.simulation.claiming.model import ClaimModel
from region_scheduler.simulation.claiming.roles import Roles, number_of
from region_scheduler.simulation.claiming.state import FIRST, State, killed

# ------------------------------------------------------------------------------------ decisions


def claim_whatever_state(task: Task, **more: Any) -> Task:
    """Claim a task as if it were ready."""
    if task.token.claim_id == more["claim_id"]:
        return task
    return claim(replace(task, state=TaskState.READY, holder=None), **more)


def start_any_receipt(task: Task, token: Token, holder: Holder, **more: Any) -> Task:
    """Start a task over that another receipt started."""
    if task.token == token and task.holder is not None and task.holder.receipt_id:
        task = replace(task, holder=holder)
    return start(task, token, holder, **more)


def start_same_worker(task: Task, token: Token, holder: Holder, **more: Any) -> Task:
    """Take a start under another receipt of the same worker for this one."""
    current = task.holder if task.state is TaskState.RUNNING else None
    if task.token == token and current and current.incarnation == holder.incarnation:
        return task
    return start(task, token, holder, **more)


def start_any_token(task: Task, token: Token, holder: Holder, **more: Any) -> Task:
    """Start under the token that the task has."""
    del token
    return start(task, task.token, holder, **more)


def complete_by_anyone(task: Task, token: Token, holder: Holder, **more: Any) -> Task:
    """Complete the attempt that runs, whoever asks."""
    if task.state is TaskState.RUNNING and task.holder is not None:
        return complete(task, task.token, task.holder, **more)
    return complete(task, token, holder, **more)


def complete_again(task: Task, token: Token, holder: Holder, **more: Any) -> Task:
    """Accept a completion a second time."""
    if task.state is TaskState.DONE and task.token == token:
        running = replace(task, state=TaskState.RUNNING, holder=holder, history=())
        again = complete(running, token, holder, **more)
        return replace(again, history=(*task.history, *again.history))
    return complete(task, token, holder, **more)


def requeue_started(task: Task, token: Token, **more: Any) -> Task:
    """Requeue a running task as if it were only claimed."""
    if task.state is TaskState.RUNNING and task.token == token:
        task = replace(task, state=TaskState.CLAIMED)
    return requeue(task, token, **more)


def lose_by_token(task: Task, token: Token, holder: Holder, **more: Any) -> Task:
    """Take the task from whoever holds it under the token seen."""
    del holder
    return lose(task, token, task.holder, **more)


def lose_whoever_holds(task: Task, token: Token, holder: Holder, **more: Any) -> Task:
    """Take the task from whoever holds it."""
    if task.holder is None:
        return lose(task, token, holder, **more)
    return lose(task, task.token, task.holder, **more)


def unlock_whatever_state(task: Task, **more: Any) -> Task:
    """Make any task ready."""
    if task.state is not TaskState.PENDING:
        task = replace(task, state=TaskState.PENDING, holder=None, token=task.token.left())
    return unlock(task, **more)


def unlock_without_in_degree(task: Task, **more: Any) -> Task:
    """Unlock with as many predecessors as were seen."""
    return unlock(replace(task, needs=len(more["seen"])), **more)


# -------------------------------------------------------------------------------- gate and store

_answered = vars(gate._Try)["answered"]


def taken_for_success(result: WriteResult) -> Any:
    """Return what takes an answer of one kind for a write that was done."""

    def answered(one: Any, before: Any, after: Any, answer: Written[Any]) -> None:
        if answer.result is result:
            one.outcome = gate.Outcome(gate.Fate.COMMITTED, after)
        else:
            _answered(one, before, after, answer)

    return answered


_written = vars(ClaimModel)["_written"]


def written_over(world: Any, state: State, before: Task, after: Task) -> Any:
    """Write whatever the revision is."""
    del before
    current = world._values.task(state.tasks[number_of(after.id)])
    return _written(world, state, current, after)


# --------------------------------------------------------------------------- worker and observer

_attempt, _verdicts = vars(Roles)["_attempt"], vars(ClaimModel)["_verdicts"]
_dead, _lease = vars(ClaimModel)["_dead"], vars(ClaimModel)["_lease"]


def step_first(roles: Any, answers: Any, message: Any, *more: Any) -> None:
    """Begin the step, then start the attempt."""
    answers.ask("begin", message.task, more[1])
    _attempt(roles, answers, message, *more)


def never(*_: Any) -> bool:
    """Say no."""
    return False


def always(*_: Any) -> bool:
    """Say yes."""
    return True


def lists_all(world: Any, state: State) -> set[Any]:
    """List whatever receipt a task names."""
    tasks = [world._values.task(number) for number in state.tasks]
    return {task.holder.receipt_id for task in tasks if task.holder is not None}


def lists_none(*_: Any) -> set[str]:
    """List nothing yet."""
    return set()


def lists_begun(world: Any, state: State) -> set[str]:
    """List only the receipts of steps that have begun."""
    del world
    return {receipt for _, receipt in state.running}


def no_sweep(world: Any, state: State, task: Task) -> Iterator[Any]:
    """Yield every verdict but that on what a fenced holder has."""
    for verdict in _verdicts(world, state, task):
        if verdict[1] != "has a fenced holder":
            yield verdict


def dead_if_silent(world: Any, state: State) -> set[str]:
    """Count a paused worker among the dead."""
    found: set[str] = _dead(world, state)
    return found | {FIRST} if state.is_paused else found


def renews_though_fenced(world: Any, state: State) -> Iterator[Any]:
    """Let a fenced worker renew its lease, too."""
    yield from _lease(world, state)
    if state.is_over and not state.is_paused and FIRST in state.fenced:
        yield f"{FIRST} renews its lease, though it is fenced", state._replace(is_over=False)


def killed_alone(state: State, child: Any, others: Any) -> State:
    """Let a child die and its step live."""
    return killed(state, child, others)._replace(running=state.running)
