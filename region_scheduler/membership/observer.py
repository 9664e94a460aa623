"""Judge other incarnations by one's own monotonic clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from region_scheduler.domain.ids import Incarnation, TaskId
from region_scheduler.domain.instance import FenceKind, Instance
from region_scheduler.domain.lease import Instant, LeaseTimings
from region_scheduler.domain.task import Task, Token

_BEATS_WITHOUT_RECEIPT = 2


@dataclass(frozen=True, slots=True)
class _Seen:
    beat: int
    at: Instant


@dataclass(frozen=True, slots=True)
class _Watched:
    """A running task: the holder's beat when it was first seen, and the beats that lacked it."""

    beat_first: int
    beats_missing: tuple[int, ...] = ()


class Observer:
    """Counts how long beats stand still. Feed it leader reads only.

    All verdicts need this process's own lease to have been renewed without a gap for as long as the
    count runs: `unbroken_since` of its keeper.
    """

    def __init__(self, timings: LeaseTimings) -> None:
        self._timings = timings
        self._beats: dict[Incarnation, _Seen] = {}
        self._absent: dict[Incarnation, Instant] = {}
        self._fences: dict[Incarnation, Instant] = {}
        self._running: dict[tuple[TaskId, Token], _Watched] = {}
        self._claimed: dict[tuple[TaskId, Token], Instant] = {}
        self._asked: dict[tuple[TaskId, Token], Instant] = {}

    def dead(
        self, instances: Sequence[Instance], now: Instant, unbroken_since: Instant
    ) -> list[Instance]:
        """Return the incarnations whose beat has stood still for ttl + grace."""
        dead: list[Instance] = []
        current: dict[Incarnation, _Seen] = {}
        for instance in instances:
            seen = self._beats.get(instance.id)
            if seen is None or seen.beat != instance.beat:
                seen = _Seen(instance.beat, now)
            current[instance.id] = seen
            needed = max(self._timings.ttl_s, instance.ttl_s) + self._timings.grace_s
            if now - max(seen.at, unbroken_since) >= needed:
                dead.append(instance)
        self._beats = current
        return dead

    def gone(
        self, holders: Iterable[Incarnation], now: Instant, unbroken_since: Instant
    ) -> list[Incarnation]:
        """Return those of `holders`, absent at the leader, that were so for ttl + grace."""
        self._absent = {holder: self._absent.get(holder, now) for holder in holders}
        return [
            holder
            for holder, at in self._absent.items()
            if now - max(at, unbroken_since) >= self._timings.lease_s
        ]

    def sweepable(
        self, fenced: Sequence[Instance], now: Instant, unbroken_since: Instant
    ) -> list[Incarnation]:
        """Return the fenced incarnations whose tasks may be taken now.

        An `unresponsive` fence is acted on only by a sweeper that has itself seen it for
        ttl + grace: the process may still live, and only then has its deadline surely passed.
        """
        self._fences = {i.id: self._fences.get(i.id, now) for i in fenced}
        ripe: list[Incarnation] = []
        for instance in fenced:
            is_patient = instance.fenced is not None and (
                instance.fenced.kind is FenceKind.UNRESPONSIVE
            )
            since = max(self._fences[instance.id], unbroken_since)
            needed = max(self._timings.ttl_s, instance.ttl_s) + self._timings.grace_s
            if not is_patient or now - since >= needed:
                ripe.append(instance.id)
        return ripe

    def abandoned(
        self, running: Sequence[Task], instances: Mapping[Incarnation, Instance]
    ) -> list[Task]:
        """Return the running tasks that their living holder no longer answers for.

        Two successive beats, both newer than the one at which the task was first seen running, must
        lack its receipt. Without fresh beats there is no such verdict.
        """
        lost: list[Task] = []
        current: dict[tuple[TaskId, Token], _Watched] = {}
        for task in running:
            holder = instances.get(task.holder.incarnation) if task.holder else None
            if task.holder is None or holder is None:
                continue
            key = (task.id, task.token)
            watched = self._running.get(key) or _Watched(holder.beat)
            if task.holder.receipt_id in holder.receipts:
                watched = _Watched(watched.beat_first)
            elif holder.beat > max(watched.beat_first, *watched.beats_missing, 0):
                watched = _Watched(watched.beat_first, (*watched.beats_missing, holder.beat))
            current[key] = watched
            if len(watched.beats_missing) >= _BEATS_WITHOUT_RECEIPT:
                lost.append(task)
        self._running = current
        return lost

    def unanswered(
        self, running: Sequence[Task], now: Instant, unbroken_since: Instant
    ) -> list[Task]:
        """Return the running tasks whose holder was asked to stop and has not for too long.

        Counted from this observer's first sight of the wish under this token.
        """
        asked = [task for task in running if task.stop_requested is not None]
        self._asked = {
            (task.id, task.token): self._asked.get((task.id, task.token), now) for task in asked
        }
        return [
            task
            for task in asked
            if now - max(self._asked[task.id, task.token], unbroken_since)
            >= self._timings.unanswered_s
        ]

    def overdue(self, claimed: Sequence[Task], now: Instant) -> list[Task]:
        """Return the tasks seen claimed under the same token for longer than `dispatch_s`."""
        self._claimed = {
            (task.id, task.token): self._claimed.get((task.id, task.token), now) for task in claimed
        }
        return [
            task
            for task in claimed
            if now - self._claimed[task.id, task.token] >= self._timings.dispatch_s
        ]
