"""Keep one incarnation's lease alive, and know until when it may be trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from region_scheduler.commit.create import create
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.ids import ReceiptId
from region_scheduler.domain.instance import Fence, FenceKind, Instance, Role, fenced, renewed
from region_scheduler.domain.lease import Instant, LeaseTimings
from region_scheduler.errors import Fenced, NotFound, RegionSchedulerError
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
    ) -> None:
        self._store = store
        self._instance = instance
        self._timings = timings
        self._clock = clock
        self._receipts = receipts
        self._on_deadline = on_deadline
        self._on_fenced = on_fenced
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
        asked_at = self._clock.monotonic()
        beat = partial(
            renewed,
            receipts=self._receipts(),
            stamped_at=self._clock.now(),
            swept_ago_s=None if self._swept_at is None else asked_at - self._swept_at,
        )
        change = Change(self._instance.id, beat, known=self._instance)
        try:
            self._acknowledged(commit_one(self._store, change), asked_at)
        except Fenced:
            self._end()
            raise
        except NotFound as gone:  # a store restored from before this process began
            self._end()
            raise Fenced(held=self._instance.id, current="no lease at all") from gone
        return max(0.0, self._timings.renew_every_s - (self._clock.monotonic() - asked_at))

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
