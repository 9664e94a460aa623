"""Schedules: what is due, what of it fires, waits or is missed (docs/protocol.md section 7).

Each occurrence is decided by one conditional write on its schedule, and only once: it fires (with
the id of its run, before that run is admitted), waits for the run before it, or is recorded as
missed. What fires is admitted by whoever finds it without a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import chain, takewhile
from typing import Final

from region_scheduler.domain.admission import Plan
from region_scheduler.domain.ids import RunId, digest_of
from region_scheduler.domain.run import RunMode
from region_scheduler.domain.task import SCHEMA
from region_scheduler.domain.timetable import Timetable

LATE: Final = timedelta(seconds=60)
"""An occurrence that is decided later than this is late: the catch-up policy has its say."""
KEPT_MAX: Final = 1_000
"""Most late occurrences that a schedule may run, and most that may wait for each other."""
_OPEN_MAX: Final = 2 * KEPT_MAX
"""Most occurrences of a schedule that lets runs overlap that may wait for a tenant's quota."""
_LOOKED_AT_MAX: Final = 10_000
_RECORDS_MAX: Final = 50


class Overlap(StrEnum):
    """What happens to an occurrence while the run of an earlier one has not ended."""

    SKIP = "skip"
    QUEUE = "queue"
    ALLOW = "allow"


class CatchUp(StrEnum):
    """Which late occurrences run; the others are recorded as missed."""

    ALL = "all"
    LAST = "last"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """An occurrence that was decided to run; its run is perhaps not admitted yet.

    Attributes:
        nominal_at: When it was due.
        run: The id that its run gets.
        waits_for: Why its run cannot be admitted now: its tenant's quota; empty if nothing is known
            to be in the way.
    """

    nominal_at: datetime
    run: RunId
    waits_for: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """Successive occurrences that did not run for one reason.

    Attributes:
        noted_at: Wall time of the last decision among them, for display.
    """

    first_at: datetime
    last_at: datetime
    count: int
    reason: str
    noted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A timetable and what runs at it: a zone, or a graph that was given with it.

    Attributes:
        id: Key; see `schedule_key`.
        catch_up_max: With `CatchUp.ALL`, the newest so many late occurrences run.
        queue_max: With `Overlap.QUEUE`, so many may wait.
        zone: Key of the zone; empty for a graph.
        zone_name: Its name.
        plan: The graph's plan; None for a zone, whose plan is made when it fires.
        time_scale: Steps are simulated, durations multiplied by this; None runs a zone for real.
        home_region: Whose schedulers fire it; others only after a while.
        is_deleted: A tombstone; a schedule created under its name takes its place.
        revision: Rises with every change by a person.
        next_at: The first occurrence not decided yet; None if there are no more.
        waiting: Occurrences that wait for a run, oldest first.
        firings: Occurrences whose runs are to be admitted, or (unless runs may overlap) have not
            ended: the active run.
        missed: The newest records.
    """

    id: str
    rev: str = ""
    schema: int = SCHEMA
    tenant: str
    name: str
    timetable: Timetable
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.LAST
    catch_up_max: int = 10
    queue_max: int = 10
    mode: RunMode = RunMode.APPLY
    zone: str = ""
    zone_name: str = ""
    plan: Plan | None = None
    time_scale: float | None = None
    home_region: str
    is_enabled: bool = True
    is_deleted: bool = False
    reason: str = ""
    revision: int = 1
    next_at: datetime | None
    waiting: tuple[datetime, ...] = ()
    firings: tuple[Firing, ...] = ()
    fired_count: int = 0
    missed_count: int = 0
    missed: tuple[Missed, ...] = ()
    created_at: datetime
    created_by: str = ""

    @property
    def definition(self) -> tuple[object, ...]:
        """What a person said of it; two with the same are the same schedule."""
        return (
            self.timetable,
            self.overlap,
            (self.catch_up, self.catch_up_max, self.queue_max),
            (self.mode, self.zone, self.plan, self.time_scale),
        )


def schedule_key(tenant: str, name: str) -> str:
    """Return the key of a tenant's schedule: a name is unique within its tenant."""
    return digest_of(tenant, name)


