"""Set and remove change freezes and maintenance windows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Final

from region_scheduler.admission.importers.fields import a_choice
from region_scheduler.commit.create import create
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.calendar import (
    Calendar,
    CalendarKind,
    calendar_key,
    removed,
    set_anew,
)
from region_scheduler.domain.instant import duration_of, instant_of
from region_scheduler.domain.pause import Scope
from region_scheduler.domain.timetable import Gap, Repeat, Timetable
from region_scheduler.errors import InvalidInput, NotFound
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.operations.audit import Auditor, owner_of
from region_scheduler.operations.schedules import timetable_of
from region_scheduler.ports.records import GraphStores

_NAME_MAX: Final = 100
_LASTS_S_MAX: Final = 366 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarWish:
    """A calendar as somebody typed it; an empty text was not given.

    Attributes:
        effect: `freeze` or `window`.
        begin: An instant; now if it is empty and `end` is given.
        end: An instant.
        expression: Cron, when it begins each time; instead of `begin` and `end`.
        lasts: How long each time, e.g. `8h`.
    """

    name: str
    effect: str = CalendarKind.WINDOW
    begin: str = ""
    end: str = ""
    expression: str = ""
    lasts: str = ""
    time_zone: str = "UTC"
    gap: str = Gap.SHIFT
    repeat: str = Repeat.ONCE
    reason: str

    def calendar(self, scope: Scope, title: str, by: str, now: datetime) -> Calendar:
        """Return the calendar that was asked for.

        Args:
            scope: What it is of; it exists.
            title: Of the scope, for people.
            by: Who sets it.
            now: This machine's wall time.

        Raises:
            InvalidInput: A name, an instant, an expression or a duration is not accepted, it is
                over already, or it would never end.
        """
        if not 0 < len(self.name) <= _NAME_MAX or not self.name.isprintable():
            told = f"a name has 1 to {_NAME_MAX} characters that can be seen"
            raise InvalidInput(field="NAME", value=self.name[:_NAME_MAX], expected=told)
        if not self.reason.strip():
            told = "say why, for those who wait"
            raise InvalidInput(field="--reason", value=self.reason, expected=told)
        begin, end = self._once(now)
        table, lasts_s = self._recurring(now) if self.expression else (None, 0.0)
        wanted = Calendar(
            id=calendar_key(scope, self.name),
            name=self.name,
            kind=a_choice(self.effect, "EFFECT", CalendarKind),
            scope=scope,
            title=title,
            begin=begin,
            end=end,
            timetable=table,
            lasts_s=lasts_s,
            reason=self.reason,
            by=by,
            at=now,
        )
        if any(span.end is None for span in islice(wanted.spans(now), 1)):
            told = "each time runs into the next, so it never ends: make it shorter, or use `pause`"
            raise InvalidInput(field="--for", value=self.lasts, expected=told)
        return wanted

    def _once(self, now: datetime) -> tuple[datetime | None, datetime | None]:
        """Return begin and end of one that does not recur."""
        if self.expression:
            for field, value in (("--from", self.begin), ("--until", self.end)):
                if value:
                    told = "with --at it recurs: leave it out"
                    raise InvalidInput(field=field, value=value, expected=told)
            return None, None
        if self.lasts:
            told = "say with --at EXPR when it begins each time, or give --until instead"
            raise InvalidInput(field="--for", value=self.lasts, expected=told)
        if not self.end:
            told = "say when it ends, or with --at EXPR and --for when it recurs"
            raise InvalidInput(field="--until", value=self.end, expected=told)
        begin = instant_of(self.begin, "--from") if self.begin else now
        end = instant_of(self.end, "--until")
        if end <= max(begin, now):
            told = f"it must be after {max(begin, now).isoformat(timespec='seconds')}"
            raise InvalidInput(field="--until", value=self.end, expected=told)
        return begin, end

    def _recurring(self, now: datetime) -> tuple[Timetable, float]:
        """Return when one that recurs begins, and how long it lasts."""
        return (
            timetable_of(self.expression, self.time_zone, self.gap, self.repeat, now),
            length_of(self.lasts),
        )


def length_of(lasts: str) -> float:
    """Return how long each time of a recurring calendar is, seconds.

    Raises:
        InvalidInput: It is no duration, or longer than a year.
    """
    seconds = duration_of(lasts, "--for")
    if seconds > _LASTS_S_MAX:
        raise InvalidInput(field="--for", value=lasts, expected="at most a year (366d)")
    return seconds


def set_calendar(
    graph: GraphStores, settler: Settler, auditor: Auditor, wanted: Calendar
) -> Calendar:
    """Store a calendar, in the place of the one that its scope has by that name.

    Schedulers read it once before each batch: at most one batch may follow.

    Raises:
        InvalidInput: There is one of the other kind by that name.
        LostRace: One of the other kind was set meanwhile; nothing was written.
        Unavailable, OutcomeUnknown: Call again; the same calendar twice is one.
    """
    (standing,) = graph.calendars.read([wanted.id])
    if standing is not None and standing.is_on and standing.kind is not wanted.kind:
        told = f"there is a {standing.kind} by that name: choose another, or remove it first"
        raise InvalidInput(field="NAME", value=wanted.name, expected=told)
    owner = owner_of(graph, wanted.scope)
    auditor.record(
        f"calendars.{wanted.kind}", _thing(wanted), when(wanted), wanted.reason, tenant=owner
    )
    (created,) = create(graph.calendars, [wanted])
    made = created.value
    if not created.is_new:
        again = partial(set_anew, wanted=wanted)
        made = commit_one(graph.calendars, Change(wanted.id, again, known=made))
    settler.wake(region.id for region in graph.regions.all())
    return made


def remove_calendar(
    graph: GraphStores, settler: Settler, auditor: Auditor, calendar: Calendar, why: str = ""
) -> Calendar:
    """Remove a calendar, and wake the schedulers.

    Raises:
        Unavailable, OutcomeUnknown: Call again.
    """
    owner = owner_of(graph, calendar.scope)
    auditor.record("calendars.remove", _thing(calendar), when(calendar), why, tenant=owner)
    gone = commit_one(graph.calendars, Change(calendar.id, removed, known=calendar))
    settler.wake(region.id for region in graph.regions.all())
    return gone


def find_calendar(graph: GraphStores, scope: Scope, name: str) -> Calendar:
    """Return a scope's calendar by name.

    Raises:
        NotFound: There is none.
    """
    (found,) = graph.calendars.read([calendar_key(scope, name)])
    if found is None or not found.is_on:
        raise NotFound(thing=f"calendar of this {scope.kind}", id=name)
    return found


@dataclass(frozen=True, slots=True)
class Status:
    """How a calendar stands at a moment.

    Attributes:
        state: `in force`, `open`, `to come` or `over`.
        changes_at: When that changes; None if it does not.
    """

    state: str
    changes_at: datetime | None


def status_of(calendar: Calendar, now: datetime) -> Status:
    """Return whether a calendar is in force at `now`, and until when."""
    span = next(calendar.spans(now), None)
    if span is None:
        return Status("over", None)
    if now < span.begin:
        return Status("to come", span.begin)
    return Status("in force" if calendar.kind is CalendarKind.FREEZE else "open", span.end)


def when(calendar: Calendar) -> str:
    """Return when a calendar is in force, in one line."""
    if calendar.timetable is not None:
        table = calendar.timetable
        return f"{table.expression} for {calendar.lasts_s / 3600:g} h in {table.time_zone}"
    begin, end = calendar.begin, calendar.end
    return " to ".join(at.isoformat(timespec="seconds") for at in (begin, end) if at is not None)


def _thing(calendar: Calendar) -> str:
    return f"{calendar.name} of {calendar.scope.kind} {calendar.title}".rstrip()
