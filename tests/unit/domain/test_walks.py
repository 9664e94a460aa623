"""Whatever anybody tries, in whatever order, with whatever token: what holds after every step."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from region_scheduler.domain.cancel import cancel
from region_scheduler.domain.ids import ClaimId, Incarnation, ReceiptId
from region_scheduler.domain.states import HELD, SATISFYING, TaskState, move
from region_scheduler.domain.task import (
    EventKind,
    Exit,
    ExitKind,
    Holder,
    OnLoss,
    Task,
    Token,
    Verdict,
)
from region_scheduler.domain.transitions import (
    answer,
    claim,
    clear,
    complete,
    lose,
    record_verdict,
    request_stop,
    requeue,
    resume,
    start,
    unlock,
)
from region_scheduler.errors import Fenced, IllegalMove, LostRace
from tests.unit.domain.samples import AT, PREDECESSOR, SCHEDULER, STAMP, a_spec, a_task

WORKER = Incarnation("worker:1")


class Walk(RuleBasedStateMachine):
    """Actors keep every token and receipt that they ever saw, and try them again at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.task = a_task(spec=a_spec(on_loss=OnLoss.INSPECT))
        self.tokens = [Token()]
        self.receipts = [ReceiptId("receipt-0")]
        self.completed: list[ReceiptId] = []

    def _try(self, act: Any, *arguments: Any) -> bool:
        before: Task = self.task
        try:
            after: Task = act(before, *arguments)
        except (Fenced, LostRace):
            return False
        except IllegalMove as error:
            # No act may even propose a move that the table does not have.
            raise AssertionError(str(error)) from error
        if after is before:
            return False
        if after.state is not before.state:
            move(before.state, after.state)
        assert after.seq == before.seq + 1
        assert after.token.number - before.token.number in {0, 1}
        assert (after.token == before.token) == (after.token.number == before.token.number)
        if before.state is TaskState.RUNNING and after.state is not TaskState.RUNNING:
            is_final = after.state in SATISFYING | {TaskState.FAILED, TaskState.CANCELLED}
            assert (after.token == before.token) == is_final
        self.task = after
        self.tokens.append(after.token)
        return True

    @rule()
    def unlock(self) -> None:
        self._try(unlock, {PREDECESSOR: "3/abc"}, STAMP)

    @rule(number=st.integers(0, 5))
    def claim(self, number: int) -> None:
        self._try(claim, ClaimId(f"claim-{self.task.seq}-{number}"), SCHEDULER, "eu", AT)

    @rule(choice=st.randoms(use_true_random=False), is_new=st.booleans())
    def start(self, choice: Any, is_new: bool) -> None:
        if is_new:
            self.receipts.append(ReceiptId(f"receipt-{len(self.receipts)}"))
        receipt = self.receipts[-1] if is_new else choice.choice(self.receipts)
        token = choice.choice(self.tokens[-3:])
        started = self._try(start, token, Holder(WORKER, receipt), AT)
        assert not started or self.task.attempt == len(
            [e for e in self.task.history if e.kind is EventKind.STARTED]
        )

    @rule(choice=st.randoms(use_true_random=False), kind=st.sampled_from(ExitKind))
    def complete(self, choice: Any, kind: ExitKind) -> None:
        receipt = choice.choice(self.receipts[-3:])
        token = choice.choice(self.tokens[-3:])
        if self._try(complete, token, Holder(WORKER, receipt), Exit(kind=kind), AT):
            assert receipt not in self.completed
            self.completed.append(receipt)

    @rule(choice=st.randoms(use_true_random=False), verdict=st.sampled_from(Verdict))
    def record_verdict(self, choice: Any, verdict: Verdict) -> None:
        holder = Holder(WORKER, choice.choice(self.receipts[-3:]))
        self._try(record_verdict, choice.choice(self.tokens[-3:]), holder, verdict, AT)

    @rule(choice=st.randoms(use_true_random=False))
    def requeue(self, choice: Any) -> None:
        self._try(requeue, choice.choice(self.tokens[-3:]), "hand-back", STAMP)

    @rule(choice=st.randoms(use_true_random=False))
    def lose(self, choice: Any) -> None:
        self._try(lose, choice.choice(self.tokens[-3:]), self.task.holder, "lease over", STAMP)

    @rule(reason=st.sampled_from(["cancel", "cap", "clear"]))
    def request_stop(self, reason: str) -> None:
        self._try(request_stop, reason, STAMP)

    @rule(is_yes=st.booleans())
    def answer(self, is_yes: bool) -> None:
        self._try(answer, is_yes, {}, "by anna", STAMP)

    @rule()
    def resume(self) -> None:
        self._try(resume, STAMP)

    @rule(back=st.integers(0, 1))
    def clear(self, back: int) -> None:
        self._try(clear, self.task.submission - back, STAMP)

    @rule()
    def cancel(self) -> None:
        self._try(cancel, "cancel", STAMP)

    @invariant()
    def only_a_held_task_has_a_holder(self) -> None:
        assert (self.task.holder is not None) == (self.task.state in HELD)

    @invariant()
    def only_a_running_task_is_asked_to_stop(self) -> None:
        assert self.task.stop_requested is None or self.task.state is TaskState.RUNNING

    @invariant()
    def the_history_ends_where_the_task_is(self) -> None:
        assert not self.task.history or self.task.history[-1].state is self.task.state

    @invariant()
    def a_doubt_is_inspected_before_anything_else(self) -> None:
        if self.task.state is TaskState.CLAIMED and self.task.is_inspect:
            back = requeue(self.task, self.task.token, "hand-back", STAMP)
            assert back.state is TaskState.IN_DOUBT

    @invariant()
    def at_most_one_completion_is_accepted(self) -> None:
        done = [e for e in self.task.history if e.state in SATISFYING]
        assert len(done) <= 1


TestWalk = Walk.TestCase
TestWalk.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
