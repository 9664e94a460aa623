"""Keep one incarnation's lease alive, and know until when it may be trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NoReturn

from region_scheduler.commit.create import create
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.ids import ReceiptId
from region_scheduler.domain.instance import Fence, FenceKind, Instance, Role, fenced, renewed
from region_scheduler.domain.lease import Instant, LeaseTimings
from region_scheduler.errors import Fenced, NotFound, RegionSchedulerError, Unavailable
from region_scheduler.ports.records import InstanceStore
from region_scheduler.ports.time import Clock

_GAP_FACTOR = 1.5


class LeaseKeeper:
    """One process's lease. `renew` belongs in a paced loop; the rest may be asked from any thread.

    Args:
        store: Where leases live.
        instance: This incarnation, not inserted yet.
        timings: Lease arithmetic.
        clock: This machine's clock.
        receipts: Names the attempts that this process answers for, at the moment of a beat.
        on_deadline: Told each new deadline, before anything relies on it.
        on_fenced: Told once when the lease turns out to be over.
        on_set_back: Told, before `on_fenced`, why the store must have been set back to an older
            state; told again if it raises `Unavailable` or `OutcomeUnknown`.
    """

    def __init__(
        self,
        store: InstanceStore,
        instance: Instance,
        timings: LeaseTimings,
        clock: Clock,
        receipts: Callable[[], tuple[ReceiptId, ...]] = tuple,
        on_deadline: Callable[[Instant], None] = lambda _: None,
        on_fenced: Callable[[], None] = lambda: None,
        on_set_back: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._instance = instance
        self._timings = timings
        self._clock = clock
        self._receipts = receipts
        self._on_deadline = on_deadline
        self._on_fenced = on_fenced
        self._on_set_back = on_set_back
        self._deadline: Instant = float("-inf")
        self._asked_at: Instant = float("-inf")
        self._unbroken_since: Instant = float("inf")
        self._is_over = False
        self._swept_at: Instant | None = None

    @property
    def instance(self) -> Instance:
        """The lease document as last acknowledged."""
        return self._instance

    @property
    def deadline(self) -> Instant:
        """When everything held must have stopped, by this machine's monotonic clock."""
        return self._deadline

    @property
    def unbroken_since(self) -> Instant:
        """Since when every renewal came in time; infinite before the first, and while one is late.

        A judge that was cut off counts anew: those it judges may have been cut off with it.
        """
        is_late = self._clock.monotonic() - self._asked_at > self._gap_s
        return float("inf") if is_late else self._unbroken_since

    @property
    def retry_s(self) -> float:
        """Longest pause before a renewal that was not answered is tried again, seconds."""
        return self._timings.retry_s

    def may_act(self) -> bool:
        """Say whether the lease still covers this moment."""
        return not self._is_over and self._clock.monotonic() < self._deadline

    def swept(self) -> None:
        """Take note that this process's resource manager has finished a sweep."""
        self._swept_at = self._clock.monotonic()

    def register(self) -> None:
        """Insert the lease; a lost answer is harmless, the incarnation's id is new.

        Raises:
            Unavailable, OutcomeUnknown: Call again.
        """
        asked_at = self._clock.monotonic()
        fresh = replace(self._instance, stamped_at=self._clock.now())
        (created,) = create(self._store, [fresh])
        self._acknowledged(created.value, asked_at)
        if Role.RESOURCES in self._instance.roles:
            self._swept_at = asked_at  # the first sweep is due from now on

    def renew(self) -> float:
        """Beat once; return seconds until the next beat is due.

        Raises:
            Fenced: The lease is over; what this process holds must stop.
            Unavailable, OutcomeUnknown, LostRace: Not renewed for certain; the deadline stands.
                Call again.
        """
        if self._is_over:
            raise Fenced(held=self._instance.id, current="no lease any more")
        asked_at = self._clock.monotonic()
        beat = partial(
            renewed,
            receipts=self._receipts(),
            stamped_at=self._clock.now(),
            swept_ago_s=None if self._swept_at is None else asked_at - self._swept_at,
        )
        known = self._instance
        change = Change(known.id, partial(self._next, beat=beat), known=known)
        try:
            after = commit_one(self._store, change)
        except Fenced:
            self._end()
            raise
        except NotFound as gone:
            self._gone(asked_at, gone)
        if after.fenced is not None:
            self.set_back(f"the lease {known.id} was at beat {known.beat}, and is at {after.beat}")
        self._acknowledged(after, asked_at)
        return max(0.0, self._timings.renew_every_s - (self._clock.monotonic() - asked_at))

    def set_back(self, reason: str) -> NoReturn:
        """End the lease: the store is proved to be older than what was acknowledged to us.

        Raises:
            Fenced: Always, once `on_set_back` was told.
            Unavailable, OutcomeUnknown: It could not be told; call again.
        """
        self._on_set_back(reason)
        self._end()
        raise Fenced(held=self._instance.id, current=f"a store that was set back: {reason}")

    def surrender(self) -> None:
        """End the lease on purpose, so that nobody has to wait for it to run out; best effort.

        A lease that still answers for attempts is left to run out: others act on a surrender at
        once, and what these attempts have started may not have stopped yet.
        """
        if self._receipts():
            return
        fence = Fence(kind=FenceKind.SURRENDERED, by=self._instance.id, at=self._clock.now())
        self._is_over = True
        try:
            commit_one(
                self._store,
                Change(self._instance.id, lambda found: fenced(found, found.beat, fence)),
            )
        except RegionSchedulerError:
            return  # observers find out by the beat

    def _next(self, found: Instance, beat: Callable[[Instance], Instance]) -> Instance:
        """Return the next beat; where an older one stands than was acknowledged, the lease's end.

        Only a write that is applied on the older revision proves that the store was set back: what
        a deposed leader shows is refused.
        """
        if found.fenced is None and found.beat < self._instance.beat:
            return replace(found, fenced=self._end_of_line())
        return found if _is_end_of_line(found) else beat(found)

    def _gone(self, asked_at: Instant, gone: NotFound) -> NoReturn:
        """End a lease without a document. They are kept for long: within a lease, it was set back.

        Raises:
            Fenced: It is over.
            Unavailable, OutcomeUnknown: Not known for certain; call again.
        """
        if asked_at < self._deadline:
            last = replace(self._instance, fenced=self._end_of_line())
            (standing,) = create(self._store, [last])
            if standing.is_new or _is_end_of_line(standing.value):
                self.set_back(f"the lease {last.id} was at beat {last.beat}, and is gone")
            raise Unavailable(dependency="graph store", detail="an old leader answered")
        self._end()
        raise Fenced(held=self._instance.id, current="no lease at all") from gone

    def _end_of_line(self) -> Fence:
        # Its tasks are taken a lease later: what they have started ends at the deadline.
        return Fence(kind=FenceKind.UNRESPONSIVE, by=self._instance.id, at=self._clock.now())

    @property
    def _gap_s(self) -> float:
        return _GAP_FACTOR * self._timings.renew_every_s

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._deadline = float("-inf")
            self._on_fenced()

    def _acknowledged(self, instance: Instance, asked_at: Instant) -> None:
        if asked_at - self._asked_at > self._gap_s:
            self._unbroken_since = asked_at
        self._asked_at = asked_at
        self._instance = instance
        self._deadline = self._timings.deadline(asked_at)
        self._on_deadline(self._deadline)


def _is_end_of_line(found: Instance) -> bool:
    """Say whether a lease ended because its own process found the store set back."""
    fence = found.fenced
    return fence is not None and fence.by == found.id and fence.kind is FenceKind.UNRESPONSIVE
