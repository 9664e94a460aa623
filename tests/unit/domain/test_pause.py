"""Pauses: what they close, until when, and what may pass."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from region_scheduler.domain.pause import (
    EVERYTHING,
    Pause,
    Scope,
    ScopeKind,
    closed_at,
    let_pass,
    lifted,
    paused_again,
)
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.transitions import resume
from tests.unit.domain.samples import AT, IN_STATE, STAMP

RUN = Scope(ScopeKind.RUN, "run1")
HOUR = timedelta(hours=1)


def a_pause(scope: Scope = RUN, **more: Any) -> Pause:
    return replace(Pause(id=scope.key, scope=scope, reason="why", by="anna", at=AT), **more)


def test_a_pause_holds_until_its_end_or_until_it_is_lifted() -> None:
    assert a_pause().holds_at(AT + 1000 * HOUR)
    limited = a_pause(until=AT + HOUR)
    assert limited.holds_at(AT)
    assert not limited.holds_at(AT + HOUR)
    assert not lifted(limited).holds_at(AT)


def test_what_is_closed_is_told_with_its_reason() -> None:
    tenant = Scope(ScopeKind.TENANT, "acme")
    closed = closed_at([a_pause(), a_pause(tenant, until=AT + HOUR), a_pause(EVERYTHING)], AT)

    assert closed.names(ScopeKind.RUN) == ["run1"]
    assert closed.names(ScopeKind.ZONE) == []
    assert closed.why([Scope(ScopeKind.RUN, "other")]) == ""
    assert closed.why([RUN]) == "run paused by anna: why"
    assert "tenant paused by anna until 20" in closed.why([tenant])
    assert closed_at([a_pause(tenant, until=AT + HOUR)], AT + HOUR).reasons == {}


def test_scopes_of_the_same_name_have_different_keys() -> None:
    assert len({Scope(kind, "x").key for kind in ScopeKind}) == len(ScopeKind)


def test_pausing_again_goes_on_while_it_holds_and_else_begins_anew() -> None:
    first = a_pause(rev="r1")
    wanted = a_pause(reason="longer", until=AT + HOUR)

    again = paused_again(first, wanted, AT)
    anew = paused_again(lifted(first), wanted, AT)

    assert (again.number, again.reason, again.rev) == (1, "longer", "r1")
    assert (anew.number, anew.is_on) == (2, True)
    assert paused_again(anew, wanted, AT) == anew, "an answer that was lost changes nothing"


def test_a_released_task_passes_this_pause_only() -> None:
    pause = a_pause()
    ready = IN_STATE[TaskState.READY]()
    released = let_pass(ready, pause.passport)

    assert released.seq == ready.seq + 1
    assert let_pass(released, pause.passport) is released
    assert closed_at([pause], AT).passports == {"run1": released.passport}
    assert closed_at([replace(pause, number=2)], AT).passports != {"run1": released.passport}


def test_only_what_waits_for_promotion_is_released() -> None:
    for state in set(TaskState) - {TaskState.READY, TaskState.IN_DOUBT}:
        task = IN_STATE[state]()
        assert let_pass(task, "p") is task


def test_a_task_of_a_new_round_has_no_passport() -> None:
    failed = replace(IN_STATE[TaskState.FAILED](), passport="p")
    assert resume(failed, STAMP).passport == ""
