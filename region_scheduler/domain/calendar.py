"""Calendars: freezes, in which nothing new is promoted, and windows, outside of which nothing is.

A scope may have several. It is shut while one of its freezes is in force; if it has windows, it is
shut while none of them is open. Scopes do not know each other: whatever applies to a task must let
it pass. Each reader looks at its own wall clock, as for pauses and schedules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

from region_scheduler.domain.ids import digest_of
from region_scheduler.domain.pause import Closed, Scope
from region_scheduler.domain.task import SCHEMA
from region_scheduler.domain.timetable import Timetable
from region_scheduler.errors import LostRace

_JOINED_MAX: Final = 500
"""Occurrences in a row that run into each other: more of them are taken for one without an end."""
_CHANGES_MAX: Final = 200


class CalendarKind(StrEnum):
    """What a calendar does to its scope."""

    FREEZE = "freeze"
    WINDOW = "window"


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time from `begin` until just before `end`; None if no end was found."""

    begin: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """One freeze or window of a scope, also one that was removed: its successor takes its place.

    Attributes:
        id: See `calendar_key`.
        revision: Rises with every change by a person.
        is_on: Whether it was not removed.
        scope: Everything, a region, a tenant or a zone.
        title: Of the scope, for people: a zone's name instead of its key.
        begin: With `end`, the one time that it is in force; None if it recurs.
        timetable: When it begins, if it recurs.
        lasts_s: How long each time, seconds, by the clocks of the timetable (`Timetable.lasting`).
        by: Who set it last.
    """

    id: str
    rev: str = ""
    schema: int = SCHEMA
    name: str
    kind: CalendarKind
    scope: Scope
    title: str
    revision: int = 1
    is_on: bool = True
    begin: datetime | None = None
    end: datetime | None = None
    timetable: Timetable | None = None
    lasts_s: float = 0.0
    reason: str
    by: str
    at: datetime

    @property
    def definition(self) -> tuple[object, ...]:
        """What a person said of it; two with the same are the same calendar."""
        return (self.kind, self.begin, self.end, self.timetable, self.lasts_s, self.reason)

    def spans(self, now: datetime) -> Iterator[Span]:
        """Yield when it is in force, in order, from the first that is not over at `now`.

        Occurrences that touch or overlap are one.
        """
        span: tuple[datetime, datetime] | None = None
        joined = 0
        for begin, end in self._each(now):
            if span is None or span[1] < begin:
                if span is not None and now < span[1]:
                    yield Span(*span)
                span, joined = (begin, end), 0
            elif joined < _JOINED_MAX:
                span, joined = (span[0], max(span[1], end)), joined + 1
            else:
                yield Span(span[0], None)
                return
        if span is not None and now < span[1]:
            yield Span(*span)

    def _each(self, now: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Yield begin and end of each occurrence; the first may be over at `now`."""
        if self.timetable is not None:
            for at in self.timetable.after(self.timetable.earliest_not_over(now, self.lasts_s)):
                yield at, self.timetable.lasting(at, self.lasts_s)
        elif self.begin is not None and self.end is not None:
            yield self.begin, self.end

    def told(self, instant: datetime) -> str:
        """Return an instant as the clocks of this calendar show it."""
        zone = self.timetable.time_zone if self.timetable else "UTC"
        return instant.astimezone(ZoneInfo(zone)).isoformat(timespec="seconds")


def calendar_key(scope: Scope, name: str) -> str:
    """Return the key of a scope's calendar: a name is unique within its scope."""
    return digest_of(scope.kind, scope.name, name)


def set_anew(calendar: Calendar, wanted: Calendar) -> Calendar:
    """Return the calendar as `wanted` says; the same twice is one change.

    Raises:
        LostRace: It is of the other kind now.
    """
    if calendar.is_on and calendar.kind is not wanted.kind:
        raise LostRace(thing=f"calendar {wanted.name}", winner=f"a {calendar.kind} by that name")
    if calendar.is_on and calendar.definition == wanted.definition:
        return calendar
    return replace(wanted, rev=calendar.rev, revision=calendar.revision + 1)


def removed(calendar: Calendar) -> Calendar:
    """Return the calendar, removed."""
    if not calendar.is_on:
        return calendar
    return replace(calendar, is_on=False, revision=calendar.revision + 1)


@dataclass(frozen=True, slots=True)
class Shut:
    """Why calendars keep a scope shut at some moment.

    Attributes:
        until: When this reason ends by itself; None if never.
    """

    kind: CalendarKind
    scope: Scope
    text: str
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Outlook:
    """What calendars say at a moment, and until when they go on saying so.

    Attributes:
        until: None if for ever.
    """

    shut: tuple[Shut, ...]
    since: datetime
    until: datetime | None

    def holds_at(self, now: datetime) -> bool:
        """Say whether it is still true; a clock that was set back makes it unknown."""
        return self.since <= now and (self.until is None or now < self.until)


def outlook(calendars: Iterable[Calendar], now: datetime) -> Outlook:
    """Return what `calendars` keep shut at `now`, a reading of the caller's own wall clock."""
    shut: list[Shut] = []
    changes: list[datetime] = []
    windows: dict[Scope, list[tuple[Calendar, Span | None]]] = defaultdict(list)
    for calendar in calendars:
        span = next(calendar.spans(now), None)
        if span is not None:
            change = span.end if span.begin <= now else span.begin
            changes += [change] if change is not None else []
        if calendar.kind is CalendarKind.WINDOW:
            windows[calendar.scope].append((calendar, span))
        elif span is not None and span.begin <= now:
            shut.append(_frozen(calendar, span))
    shut += [
        _outside(seen)
        for seen in windows.values()
        if not any(span is not None and span.begin <= now for _, span in seen)
    ]
    return Outlook(tuple(shut), now, min(changes, default=None))


def opens_at(
    calendars: Sequence[Calendar], scopes: Collection[Scope], now: datetime
) -> datetime | None:
    """Return the first instant from `now` on at which no calendar keeps any of `scopes` shut.

    None if there is none, or none within many changes.
    """
    mine = [calendar for calendar in calendars if calendar.scope in scopes]
    for _ in range(_CHANGES_MAX):
        shut = outlook(mine, now).shut
        if not shut:
            return now
        ends = [one.until for one in shut if one.until is not None]
        if len(ends) < len(shut):
            return None
        now = max(ends)
    return None


def shut_too(closed: Closed, shut: Iterable[Shut]) -> Closed:
    """Return what is closed when calendars keep scopes shut as well."""
    return replace(closed, reasons={**{one.scope: one.text for one in shut}, **closed.reasons})


def _frozen(calendar: Calendar, span: Span) -> Shut:
    until = "without an end" if span.end is None else f"until {calendar.told(span.end)}"
    told = f"{_title(calendar)} is frozen {until} by {calendar.by} ({calendar.name})"
    return Shut(CalendarKind.FREEZE, calendar.scope, f"{told}: {calendar.reason}", span.end)


def _outside(windows: Sequence[tuple[Calendar, Span | None]]) -> Shut:
    """Return why a scope is shut none of whose windows is open."""
    coming = [(span.begin, calendar) for calendar, span in windows if span is not None]
    first, _ = windows[0]
    opens, following = None, "none is to come: set another, or remove it"
    if coming:
        opens, calendar = min(coming, key=lambda one: (one[0], one[1].name))
        following = f"{calendar.name} opens at {calendar.told(opens)}: {calendar.reason}"
    names = ", ".join(sorted(calendar.name for calendar, _ in windows))
    told = f"{_title(first)} is outside its windows ({names}); {following}"
    return Shut(CalendarKind.WINDOW, first.scope, told, opens)


def _title(calendar: Calendar) -> str:
    return f"{calendar.scope.kind} {calendar.title}".strip()
