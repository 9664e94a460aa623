"""One's own lease: until when it may be trusted, and when it is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.ids import Incarnation, ReceiptId
from region_scheduler.domain.instance import Fence, FenceKind, Instance, Role, fenced
from region_scheduler.domain.lease import LOCAL_TIMINGS as T
from region_scheduler.errors import Fenced, Unavailable
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.ports.documents import WriteResult, Written
from region_scheduler.ports.records import GraphStores, InstanceStore
from region_scheduler.simulation.time import VirtualClock
from tests.unit.domain.samples import AT

ME = Instance(
    id=Incarnation("worker.eu:1"), roles=(Role.WORKER,), region="eu", ttl_s=T.ttl_s, stamped_at=AT
)


@dataclass
class Slow:
    """An instance store whose answers take their time, or are lost."""

    inner: InstanceStore
    clock: VirtualClock
    takes_s: float = 0.0
    losses: int = 0
    is_down: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def write(self, changes: Any) -> Any:
        if self.is_down:
            raise Unavailable(dependency="store", detail="down")
        self.clock.advance(self.takes_s)
        answers = self.inner.write(changes)
        if self.losses:
            self.losses -= 1
            return [Written(WriteResult.UNKNOWN)] * len(answers)
        return answers


@dataclass
class Told:
    deadlines: list[float] = field(default_factory=list)
    fenced: int = 0
    set_back: list[str] = field(default_factory=list)
    is_deaf: bool = False

    def on_fenced(self) -> None:
        self.fenced += 1

    def on_set_back(self, reason: str) -> None:
        if self.is_deaf:
            raise Unavailable(dependency="store", detail="down")
        self.set_back.append(reason)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def store(graph: GraphStores, clock: VirtualClock) -> Slow:
    return Slow(graph.instances, clock)


@pytest.fixture
def keeper(store: Slow, clock: VirtualClock, told: Told) -> LeaseKeeper:
    keeper = a_keeper(store, clock, told)
    keeper.register()
    return keeper


def a_keeper(
    store: Any,
    clock: VirtualClock,
    told: Told,
    receipts: Callable[[], tuple[ReceiptId, ...]] = tuple,
) -> LeaseKeeper:
    return LeaseKeeper(
        store,
        ME,
        T,
        clock,
        receipts,
        told.deadlines.append,
        told.on_fenced,
        told.on_set_back,
    )


def fence(graph: GraphStores) -> None:
    kind = Fence(kind=FenceKind.EXPIRED, by="observer", at=AT)
    commit_one(graph.instances, Change(ME.id, lambda found: fenced(found, found.beat, kind)))


def standing(graph: GraphStores) -> Instance:
    (found,) = graph.instances.read([ME.id])
    assert found is not None
    return found


def test_nothing_may_be_done_before_it_is_registered(store: Slow, clock: VirtualClock) -> None:
    keeper = a_keeper(store, clock, Told())

    assert not keeper.may_act()
    assert keeper.unbroken_since == float("inf")


def test_the_deadline_counts_from_sending_not_from_the_answer(
    keeper: LeaseKeeper, store: Slow, clock: VirtualClock, told: Told
) -> None:
    clock.advance(1.0)
    sent_at = clock.monotonic()
    store.takes_s = 0.9

    pause_s = keeper.renew()

    assert keeper.deadline == sent_at + T.ttl_s == told.deadlines[-1]
    assert pause_s == pytest.approx(T.renew_every_s - 0.9)


def test_a_renewal_whose_answer_was_lost_counts_from_its_first_sending(
    keeper: LeaseKeeper, store: Slow, clock: VirtualClock, graph: GraphStores
) -> None:
    clock.advance(1.0)
    sent_at = clock.monotonic()
    store.takes_s, store.losses = 0.2, 2

    keeper.renew()

    assert keeper.deadline == sent_at + T.ttl_s
    assert standing(graph).beat == keeper.instance.beat


def test_a_failed_renewal_moves_nothing(
    keeper: LeaseKeeper, store: Slow, clock: VirtualClock, told: Told
) -> None:
    before, count = keeper.deadline, len(told.deadlines)
    clock.advance(1.0)
    store.is_down = True

    with pytest.raises(Unavailable):
        keeper.renew()

    assert (keeper.deadline, len(told.deadlines)) == (before, count)
    clock.advance(T.ttl_s)
    assert not keeper.may_act()


@pytest.mark.parametrize(
    ("pause_s", "is_gap"), [(T.ttl_s / 2 - 0.01, False), (T.ttl_s / 2 + 0.01, True)]
)
def test_a_gap_of_more_than_half_a_ttl_breaks_the_lease(
    keeper: LeaseKeeper, clock: VirtualClock, pause_s: float, is_gap: bool
) -> None:
    began = keeper.unbroken_since
    clock.advance(pause_s)
    keeper.renew()

    assert keeper.unbroken_since == (clock.monotonic() if is_gap else began)


def test_while_a_renewal_is_late_no_count_may_go_on(
    keeper: LeaseKeeper, clock: VirtualClock
) -> None:
    clock.advance(T.ttl_s / 2 + 0.01)

    assert keeper.may_act()
    assert keeper.unbroken_since == float("inf")


def test_a_beat_lists_the_receipts_of_its_moment(
    store: Slow, clock: VirtualClock, graph: GraphStores
) -> None:
    held = [ReceiptId("r1"), ReceiptId("r2")]
    keeper = a_keeper(store, clock, Told(), lambda: tuple(held))
    keeper.register()
    keeper.renew()
    assert standing(graph).receipts == ("r1", "r2")

    held.pop()
    keeper.renew()

    assert standing(graph).receipts == ("r1",)
    assert standing(graph).beat == 2


def test_a_fenced_lease_is_over_at_once_and_says_so_once(
    keeper: LeaseKeeper, graph: GraphStores, told: Told
) -> None:
    fence(graph)

    for _ in range(2):
        with pytest.raises(Fenced):
            keeper.renew()

    assert not keeper.may_act()
    assert keeper.deadline == float("-inf")
    assert told.fenced == 1


def test_a_lease_that_vanished_is_over_and_the_store_was_set_back(
    keeper: LeaseKeeper, graph: GraphStores, told: Told
) -> None:
    """It was restored from before this process began."""
    graph.instances.remove([standing(graph)])

    with pytest.raises(Fenced, match="set back"):
        keeper.renew()

    assert not keeper.may_act()
    assert (told.fenced, told.set_back) == (1, [f"the lease {ME.id} was at beat 0, and is gone"])
    assert standing(graph).fenced is not None
    keeper.surrender()


def test_a_lease_that_vanished_long_ago_says_nothing_of_the_store(
    keeper: LeaseKeeper, graph: GraphStores, clock: VirtualClock, told: Told
) -> None:
    clock.advance(T.ttl_s)
    graph.instances.remove([standing(graph)])

    with pytest.raises(Fenced, match="no lease at all"):
        keeper.renew()

    assert (told.fenced, told.set_back) == (1, [])


def older(graph: GraphStores, keeper: LeaseKeeper) -> None:
    """Set the lease's document back by a beat, as a restored store shows it."""
    graph.instances.write([(standing(graph), replace(keeper.instance, beat=0))])


