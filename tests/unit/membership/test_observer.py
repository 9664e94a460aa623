"""Verdicts on others: only by one's own clock, and only while one's own lease was unbroken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.domain.ids import Incarnation, ReceiptId
from region_scheduler.domain.instance import Fence, FenceKind, Instance, Role
from region_scheduler.domain.lease import LOCAL_TIMINGS as T
from region_scheduler.domain.task import Task
from region_scheduler.membership.observer import Observer
from tests.unit.domain.samples import AT, WORKER, claimed, running

ALWAYS = float("-inf")
LEASE_S = T.lease_s


def an_instance(id_: str = WORKER.incarnation, beat: int = 1, **more: Any) -> Instance:
    instance = Instance(
        id=Incarnation(id_),
        roles=(Role.WORKER,),
        region="eu",
        ttl_s=T.ttl_s,
        beat=beat,
        stamped_at=AT,
    )
    return replace(instance, **more)


def a_fence(kind: FenceKind) -> Fence:
    return Fence(kind=kind, by="observer", at=AT)


@pytest.mark.parametrize(
    ("looks", "is_dead"),
    [
        ([(0.0, 1)], False),
        ([(0.0, 1), (LEASE_S - 0.01, 1)], False),
        ([(0.0, 1), (LEASE_S, 1)], True),
        ([(0.0, 1), (LEASE_S - 0.01, 2), (LEASE_S, 2)], False),
        ([(0.0, 1), (3.0, 2), (3.0 + LEASE_S, 2)], True),
        ([(0.0, 7), (LEASE_S, 3)], False),  # another beat is a sign of life, whatever its number
    ],
)
def test_dead_is_who_shows_the_same_beat_for_ttl_and_grace(
    looks: list[tuple[float, int]], is_dead: bool
) -> None:
    observer = Observer(T)
    for at, beat in looks:
        dead = observer.dead([an_instance(beat=beat)], at, ALWAYS)

    assert bool(dead) is is_dead


def test_a_gap_in_the_judges_own_lease_starts_every_count_anew() -> None:
    observer = Observer(T)
    observer.dead([an_instance()], 0.0, ALWAYS)

    assert observer.dead([an_instance()], 100.0, 99.0) == []
    assert observer.dead([an_instance()], 99.0 + LEASE_S, 99.0) == [an_instance()]


def test_a_judge_without_a_lease_judges_nobody() -> None:
    observer = Observer(T)
    observer.dead([an_instance()], 0.0, ALWAYS)

    assert observer.dead([an_instance()], 1e9, float("inf")) == []


def test_the_larger_ttl_counts() -> None:
    slow = an_instance(ttl_s=60.0)
    quick = an_instance("quick:1", ttl_s=1.0)
    observer = Observer(T)
    observer.dead([slow, quick], 0.0, ALWAYS)

    assert observer.dead([slow, quick], LEASE_S, ALWAYS) == [quick]
    assert observer.dead([slow], 60.0 + T.grace_s, ALWAYS) == [slow]


def test_who_was_not_seen_for_a_while_is_counted_from_the_next_sight() -> None:
    observer = Observer(T)
    observer.dead([an_instance()], 0.0, ALWAYS)
    observer.dead([], 1.0, ALWAYS)

    assert observer.dead([an_instance()], LEASE_S, ALWAYS) == []


@given(st.lists(st.tuples(st.floats(0.1, 3.0), st.booleans()), max_size=40))
def test_a_holder_that_beats_within_its_ttl_is_never_called_dead(
    looks: list[tuple[float, bool]],
) -> None:
    """The observer may look when it wants; the holder beats at least once a ttl."""
    observer = Observer(T)
    now = beat_at = 0.0
    beat = 1
    for pause, is_early in looks:
        now += pause
        if is_early or now - beat_at >= T.ttl_s:
            beat, beat_at = beat + 1, now
        assert observer.dead([an_instance(beat=beat)], now, ALWAYS) == []


def test_absent_starts_a_count_that_ends_when_it_is_seen() -> None:
    holder = Incarnation("gone:1")
    observer = Observer(T)

    assert observer.gone([holder], 0.0, ALWAYS) == []
    assert observer.gone([holder], LEASE_S - 0.01, ALWAYS) == []
    assert observer.gone([holder], LEASE_S, ALWAYS) == [holder]
    assert observer.gone([], LEASE_S, ALWAYS) == []
    assert observer.gone([holder], LEASE_S, ALWAYS) == []
    assert observer.gone([holder], 2 * LEASE_S, LEASE_S + 0.01) == []


@pytest.mark.parametrize("kind", [FenceKind.EXPIRED, FenceKind.SURRENDERED])
def test_an_expired_or_surrendered_lease_is_acted_on_at_once(kind: FenceKind) -> None:
    fenced = an_instance(fenced=a_fence(kind))

    assert Observer(T).sweepable([fenced], 0.0, float("inf")) == [fenced.id]


def test_an_unresponsive_fence_is_acted_on_after_the_sweepers_own_patience() -> None:
    fenced = an_instance(fenced=a_fence(FenceKind.UNRESPONSIVE), ttl_s=10.0)
    observer = Observer(T)

    assert observer.sweepable([fenced], 0.0, ALWAYS) == []
    assert observer.sweepable([fenced], 10.0 + T.grace_s - 0.01, ALWAYS) == []
    assert observer.sweepable([fenced], 10.0 + T.grace_s, 1.0) == []
    assert observer.sweepable([fenced], 11.0 + T.grace_s, 1.0) == [fenced.id]


def test_another_sweeper_counts_an_unresponsive_fence_on_its_own() -> None:
    fenced = an_instance(fenced=a_fence(FenceKind.UNRESPONSIVE))
    Observer(T).sweepable([fenced], 0.0, ALWAYS)

    assert Observer(T).sweepable([fenced], LEASE_S, ALWAYS) == []


def abandoned(observer: Observer, task: Task, beat: int, *receipts: ReceiptId) -> bool:
    holder = an_instance(beat=beat, receipts=receipts)
    return bool(observer.abandoned([task], {holder.id: holder}))


R = WORKER.receipt_id


@pytest.mark.parametrize(
    ("looks", "is_lost"),
    [
        ([(1, False)], False),
        ([(1, False), (2, False)], False),
        ([(1, False), (2, False), (3, False)], True),
        ([(1, False), (1, False), (1, False)], False),  # no fresh beats, no verdict
        ([(1, False), (2, False), (2, False)], False),
        ([(1, False), (2, False), (3, True)], False),
        ([(1, False), (2, False), (3, True), (4, False)], False),
        ([(1, True), (2, True), (3, False), (4, False)], True),
        ([(1, False), (5, False), (9, False)], True),
    ],
)
def test_two_newer_beats_without_the_receipt_are_a_loss(
    looks: list[tuple[int, bool]], is_lost: bool
) -> None:
    observer = Observer(T)
    for beat, is_listed in looks:
        lost = abandoned(observer, running(), beat, *([R] if is_listed else []))

    assert lost is is_lost


def test_another_token_of_the_task_is_watched_anew() -> None:
    observer = Observer(T)
    for beat in (1, 2):
        abandoned(observer, running(), beat)
    again = replace(running(), token=replace(running().token, number=9))

    assert not abandoned(observer, again, 3)
    assert not abandoned(observer, again, 4)
    assert abandoned(observer, again, 5)


def test_the_tasks_of_a_holder_without_a_lease_are_not_judged_by_its_beats() -> None:
    observer = Observer(T)

    assert all(observer.abandoned([running()], {}) == [] for _ in range(5))


def test_a_dispatch_is_overdue_under_the_same_token_only() -> None:
    observer = Observer(T)
    task = claimed()
    moved = replace(task, token=replace(task.token, number=task.token.number + 2))

    assert observer.overdue([task], 0.0) == []
    assert observer.overdue([task], T.dispatch_s - 0.01) == []
    assert observer.overdue([task], T.dispatch_s) == [task]
    assert observer.overdue([moved], T.dispatch_s) == []
    assert observer.overdue([moved], 2 * T.dispatch_s) == [moved]