def occurrence_key(schedule: Schedule, nominal_at: datetime) -> str:
    """Return the idempotency key of an occurrence, within its tenant and namespace `schedule`."""
    return f"{schedule.name}@{nominal_at.isoformat()}"


def decided(schedule: Schedule, now: datetime, new_run: Callable[[], RunId]) -> Schedule:
    """Return the schedule with everything decided that is due at `now`; the same if nothing is.

    Args:
        schedule: As read.
        now: The decider's wall time.
        new_run: Makes the id of a run.
    """
    if schedule.is_deleted:
        return schedule
    due, following = _due(schedule, now)
    if following is not None and following <= now:
        # More than one look takes in: all but the newest are given up, and the rest comes next.
        given_up, following = due[:-KEPT_MAX], due[-KEPT_MAX]
        return replace(_missed(schedule, given_up, _TOO_MANY, now), next_at=following)
    if due:
        schedule = replace(_entered(schedule, due, now, new_run), next_at=following)
    return _next_fired(schedule, new_run)


def freed(schedule: Schedule, run: RunId) -> Schedule:
    """Return the schedule without the firing of `run`, which needs no more care."""
    kept = tuple(firing for firing in schedule.firings if firing.run != run)
    return schedule if kept == schedule.firings else replace(schedule, firings=kept)


def refused(schedule: Schedule, firing: Firing, reason: str, now: datetime) -> Schedule:
    """Return the schedule with a firing that was refused for good recorded as missed."""
    if firing not in schedule.firings:
        return schedule
    without = replace(freed(schedule, firing.run), fired_count=schedule.fired_count - 1)
    return _missed(without, [firing.nominal_at], f"refused: {reason}", now)


def waiting_for(schedule: Schedule, run: RunId, reason: str) -> Schedule:
    """Return the schedule with what the firing of `run` waits for; empty when it does no more."""
    told = tuple(
        replace(f, waits_for=reason) if f.run == run and f.waits_for != reason else f
        for f in schedule.firings
    )
    return schedule if told == schedule.firings else replace(schedule, firings=told)


def is_behind_another(schedule: Schedule, firing: Firing) -> bool:
    """Say whether an older firing waits for something, so that this one has to wait as well."""
    older = takewhile(lambda other: other.run != firing.run, schedule.firings)
    return any(other.waits_for for other in older)


def adopted(schedule: Schedule, firing: Firing, run: RunId) -> Schedule:
    """Return the schedule with the run that an occurrence turned out to have already."""
    if firing not in schedule.firings:
        return schedule
    taken = tuple(replace(f, run=run, waits_for="") if f == firing else f for f in schedule.firings)
    return replace(schedule, firings=taken)


def switched(schedule: Schedule, is_enabled: bool, reason: str) -> Schedule:
    """Return the schedule paused or going on; what is due while it is paused is missed."""
    if schedule.is_enabled is is_enabled and schedule.reason == reason:
        return schedule
    number = schedule.revision + 1
    return replace(schedule, is_enabled=is_enabled, reason=reason, revision=number)


def deleted(schedule: Schedule) -> Schedule:
    """Return the tombstone; runs that have begun go on, what waits is dropped."""
    if schedule.is_deleted:
        return schedule
    return replace(
        schedule, is_deleted=True, next_at=None, waiting=(), revision=schedule.revision + 1
    )


def revived(tombstone: Schedule, wanted: Schedule) -> Schedule:
    """Return `wanted` in the place of a deleted schedule; an active run still counts.

    One that is not deleted stays as it is.
    """
    if not tombstone.is_deleted:
        return tombstone
    return replace(
        wanted,
        rev=tombstone.rev,
        revision=tombstone.revision + 1,
        firings=tombstone.firings,
    )


_PAUSED: Final = "the schedule was paused"
_TOO_MANY: Final = "late: too many came after them"