def test_a_store_that_shows_an_older_beat_was_set_back(
    keeper: LeaseKeeper, store: Slow, graph: GraphStores, told: Told
) -> None:
    keeper.renew()
    older(graph, keeper)
    store.losses = 1

    with pytest.raises(Fenced, match="set back"):
        keeper.renew()

    assert told.set_back == [f"the lease {ME.id} was at beat 1, and is at 0"]
    assert not keeper.may_act()


def test_who_could_not_tell_that_the_store_was_set_back_tells_it_again(
    keeper: LeaseKeeper, graph: GraphStores, told: Told
) -> None:
    keeper.renew()
    older(graph, keeper)
    told.is_deaf = True
    with pytest.raises(Unavailable):
        keeper.renew()
    told.is_deaf = False

    with pytest.raises(Fenced, match="set back"):
        keeper.renew()

    assert len(told.set_back) == 1


def test_a_surrender_is_seen_at_once(keeper: LeaseKeeper, graph: GraphStores) -> None:
    keeper.surrender()

    found = standing(graph).fenced
    assert found is not None
    assert found.kind is FenceKind.SURRENDERED
    assert not keeper.may_act()


def test_a_lease_that_answers_for_an_attempt_is_left_to_run_out(
    store: Slow, clock: VirtualClock, graph: GraphStores
) -> None:
    keeper = a_keeper(store, clock, Told(), lambda: (ReceiptId("r1"),))
    keeper.register()

    keeper.surrender()

    assert standing(graph).fenced is None


def test_a_fence_that_came_first_stands(keeper: LeaseKeeper, graph: GraphStores) -> None:
    fence(graph)
    keeper.surrender()

    found = standing(graph).fenced
    assert found is not None
    assert found.kind is FenceKind.EXPIRED
    assert replace(standing(graph), fenced=None).beat == 0
