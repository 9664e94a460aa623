"""The other documents of the replicated graph store, one small promise a kind.

Inserts are insert-only and conditional writes are those of `Documents`. The lists only suggest
unless their type says more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from region_scheduler.domain.admission import Admission, AdmissionSummary
from region_scheduler.domain.calendar import Calendar
from region_scheduler.domain.durations import Durations, Sample
from region_scheduler.domain.grant import Grants, RunsInUse
from region_scheduler.domain.ids import RunId, TaskId
from region_scheduler.domain.instance import Instance
from region_scheduler.domain.pause import Pause
from region_scheduler.domain.region import Region
from region_scheduler.domain.run import Run, Zone
from region_scheduler.domain.schedule import Schedule
from region_scheduler.domain.slot import Slot
from region_scheduler.domain.task import SCHEMA, Json
from region_scheduler.domain.tenant import Quota, Tenant
from region_scheduler.ports.consistency import Deciding, Suggesting
from region_scheduler.ports.documents import Documents
from region_scheduler.ports.follower import Follower
from region_scheduler.ports.history import History
from region_scheduler.ports.leftovers import Leftovers
from region_scheduler.ports.standing import Standing
from region_scheduler.ports.tasks import TaskStore


class RunStore(Documents[Run], Protocol):
    """Published runs."""

    def unended(self) -> Deciding[list[Run]]:
        """Return the runs that have not ended, oldest first."""
        ...

    def recent(self, limit: int) -> Suggesting[list[Run]]:
        """Return runs, newest first."""
        ...

    def of_zone(self, zone: str) -> Deciding[list[Run]]:
        """Return the unended runs of a zone, oldest first."""
        ...

    def ids(self) -> Suggesting[list[RunId]]:
        """Return the ids of all runs."""
        ...


class ZoneStore(Documents[Zone], Protocol):
    """Landing zones."""

    def all(self, tenant: str = "") -> Suggesting[list[Zone]]:
        """Return zones by name, of one tenant if given."""
        ...

    def held(self) -> Deciding[list[Zone]]:
        """Return the zones that name an active run."""
        ...


class RegionStore(Documents[Region], Protocol):
    """Regions and what they may do."""

    def standing(self, region: str, tenants: Sequence[str]) -> Deciding[Standing]:
        """Return how `region` stands, and the levels of `tenants`."""
        ...

    def all(self) -> Deciding[list[Region]]:
        """Return every region by name."""
        ...


class InstanceStore(Documents[Instance], Protocol):
    """Lease documents of every incarnation."""

    def unfenced(self) -> Deciding[list[Instance]]:
        """Return every incarnation whose lease is not over, at the leader."""
        ...

    def fenced(self) -> Deciding[list[Instance]]:
        """Return every fenced incarnation that is still kept."""
        ...

    def workers(self, region: str) -> Suggesting[list[Instance]]:
        """Return the unfenced workers of `region`."""
        ...


class SlotStore(Documents[Slot], Protocol):
    """Units of scarce things."""

    def of_resources(self, names: Sequence[str]) -> Suggesting[list[Slot]]:
        """Return the slots of the named resources, by key."""
        ...

    def all(self) -> Suggesting[list[Slot]]:
        """Return every unit of every resource, by key."""
        ...

    def capacities(self, names: Sequence[str]) -> Deciding[dict[str, int]]:
        """Return how many units there are of those of the named resources that exist."""
        ...

    def held_by(self, tasks: Sequence[TaskId]) -> Deciding[list[Slot]]:
        """Return the slots that `tasks` hold, under whatever token."""
        ...

    def taken(self) -> Deciding[list[Slot]]:
        """Return every slot that is held or reserved, for the sweep."""
        ...


class AdmissionStore(Documents[Admission], Protocol):
    """What was accepted."""

    def unfinished(self) -> Deciding[list[AdmissionSummary]]:
        """Return accepted admissions that are not done, oldest first."""
        ...

    def recent(self, limit: int, instance: str = "") -> Suggesting[list[AdmissionSummary]]:
        """Return admissions, newest first; only those that `instance` made or took over, if given.

        Args:
            limit: How many at most.
            instance: The name of an instance, or one of its incarnations.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A claim or an assignment that lost.

    Attributes:
        id: Key of (task or slot, token, loser): written twice it is one.
        staleness_s: Age of the loser's view in seconds, where it is known.
    """

    id: str
    rev: str = ""
    schema: int = SCHEMA
    kind: str
    thing: str
    winner: str
    loser: str
    region: str
    winner_region: str = ""
    staleness_s: float | None = None
    at: datetime


class ConflictStore(Documents[Conflict], Protocol):
    """Double assignments that were detected."""

    def recent(self, limit: int) -> Suggesting[list[Conflict]]:
        """Return conflicts, newest first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A decision or an outside event for an awaiting task, recorded before the task is looked at.

    Attributes:
        id: Key of (task, name, submission, actor).
        name: `approval`, or the event's name.
    """

    id: str
    rev: str = ""
    schema: int = SCHEMA
    task: TaskId
    name: str
    submission: int
    actor: str
    is_yes: bool
    outputs: dict[str, Json]
    comment: str = ""
    at: datetime


class AnswerStore(Documents[Answer], Protocol):
    """Approvals and events."""

    def for_tasks(self, tasks: Sequence[TaskId]) -> Deciding[list[Answer]]:
        """Return all answers recorded for `tasks`, oldest first."""
        ...


class TenantStore(Documents[Tenant], Protocol):
    """Customers."""

    def all(self) -> Suggesting[list[Tenant]]:
        """Return every tenant that has a document, by name."""
        ...


class GrantStore(Documents[Grants], Protocol):
    """What each tenant was granted under its quota and is perhaps not there yet."""

    def runs_in_use(self, grants: Grants, quota: Quota, day: datetime) -> Deciding[RunsInUse]:
        """Return how much of its quota of runs a tenant uses, besides what `grants` names.

        Args:
            grants: As read before; what they name is counted by the caller.
            quota: Only what it bounds is counted.
            day: When the day began.
        """
        ...

    def zones_in_use(self, tenant: str) -> Deciding[int]:
        """Count the zones of `tenant`."""
        ...


class PauseStore(Documents[Pause], Protocol):
    """The pause of each scope that ever had one."""

    def on(self) -> Deciding[list[Pause]]:
        """Return the pauses that were not lifted."""
        ...


class CalendarStore(Documents[Calendar], Protocol):
    """Freezes and windows, removed ones too."""

    def on(self) -> Deciding[list[Calendar]]:
        """Return the calendars that were not removed."""
        ...


class ScheduleStore(Documents[Schedule], Protocol):
    """Schedules, deleted ones too while their key is kept."""

    def all(self, tenant: str = "") -> Suggesting[list[Schedule]]:
        """Return the schedules that are not deleted, by name, of one tenant if given."""
        ...

    def open(self, now: datetime) -> Suggesting[list[Schedule]]:
        """Return those with something to do: due at `now`, waiting, or fired and not done with."""
        ...

    def next_at(self, region: str, now: datetime) -> Suggesting[datetime | None]:
        """Return when the next schedule at home in `region` is due after `now`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Who did what, when, to which thing, why, and from where; never changed once it is there.

    Attributes:
        actor: Who, e.g. `operator:anna`.
        action: What, e.g. `runs.cancel`.
        thing: To which: an id.
        tenant: Whose thing it is; empty if it is nobody's, or everybody's.
        detail: What of it changed.
        why: In the actor's own words.
        source: From where: the surface and the machine.
    """

    id: str
    rev: str = ""
    schema: int = SCHEMA
    tenant: str = ""
    actor: str
    action: str
    thing: str
    detail: str = ""
    why: str = ""
    source: str = ""
    at: datetime


class DurationStore(Documents[Durations], Protocol):
    """What regions have learned of durations."""

    def all(self) -> Suggesting[list[Durations]]:
        """Return what every region knows."""
        ...

    def samples(self, region: str, runs: int, limit: int) -> Suggesting[list[Sample]]:
        """Return what tasks of `region` took that ended well in the newest runs, newest first."""
        ...


class AuditStore(Documents[AuditEntry], Protocol):
    """What people did; entries are only ever inserted."""

    def recent(
        self, limit: int, tenant: str = "", since: datetime | None = None
    ) -> Suggesting[list[AuditEntry]]:
        """Return entries, newest first; of one tenant, or since an instant, if given."""
        ...


class GraphStores(Protocol):
    """All kinds of documents of one graph store, as reached from one region."""

    @property
    def tasks(self) -> TaskStore:
        """The tasks and their dependencies."""
        ...

    @property
    def runs(self) -> RunStore:
        """Published runs."""
        ...

    @property
    def zones(self) -> ZoneStore:
        """Landing zones."""
        ...

    @property
    def regions(self) -> RegionStore:
        """Regions."""
        ...

    @property
    def instances(self) -> InstanceStore:
        """Leases."""
        ...

    @property
    def slots(self) -> SlotStore:
        """Units of scarce things."""
        ...

    @property
    def admissions(self) -> AdmissionStore:
        """What was accepted."""
        ...

    @property
    def conflicts(self) -> ConflictStore:
        """What lost."""
        ...

    @property
    def answers(self) -> AnswerStore:
        """Approvals and events."""
        ...

    @property
    def tenants(self) -> TenantStore:
        """Customers."""
        ...

    @property
    def grants(self) -> GrantStore:
        """What tenants were granted."""
        ...

    @property
    def pauses(self) -> PauseStore:
        """Where nothing new is promoted."""
        ...

    @property
    def calendars(self) -> CalendarStore:
        """When something may be promoted."""
        ...

    @property
    def schedules(self) -> ScheduleStore:
        """What runs at given times."""
        ...

    @property
    def durations(self) -> DurationStore:
        """What steps take."""
        ...

    @property
    def leftovers(self) -> Leftovers:
        """What may be removed."""
        ...

    @property
    def audit(self) -> AuditStore:
        """What people did."""
        ...

    @property
    def history(self) -> History:
        """All of it, to be held against the promises."""
        ...

    @property
    def follower(self) -> Follower:
        """Where suggesting reads come from."""
        ...
