"""Every move of a task: where it leads from each state, whom it refuses, what a repeat does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from region_scheduler.domain.cancel import cancel
from region_scheduler.domain.ids import NO_RECEIPT, ClaimId
from region_scheduler.domain.states import FINAL, HELD, TaskState
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
    LOCK_LOST,
    Stamp,
    answer,
    claim,
    complete,
    lose,
    record_verdict,
    request_stop,
    requeue,
    resume,
    start,
    unlock,
)
from region_scheduler.errors import Fenced, LostRace
from tests.unit.domain.samples import (
    AT,
    CLAIM,
    IN_STATE,
    LATER,
    OTHER,
    PREDECESSOR,
    SCHEDULER,
    STAMP,
    WORKER,
    a_spec,
    a_task,
    claimed,
    ended,
    failed,
    held_before,
    in_doubt,
    ready,
    running,
)

S = TaskState
SAME = "same"
OK = Exit(kind=ExitKind.OK, outputs={"vpc": "vpc-1"})


# Each act as its rightful author would do it on the state at hand.
ACTS: dict[str, Callable[[Task], Task]] = {
    "unlock": lambda t: unlock(t, {PREDECESSOR: "3/abc"}, STAMP),
    "claim": lambda t: claim(t, ClaimId("claim-2"), SCHEDULER, "eu", AT),
    "start": lambda t: start(t, t.token, OTHER, AT),
    "complete": lambda t: complete(t, t.token, WORKER, OK, AT),
    "requeue": lambda t: requeue(t, t.token, "hand-back", STAMP),
    "lose": lambda t: lose(t, t.token, t.holder, "lease over", STAMP),
    "stop": lambda t: request_stop(t, "cap", STAMP),
    "answer yes": lambda t: answer(t, True, {}, "by anna", STAMP),
    "answer no": lambda t: answer(t, False, {}, "by anna", STAMP),
    "resume": lambda t: resume(t, STAMP),
    "cancel": lambda t: cancel(t, "cancel", STAMP),
}
# What each act leads to; a state that is not named refuses.
LEADS: dict[str, dict[TaskState, TaskState | str]] = {
    "unlock": dict.fromkeys(S, SAME) | {S.PENDING: S.READY},
    "claim": {S.READY: S.CLAIMED, S.IN_DOUBT: S.CLAIMED},
    "start": {S.CLAIMED: S.RUNNING},
    "complete": {
        S.RUNNING: S.DONE,
        # Its own receipt is in the history already: done, failed and so on, it is not done twice.
        S.DONE: SAME,
        S.SKIPPED: SAME,
        S.FAILED: SAME,
        S.AWAITING: SAME,
    },
    "requeue": {S.CLAIMED: S.READY},
    "lose": {S.CLAIMED: S.READY, S.RUNNING: S.READY},
    "stop": dict.fromkeys(S, SAME) | {S.RUNNING: S.RUNNING},
    "answer yes": dict.fromkeys(S, SAME) | {S.AWAITING: S.DONE},
    "answer no": dict.fromkeys(S, SAME) | {S.AWAITING: S.FAILED},
    "resume": dict.fromkeys(S, SAME) | {S.FAILED: S.READY, S.CANCELLED: S.PENDING},
    "cancel": dict.fromkeys(S, S.CANCELLED) | dict.fromkeys(FINAL, SAME) | {S.RUNNING: S.RUNNING},
}


@pytest.mark.parametrize("state", list(S))
@pytest.mark.parametrize("act", list(ACTS))
def test_each_act_from_each_state(act: str, state: TaskState) -> None:
    task = IN_STATE[state]()
    expected = LEADS[act].get(state)

    if expected is None:
        with pytest.raises((Fenced, LostRace)):
            ACTS[act](task)
        return
    after = ACTS[act](task)
    if expected == SAME:
        assert after is task
    else:
        assert after is not task
        assert after.state is expected
        assert after.seq == task.seq + 1
        assert (after.holder is not None) == (after.state in HELD)


@pytest.mark.parametrize("state", list(S))
def test_samples_are_in_their_states(state: TaskState) -> None:
    task = IN_STATE[state]()

    assert task.state is state
    assert not task.history or task.history[-1].state is state


# ------------------------------------------------------------------------------------- unlock


def test_unlock_records_the_tokens_it_saw() -> None:
    task = ready()

    assert task.history[-1].kind is EventKind.UNLOCKED
    assert task.history[-1].seen == {PREDECESSOR: "3/abc"}


def test_unlock_needs_exactly_its_predecessors() -> None:
    with pytest.raises(LostRace):
        unlock(a_task(needs=2), {PREDECESSOR: "3/abc"}, STAMP)
    with pytest.raises(LostRace):
        unlock(a_task(needs=0), {PREDECESSOR: "3/abc"}, STAMP)
    assert unlock(a_task(needs=0), {}, STAMP).state is S.READY


# -------------------------------------------------------------------------------------- claim


def test_a_claim_raises_the_token_and_costs_no_attempt() -> None:
    before, after = ready(), claimed()

    assert after.token == Token(before.token.number + 1, CLAIM)
    assert after.holder == Holder(SCHEDULER, NO_RECEIPT)
    assert after.attempt == before.attempt == 0


@pytest.mark.parametrize("later", [claimed, running], ids=["claimed", "running"])
def test_a_repeated_claim_knows_its_own_by_the_claim_id(later: Callable[[], Task]) -> None:
    task = later()

    assert claim(task, CLAIM, SCHEDULER, "eu", LATER) is task


def test_the_same_scheduler_with_another_claim_id_lost() -> None:
    with pytest.raises(LostRace) as lost:
        claim(claimed(), ClaimId("claim-2"), SCHEDULER, "eu", AT)
    assert SCHEDULER in lost.value.winner


def test_a_claim_of_another_regions_task_is_lost() -> None:
    with pytest.raises(LostRace):
        claim(ready(), CLAIM, SCHEDULER, "us", AT)


def test_a_doubtful_task_is_claimed_to_be_inspected() -> None:
    task = claim(in_doubt(), ClaimId("claim-2"), SCHEDULER, "eu", AT)

    assert task.is_inspect
    assert not claimed().is_inspect


# -------------------------------------------------------------------------------------- start


def test_a_start_counts_the_attempt_and_keeps_the_token() -> None:
    before, after = claimed(), running()

    assert after.token == before.token
    assert after.attempt == 1
    assert after.holder == WORKER
    assert after.history[-1].receipt_id == WORKER.receipt_id


def test_a_repeated_start_is_known_by_the_receipt_alone() -> None:
    task = running()

    assert start(task, task.token, WORKER, LATER) is task
    same_worker_again = Holder(WORKER.incarnation, OTHER.receipt_id)
    with pytest.raises(Fenced):
        start(task, task.token, same_worker_again, LATER)


@pytest.mark.parametrize("wrong", [Token(1, ClaimId("x")), Token(0, CLAIM), Token(2, CLAIM)])
def test_both_halves_of_a_token_count(wrong: Token) -> None:
    assert claimed().token == Token(1, CLAIM)
    acts: list[Callable[[], Task]] = [
        lambda: start(claimed(), wrong, WORKER, AT),
        lambda: complete(running(), wrong, WORKER, OK, AT),
        lambda: lose(running(), wrong, running().holder, "lease over", STAMP),
        lambda: requeue(claimed(), wrong, "hand-back", STAMP),
    ]
    for act in acts:
        with pytest.raises(Fenced):
            act()


# ----------------------------------------------------------------------------------- complete


# Where each way to end leads, and whether the token is moved: only final states keep it.
ENDS = [
    (ExitKind.OK, S.DONE, False),
    (ExitKind.UNCHANGED, S.SKIPPED, False),
    (ExitKind.RETRYABLE, S.READY, True),
    (ExitKind.CAPPED, S.READY, True),
    (ExitKind.PERMANENT, S.FAILED, False),
    (ExitKind.CANCELLED, S.CANCELLED, False),
    (ExitKind.AWAIT, S.AWAITING, True),
    (ExitKind.HAND_BACK, S.READY, True),
    (ExitKind.IN_DOUBT, S.IN_DOUBT, True),
    (ExitKind.FENCED, S.READY, True),
]


@pytest.mark.parametrize(("kind", "state", "is_token_moved"), ENDS)
def test_how_an_attempt_ends(kind: ExitKind, state: TaskState, is_token_moved: bool) -> None:
    before, after = running(), ended(kind)

    assert after.state is state
    assert after.holder is None
    assert after.token == (before.token.left() if is_token_moved else before.token)
    assert after.history[-1].token == before.token
    assert after.history[-1].detail == kind


def test_all_exit_kinds_are_listed_above() -> None:
    assert {kind for kind, _, _ in ENDS} == set(ExitKind)


@pytest.mark.parametrize(
    ("on_loss", "state"),
    [(OnLoss.RETRY, S.READY), (OnLoss.INSPECT, S.IN_DOUBT), (OnLoss.HOLD, S.AWAITING)],
)
def test_a_step_that_was_ended_with_its_lease_follows_the_rule_for_losses(
    on_loss: OnLoss, state: TaskState
) -> None:
    after = ended(ExitKind.FENCED, spec=a_spec(on_loss=on_loss))

    assert (after.state, after.losses, after.retries_used) == (state, 0, 0)


def test_only_success_brings_outputs() -> None:
    for kind in ExitKind:
        task = running()
        after = complete(task, task.token, WORKER, replace(OK, kind=kind), AT)
        is_success = after.state in {S.DONE, S.SKIPPED}
        assert after.outputs == ({"vpc": "vpc-1"} if is_success else {})


def test_a_completion_of_another_receipt_is_fenced() -> None:
    task = running()

    with pytest.raises(Fenced):
        complete(task, task.token, OTHER, OK, AT)


@pytest.mark.parametrize("kind", list(ExitKind))
def test_a_repeated_completion_finds_its_receipt(kind: ExitKind) -> None:
    task = ended(kind)

    assert complete(task, held_before(task), WORKER, OK, LATER) is task


def test_a_late_completion_after_a_loss_counts_for_nothing() -> None:
    task = running()
    lost = lose(task, task.token, task.holder, "lease over", STAMP)

    with pytest.raises(Fenced):
        complete(lost, task.token, WORKER, OK, LATER)


def test_a_task_that_a_living_worker_started_is_not_taken_for_its_dead_scheduler() -> None:
    """A start keeps the token: the observer saw the claim of a dead scheduler, not this."""
    seen, now = claimed(), running()
    assert seen.token == now.token

    with pytest.raises(Fenced):
        lose(now, seen.token, seen.holder, "lease over", STAMP)


@pytest.mark.parametrize("kind", [ExitKind.RETRYABLE, ExitKind.CAPPED])
def test_retries_run_out(kind: ExitKind) -> None:
    task = ended(kind)
    assert (task.retries_used, task.retry_after_s) == (1, 30.0)

    task = ended_again(task, kind)
    assert (task.state, task.retries_used) == (S.READY, 2)

    task = ended_again(task, kind)
    assert (task.state, task.retries_used) == (S.FAILED, 3)


def test_hand_backs_cost_no_retry() -> None:
    task = ended(ExitKind.HAND_BACK)
    for _ in range(10):
        task = ended_again(task, ExitKind.HAND_BACK)

    assert (task.state, task.retries_used, task.losses) == (S.READY, 0, 0)


@pytest.mark.parametrize("kind", [ExitKind.RETRYABLE, ExitKind.CAPPED, ExitKind.HAND_BACK])
def test_an_inspecting_attempt_goes_back_to_doubt(kind: ExitKind) -> None:
    task = ended_again(in_doubt(), kind)

    assert task.state is S.IN_DOUBT
    assert task.is_inspect


# -------------------------------------------------------------------------- requeue and loss


def test_a_requeue_moves_the_token_and_its_repeat_changes_nothing() -> None:
    task = claimed()
    after = requeue(task, task.token, "dispatch time-out", STAMP)

    assert after.token == task.token.left()
    assert requeue(after, task.token, "dispatch time-out", STAMP) is after


def test_a_requeue_never_takes_a_running_task() -> None:
    task = running()

    with pytest.raises(Fenced):
        requeue(task, task.token, "dispatch time-out", STAMP)


def test_a_claimed_inspection_goes_back_to_doubt() -> None:
    task = claim(in_doubt(), ClaimId("claim-2"), SCHEDULER, "eu", AT)

    assert requeue(task, task.token, "hand-back", STAMP).state is S.IN_DOUBT
    assert lose(task, task.token, task.holder, "lease over", STAMP).state is S.IN_DOUBT


def test_contention_cannot_grow_a_document() -> None:
    task = ready()
    for n in range(300):
        task = claim(task, ClaimId(f"claim-{n}"), SCHEDULER, "eu", AT)
        task = requeue(task, task.token, f"{LOCK_LOST}acme/aws:organizations", STAMP)

    assert [entry.kind for entry in task.history] == [
        EventKind.UNLOCKED,
        EventKind.CLAIMED,
        EventKind.REQUEUED,
    ]
    assert task.slots_lost == 300
    assert task.token.number == 600


def test_starts_and_losses_are_never_forgotten() -> None:
    task = ready()
    for n in range(2):
        task = claim(task, ClaimId(f"claim-{n}"), SCHEDULER, "eu", AT)
        task = requeue(task, task.token, "hand-back", STAMP)
        task = claim(task, ClaimId(f"again-{n}"), SCHEDULER, "eu", AT)
        task = start(task, task.token, WORKER, AT)
        task = lose(task, task.token, task.holder, "lease over", STAMP)

    kinds = [entry.kind for entry in task.history]
    assert kinds.count(EventKind.STARTED) == kinds.count(EventKind.LOST) == 2


def test_only_lost_locks_count_towards_a_reservation_and_a_start_clears_them() -> None:
    task = claimed()
    task = requeue(task, task.token, "dispatch time-out", STAMP)
    assert task.slots_lost == 0

    task = claim(task, ClaimId("claim-2"), SCHEDULER, "eu", AT)
    task = requeue(task, task.token, f"{LOCK_LOST}aws:organizations", STAMP)
    assert task.slots_lost == 1

    task = claim(task, ClaimId("claim-3"), SCHEDULER, "eu", AT)
    assert start(task, task.token, WORKER, AT).slots_lost == 0


@pytest.mark.parametrize(
    ("on_loss", "state", "is_inspect"),
    [
        (OnLoss.RETRY, S.READY, False),
        (OnLoss.INSPECT, S.IN_DOUBT, True),
        (OnLoss.HOLD, S.AWAITING, True),
    ],
)
def test_what_follows_a_loss(on_loss: OnLoss, state: TaskState, is_inspect: bool) -> None:
    task = running(spec=a_spec(on_loss=on_loss))
    after = lose(task, task.token, task.holder, "lease over", STAMP)

    assert (after.state, after.is_inspect) == (state, is_inspect)
    assert after.token == task.token.left()
    assert after.holder is None
    assert (after.losses, after.retries_used) == (1, 0)


def test_losses_run_out() -> None:
    task = ready()
    for n in range(3):
        task = claim(task, ClaimId(f"claim-{n}"), SCHEDULER, "eu", AT)
        task = start(task, task.token, WORKER, AT)
        task = lose(task, task.token, task.holder, "lease over", STAMP)

    assert (task.state, task.losses) == (S.FAILED, 3)


def test_a_loss_after_a_cancel_ends_cancelled_with_the_doubt_recorded() -> None:
    task = cancel(running(), "cancel", STAMP)
    after = lose(task, task.token, task.holder, "lease over", STAMP)

    assert (after.state, after.is_inspect) == (S.CANCELLED, True)


def test_inspections_run_out_and_a_person_is_asked() -> None:
    task = in_doubt(
        spec=a_spec(on_loss=OnLoss.INSPECT, retry=replace(a_spec().retry, losses_limit=9))
    )
    for n in range(2):
        task = claim(task, ClaimId(f"claim-{n}"), SCHEDULER, "eu", AT)
        task = start(task, task.token, WORKER, AT)
        task = lose(task, task.token, task.holder, "lease over", STAMP)

    assert (task.state, task.inspections) == (S.AWAITING, 2)


# ------------------------------------------------------------------------------------ verdict


def test_a_verdict_lets_the_attempt_go_on() -> None:
    task = inspecting()
    after = record_verdict(task, task.token, WORKER, Verdict.PARTLY, AT)

    assert (after.state, after.is_inspect) == (S.RUNNING, False)
    assert (after.history[-1].kind, after.history[-1].detail) == (EventKind.VERDICT, "partly")
    assert record_verdict(after, task.token, WORKER, Verdict.PARTLY, LATER) is after


def test_a_verdict_of_another_is_fenced() -> None:
    task = inspecting()

    with pytest.raises(Fenced):
        record_verdict(task, task.token, OTHER, Verdict.DONE, AT)
    with pytest.raises(Fenced):
        record_verdict(task, Token(9, CLAIM), WORKER, Verdict.DONE, AT)


# ------------------------------------------------------------------- stop, cancel, resume


def test_the_first_wish_to_stop_stands_and_moves_no_token() -> None:
    task = running()
    after = request_stop(task, "cap", Stamp("reaper", AT))

    assert after.stop_requested is not None
    assert (after.stop_requested.reason, after.stop_requested.by) == ("cap", "reaper")
    assert after.token == task.token
    assert cancel(after, "cancel", STAMP) is after


def test_a_cancel_moves_the_token_of_what_nobody_runs() -> None:
    task = claimed()
    after = cancel(task, "cancel", STAMP)

    assert after.token == task.token.left()
    with pytest.raises(Fenced):
        start(after, task.token, WORKER, AT)


def test_a_cancelled_doubt_stays_recorded() -> None:
    assert cancel(in_doubt(), "cancel", STAMP).is_inspect


def test_resume_gives_a_fresh_budget() -> None:
    task = resume(ended_again(ended(ExitKind.RETRYABLE), ExitKind.PERMANENT), STAMP)

    assert (task.state, task.retries_used, task.losses, task.retry_after_s) == (S.READY, 0, 0, 0.0)
    assert task.reason == ""


def test_resume_moves_the_token_so_that_old_holders_are_refused() -> None:
    task = failed()

    assert resume(task, STAMP).token.number == task.token.number + 1


def test_an_answer_brings_outputs() -> None:
    task = answer(IN_STATE[S.AWAITING](), True, {"ticket": "T-1"}, "by anna", STAMP)

    assert (task.outputs, task.reason) == ({"ticket": "T-1"}, "by anna")


def ended_again(task: Task, kind: ExitKind) -> Task:
    """Return the task after one more attempt, under a receipt of its own."""
    holder = Holder(WORKER.incarnation, type(WORKER.receipt_id)(f"receipt-{task.seq}"))
    task = claim(task, ClaimId(f"claim-{task.seq}"), SCHEDULER, "eu", AT)
    task = start(task, task.token, holder, AT)
    return complete(task, task.token, holder, Exit(kind=kind), AT)


def inspecting() -> Task:
    task = claim(in_doubt(), ClaimId("claim-2"), SCHEDULER, "eu", AT)
    return start(task, task.token, WORKER, AT)