def _due(schedule: Schedule, now: datetime) -> tuple[list[datetime], datetime | None]:
    """Return the occurrences due at `now`, as many as one look takes in, and the one after."""
    found: list[datetime] = []
    if schedule.next_at is None:
        return found, None
    for at in chain([schedule.next_at], schedule.timetable.after(schedule.next_at)):
        if at > now or len(found) == _LOOKED_AT_MAX:
            return found, at
        found.append(at)
    return found, None


def _entered(
    schedule: Schedule, due: Sequence[datetime], now: datetime, new_run: Callable[[], RunId]
) -> Schedule:
    """Return the schedule with each due occurrence firing, waiting or missed."""
    if not schedule.is_enabled:
        return _missed(schedule, due, _PAUSED, now)
    kept, reason = _kept(schedule, due, now)
    schedule = _missed(schedule, [at for at in due if at not in kept], reason, now)
    match schedule.overlap:
        case Overlap.ALLOW:
            room = max(0, _OPEN_MAX - len(schedule.firings))
            full = f"overlap: {_OPEN_MAX} waited already"
            schedule = _missed(schedule, kept[room:], full, now)
            return _fired(schedule, kept[:room], new_run)
        case Overlap.SKIP if schedule.firings:
            return _missed(schedule, kept, f"overlap: {_active(schedule)}", now)
        case Overlap.SKIP:
            schedule = _missed(schedule, kept[:-1], "overlap: a newer one runs instead", now)
            return _fired(schedule, kept[-1:], new_run)
        case Overlap.QUEUE:
            room = schedule.queue_max - len(schedule.waiting) + (not schedule.firings)
            full = f"overlap: {schedule.queue_max} waited already"
            schedule = _missed(schedule, kept[room:], full, now)
            return replace(schedule, waiting=(*schedule.waiting, *kept[:room]))


def _kept(
    schedule: Schedule, due: Sequence[datetime], now: datetime
) -> tuple[Sequence[datetime], str]:
    """Return which due occurrences the catch-up policy keeps, and why not the others."""
    late = [at for at in due if now - at > LATE]
    in_time = due[len(late) :]
    match schedule.catch_up:
        case CatchUp.NONE:
            return in_time, "late: the schedule runs no late ones"
        case CatchUp.LAST:
            return in_time or late[-1:], "late: only the last one runs"
        case CatchUp.ALL:
            newest = late[-schedule.catch_up_max :]
            return [*newest, *in_time], f"late: only the newest {schedule.catch_up_max} run"


def _next_fired(schedule: Schedule, new_run: Callable[[], RunId]) -> Schedule:
    """Let the first that waits go, if nothing is before it."""
    if not schedule.waiting or schedule.firings or not schedule.is_enabled:
        return schedule
    first, *others = schedule.waiting
    return replace(_fired(schedule, [first], new_run), waiting=tuple(others))


def _fired(
    schedule: Schedule, instants: Sequence[datetime], new_run: Callable[[], RunId]
) -> Schedule:
    firings = [Firing(nominal_at=at, run=new_run()) for at in instants]
    return replace(
        schedule,
        firings=(*schedule.firings, *firings),
        fired_count=schedule.fired_count + len(firings),
    )


def _missed(
    schedule: Schedule, instants: Sequence[datetime], reason: str, now: datetime
) -> Schedule:
    """Return the schedule with instants recorded; they join a record of the same reason."""
    if not instants:
        return schedule
    count, begin, records = len(instants), instants[0], schedule.missed
    if records and records[-1].reason == reason:
        count, begin, records = count + records[-1].count, records[-1].first_at, records[:-1]
    record = Missed(first_at=begin, last_at=instants[-1], count=count, reason=reason, noted_at=now)
    return replace(
        schedule,
        missed_count=schedule.missed_count + len(instants),
        missed=(*records, record)[-_RECORDS_MAX:],
    )


def _active(schedule: Schedule) -> str:
    first = schedule.firings[0]
    if first.waits_for:
        return f"the one of {first.nominal_at.isoformat()} waits for its {first.waits_for}"
    return f"run {first.run} had not ended"
