"""Create, pause and delete schedules; make the plan of one that fires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from region_scheduler.admission.capacities import known_of
from region_scheduler.admission.importers.fields import a_choice
from region_scheduler.admission.rules import checked
from region_scheduler.commit.create import create
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.limits import LIMITS, Limits
from region_scheduler.domain.region import Region
from region_scheduler.domain.run import RunMode, Zone
from region_scheduler.domain.schedule import (
    KEPT_MAX,
    CatchUp,
    Overlap,
    Schedule,
    deleted,
    revived,
    schedule_key,
    switched,
)
from region_scheduler.domain.task import Json
from region_scheduler.domain.timetable import Gap, Repeat, Timetable
from region_scheduler.domain.timetable import checked as checked_timetable
from region_scheduler.errors import InvalidGraph, InvalidInput, NotFound
from region_scheduler.operations.audit import Auditor
from region_scheduler.operations.plans import plan_of, plan_of_document, simulated
from region_scheduler.operations.zones import find_zone
from region_scheduler.ports.records import GraphStores

MODES: Final = (RunMode.APPLY,)
"""What a schedule may do now; others are refused until runs of their mode can be made."""
_NAME_MAX: Final = 100
_KEPT: Final = 10
_ANY_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleWish:
    """A schedule as somebody typed it; `check` needs no store, `schedule` does.

    Attributes:
        zone: Name of the zone that it runs; empty for a graph.
        document: The graph, in the product's form; None for a zone.
        regions: Target regions of a graph; all scheduler regions if empty.
        catch_up: `all`, `all:N`, `last` or `none`.
        time_scale: Steps are simulated, durations multiplied by this; None runs them for real.
        limits: How big a graph may be.
    """

    name: str
    tenant: str
    zone: str = ""
    document: Json = None
    regions: tuple[str, ...] = ()
    expression: str
    time_zone: str = "UTC"
    gap: str = Gap.SHIFT
    repeat: str = Repeat.ONCE
    overlap: str = Overlap.SKIP
    catch_up: str = CatchUp.LAST
    queue_max: int = 10
    mode: str = RunMode.APPLY
    time_scale: float | None = None
    limits: Limits = LIMITS

    def check(self) -> None:
        """Refuse what can be refused without a store.

        Raises:
            InvalidInput: A name, a number or a choice is not accepted.
        """
        if not 0 < len(self.name) <= _NAME_MAX or not self.name.isprintable():
            told = f"a name has 1 to {_NAME_MAX} characters that can be seen"
            raise InvalidInput(field="NAME", value=self.name[:_NAME_MAX], expected=told)
        if self.zone and self.regions:
            told = "a zone has its own regions: leave it out"
            raise InvalidInput(field="--regions", value=",".join(self.regions), expected=told)
        mode = a_choice(self.mode, "--mode", RunMode)
        if mode not in MODES:
            told = f"runs of this mode cannot be scheduled yet; give {', '.join(MODES)}"
            raise InvalidInput(field="--mode", value=self.mode, expected=told)
        a_choice(self.overlap, "--overlap", Overlap)
        _kept_of(self.catch_up)
        _number(str(self.queue_max), "--queue-max")
        timetable_of(self.expression, self.time_zone, self.gap, self.repeat, _ANY_TIME)

    def schedule(
        self, graph: GraphStores, known: Sequence[Region], now: datetime, by: str
    ) -> Schedule:
        """Return the schedule, due for the first time after `now`.

        Raises:
            Rejected: Something of it is not accepted, or no plan can be made of it.
            NotFound: There is no such zone.
            Unavailable: No answer.
        """
        self.check()
        table = timetable_of(self.expression, self.time_zone, self.gap, self.repeat, now)
        catch_up, most = _kept_of(self.catch_up)
        wanted = Schedule(
            id=schedule_key(self.tenant, self.name),
            tenant=self.tenant,
            name=self.name,
            timetable=table,
            overlap=a_choice(self.overlap, "--overlap", Overlap),
            catch_up=catch_up,
            catch_up_max=most,
            queue_max=self.queue_max,
            mode=a_choice(self.mode, "--mode", RunMode),
            time_scale=self.time_scale,
            home_region="",
            next_at=table.next_after(now),
            created_at=now,
            created_by=by,
        )
        if not self.zone:
            plan = plan_of_document(
                self.document,
                known,
                self.regions,
                self.tenant,
                self.time_scale,
                self.limits,
                graph.slots.capacities,
            )
            self._check(plan, graph)
            _refuse_resident(plan)
            return replace(wanted, plan=plan, home_region=plan.home_region)
        zone = find_zone(graph, self.tenant, self.zone)
        plan = _plan_of_zone(zone, known, wanted)
        self._check(plan, graph)
        return replace(wanted, zone=zone.id, zone_name=zone.name, home_region=plan.home_region)

    def _check(self, plan: Plan, graph: GraphStores) -> None:
        checked(plan, self.limits, known_of(plan, graph.slots.capacities))


def timetable_of(
    expression: str, time_zone: str, gap: str, repeat: str, after: datetime
) -> Timetable:
    """Return a timetable of what somebody typed; it is due at least once after an instant.

    Raises:
        InvalidInput: One of them is not accepted.
    """
    return checked_timetable(
        expression,
        time_zone,
        a_choice(gap, "--gap", Gap),
        a_choice(repeat, "--repeat", Repeat),
        after,
    )


def _kept_of(text: str) -> tuple[CatchUp, int]:
    """Return a catch-up policy, and how many late ones it keeps."""
    policy, colon, number = text.partition(":")
    catch_up = a_choice(policy, "--catch-up", CatchUp)
    if not colon:
        return catch_up, _KEPT
    if catch_up is not CatchUp.ALL:
        told = "only `all` takes a number, e.g. all:5"
        raise InvalidInput(field="--catch-up", value=text, expected=told)
    return catch_up, _number(number, "--catch-up")


def _number(text: str, field: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= KEPT_MAX):
        told = f"give a number from 1 to {KEPT_MAX}"
        raise InvalidInput(field=field, value=text, expected=told)
    return int(text)


def create_schedule(graph: GraphStores, auditor: Auditor, wanted: Schedule) -> Schedule:
    """Store a checked schedule; the first occurrence after its creation is its first.

    Raises:
        InvalidInput: The tenant has another schedule of that name.
        Unavailable, OutcomeUnknown: Call again; the same schedule twice is one.
    """
    auditor.record(
        "schedules.create", wanted.name, wanted.timetable.expression, tenant=wanted.tenant
    )
    (created,) = create(graph.schedules, [wanted])
    standing = created.value
    if standing.is_deleted:
        again = Change(standing.id, partial(revived, wanted=wanted), known=standing)
        standing = commit_one(graph.schedules, again)
    if standing.definition != wanted.definition:
        told = "it exists with another definition; choose another name, or delete it first"
        raise InvalidInput(field="NAME", value=wanted.name, expected=told)
    return standing


def find_schedule(graph: GraphStores, tenant: str, name: str) -> Schedule:
    """Return a tenant's schedule by name.

    Raises:
        NotFound: There is none.
    """
    (found,) = graph.schedules.read([schedule_key(tenant, name)])
    if found is None or found.is_deleted:
        raise NotFound(thing="schedule", id=name)
    return found


def switch_schedule(
    graph: GraphStores, auditor: Auditor, schedule: Schedule, *, is_enabled: bool, reason: str
) -> Schedule:
    """Pause a schedule, or let it go on; what is due meanwhile is recorded as missed.

    Raises:
        Unavailable, OutcomeUnknown: Call again.
    """
    action = "schedules.unpause" if is_enabled else "schedules.pause"
    auditor.record(action, schedule.name, reason, tenant=schedule.tenant)
    switch = partial(switched, is_enabled=is_enabled, reason=reason)
    return commit_one(graph.schedules, Change(schedule.id, switch, known=schedule))


def delete_schedule(graph: GraphStores, auditor: Auditor, schedule: Schedule) -> Schedule:
    """Delete a schedule; its runs go on, and those that only wait for one are dropped.

    Raises:
        Unavailable, OutcomeUnknown: Call again.
    """
    auditor.record("schedules.delete", schedule.name, tenant=schedule.tenant)
    return commit_one(graph.schedules, Change(schedule.id, deleted, known=schedule))


def _refuse_resident(plan: Plan) -> None:
    """Refuse what would be kept in the replicated store until it is due."""
    if any(spec.is_resident for spec in plan.tasks):
        told = "a schedule keeps its graph in every region, and this one has resident tasks"
        raise InvalidGraph(problems=[told])


def plan_of_schedule(graph: GraphStores, schedule: Schedule) -> Plan:
    """Return the plan of a schedule's next run: the zone's as it is now, or the stored one.

    Raises:
        NotFound: The zone does not exist any more.
        Rejected: No plan can be made of it any more.
        Unavailable: No answer.
    """
    if schedule.plan is not None:
        return replace(schedule.plan, mode=schedule.mode)
    (zone,) = graph.zones.read([schedule.zone])
    if zone is None:
        raise NotFound(thing="zone", id=schedule.zone_name)
    return _plan_of_zone(zone, graph.regions.all(), schedule)


def _plan_of_zone(zone: Zone, known: Sequence[Region], schedule: Schedule) -> Plan:
    plan = replace(plan_of(zone, known), mode=schedule.mode)
    return plan if schedule.time_scale is None else simulated(plan, schedule.time_scale)
