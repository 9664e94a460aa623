"""Lease arithmetic: when a holder must have stopped, and when an observer may call it dead.

An instant is a reading of the judge's own monotonic clock in seconds; readings of two machines are
never compared (docs/protocol.md section 3).
"""

from __future__ import annotations

from dataclasses import dataclass

from region_scheduler.errors import Misconfigured

Instant = float


@dataclass(frozen=True, slots=True)
class LeaseTimings:
    """How long a lease lasts and what margin its judges leave. All in seconds.

    Attributes:
        ttl_s: A holder must have stopped this long after it sent its last acknowledged renewal.
        grace_s: An observer waits this much longer than ttl_s.
        failover_s: The longest fail-over of the store that a lease must survive.
        stop_s: SIGINT comes this long before the deadline.
        retry_s: One repeated renewal.
        kill_s: From the deadline to the last process of the group being gone.
        drift: How far two clocks' rates may differ, as a fraction.
        stop_grace_s: A step that is stopped for a cancel or a cap may take this long to end.
        dispatch_s: A claimed task that is not started after this long goes back.
        reconcile_every_s: Pause between two slow scans.
        skew_max_s: A wall clock this far ahead of the others' is not trusted to fire schedules.
    """

    ttl_s: float = 60.0
    grace_s: float = 15.0
    failover_s: float = 30.0
    stop_s: float = 5.0
    retry_s: float = 3.0
    kill_s: float = 1.0
    drift: float = 0.01
    stop_grace_s: float = 60.0
    dispatch_s: float = 120.0
    reconcile_every_s: float = 10.0
    skew_max_s: float = 60.0

    def __post_init__(self) -> None:
        """Refuse relations under which two holders could act at once, or outages would cost work.

        Raises:
            Misconfigured: Every relation that does not hold.
        """
        problems: list[str] = []
        if self.grace_s < 2 * self.drift * self.ttl_s + self.kill_s:
            problems.append(
                f"grace_s={self.grace_s:g} must be at least 2 x drift x ttl_s + kill_s ="
                f" {2 * self.drift * self.ttl_s + self.kill_s:g}"
            )
        needed = self.failover_s + self.renew_every_s + self.retry_s + self.stop_s
        if self.ttl_s < needed:
            problems.append(
                f"ttl_s={self.ttl_s:g} must be at least failover_s + ttl_s/3 + retry_s + stop_s ="
                f" {needed:g}"
            )
        if problems:
            raise Misconfigured(problems=problems)

    @property
    def renew_every_s(self) -> float:
        """Pause between renewals: a third of the ttl."""
        return self.ttl_s / 3

    @property
    def watch_every_s(self) -> float:
        """Pause between two looks of an observer: at leases, receipts, dispatches and slots."""
        return min(self.reconcile_every_s, self.ttl_s / 6)

    @property
    def lost_within_s(self) -> float:
        """What a dead process held is taken from it this long after its last beat, at the latest.

        A look sees the beat for the first time, the count runs, the next look finds it over.
        """
        return self.lease_s + 2 * self.watch_every_s

    @property
    def unanswered_s(self) -> float:
        """A holder that has not ended a step so long after it was asked to does not answer.

        It looks at its next beat, lets the step end, kills it, and has a lease to say so.
        """
        return self.renew_every_s + self.stop_grace_s + self.kill_s + self.lease_s

    @property
    def undispatched_within_s(self) -> float:
        """A claim of which nobody was told, or no longer is, goes back after this long."""
        return self.dispatch_s + 2 * self.watch_every_s

    def left_over_within_s(self, foreign_every: int) -> float:
        """Return when all that a crash can leave between two writes is found and finished.

        First the dead process's tasks come back; then whatever is undone of any run is met by the
        scan of its home region, or, if that is gone, by every `foreign_every`th scan of another.
        """
        found_s = max(self.lost_within_s, self.undispatched_within_s)
        return found_s + foreign_every * self.reconcile_every_s

    @property
    def lease_s(self) -> float:
        """What "lease" means in every figure: ttl + grace."""
        return self.ttl_s + self.grace_s

    def deadline(self, asked_at: Instant) -> Instant:
        """Return when the holder must have stopped, given when it sent the acknowledged renewal."""
        return asked_at + self.ttl_s


LOCAL_TIMINGS = LeaseTimings(
    ttl_s=4.0,
    grace_s=2.0,
    failover_s=0.5,
    stop_s=0.5,
    retry_s=0.5,
    kill_s=0.5,
    dispatch_s=8.0,
    reconcile_every_s=1.0,
    skew_max_s=4.0,
)
"""For the embedded engine on one machine only: it fails over at once."""
