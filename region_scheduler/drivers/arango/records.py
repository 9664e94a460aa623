"""All other documents of the graph store, one class a port."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from arango.database import StandardDatabase

from region_scheduler.domain.admission import Admission, AdmissionState, AdmissionSummary
from region_scheduler.domain.calendar import Calendar
from region_scheduler.domain.durations import Durations, Sample, step_key
from region_scheduler.domain.grant import Grants, RunsInUse
from region_scheduler.domain.ids import RunId, TaskId
from region_scheduler.domain.instance import Instance, Role
from region_scheduler.domain.pause import Pause
from region_scheduler.domain.region import Region
from region_scheduler.domain.run import Run, Zone
from region_scheduler.domain.schedule import Schedule
from region_scheduler.domain.slot import Slot
from region_scheduler.domain.states import RUN_ENDED, RunState
from region_scheduler.domain.tenant import Quota, Tenant, tenant_key
from region_scheduler.drivers.arango.codec import Codec, instant
from region_scheduler.drivers.arango.documents import ArangoDocuments
from region_scheduler.drivers.arango.query import Queries
from region_scheduler.ports.records import Answer, AuditEntry, Conflict
from region_scheduler.ports.standing import Standing
from region_scheduler.ports.tasks import InFlight

_NEVER: Final = datetime.max.replace(tzinfo=UTC)
_UNENDED: Final = [state.value for state in RunState if state not in RUN_ENDED]


class ArangoRuns(ArangoDocuments[Run]):
    """Published runs."""

    def __init__(self, db: StandardDatabase, queries: Queries) -> None:
        super().__init__(db, queries, Codec(Run, "runs"))

    def unended(self) -> list[Run]:
        """Return the runs that have not ended, oldest first."""
        return self.listed("runs_unended", states=_UNENDED)

    def recent(self, limit: int) -> list[Run]:
        """Return runs, newest first."""
        return self.listed("runs_recent", limit=limit)

    def of_zone(self, zone: str) -> list[Run]:
        """Return the unended runs of a zone, oldest first."""
        return self.listed("runs_of_zone", zone=zone, states=_UNENDED)

    def ids(self) -> list[RunId]:
        """Return the ids of all runs."""
        return [RunId(id_) for id_ in self._queries.rows("runs_ids")]


class ArangoZones(ArangoDocuments[Zone]):
    """Landing zones."""

    def __init__(self, db: StandardDatabase, queries: Queries) -> None:
        super().__init__(db, queries, Codec(Zone, "zones"))

    def all(self, tenant: str = "") -> list[Zone]:
        """Return zones by name, of one tenant if given."""
        return self.listed("zones_all", tenant=tenant)

    def held(self) -> list[Zone]:
        """Return the zones that name an active run."""
        return self.listed("zones_held")


class ArangoRegions(ArangoDocuments[Region]):
    """Regions and what they may do."""

    def __init__(self, db: StandardDatabase, queries: Queries) -> None:
        super().__init__(db, queries, Codec(Region, "regions"))
        self._pauses = Codec(Pause, "pauses")
        self._calendars = Codec(Calendar, "calendars")
        self._instances = Codec(Instance, "instances")
        self._tenants = Codec(Tenant, "tenants")

    def standing(self, region: str, tenants: Sequence[str]) -> Standing:
        """Return how `region` stands, and the levels of `tenants`."""
        keys = [tenant_key(name) for name in tenants]
        question = "region_standing"
        (seen,) = self._queries.rows(question, region=region, tenants=keys, states=_UNENDED)
        known = {tenant.name: tenant.level for tenant in self._tenants.all_decoded(seen["tenants"])}
        return Standing(
            region=self._codec.decoded(seen["region"]) if seen["region"] else None,
            pauses=self._pauses.all_decoded(seen["pauses"]),
            calendars=self._calendars.all_decoded(seen["calendars"]),
            zone_runs={r["zone"]: [RunId(id_) for id_ in r["runs"]] for r in seen["zone_runs"]},
            in_flight=InFlight({(r["tenant"], r["pool"]): r["count"] for r in seen["in_flight"]}),
            members=self._instances.all_decoded(seen["members"]),
            levels={name: known.get(name) for name in tenants},
        )

    def all(self) -> list[Region]:
        """Return every region by name."""
        return self.listed("regions_all")


class ArangoInstances(ArangoDocuments[Instance]):
    """Lease documents of every incarnation."""

    def __init__(self, db: StandardDatabase, queries: Queries) -> None:
        super().__init__(db, queries, Codec(Instance, "instances"))

    def unfenced(self) -> list[Instance]:
        """Return every incarnation whose lease is not over."""
        return self.listed("instances_unfenced")

    def fenced(self) -> list[Instance]:
        """Return every fenced incarnation that is still kept."""
        return self.listed("instances_fenced")

    def workers(self, region: str) -> list[Instance]:
        """Return the unfenced workers of `region`."""
        return self.listed("instances_workers", region=region, role=Role.WORKER)


class ArangoSlots(ArangoDocuments[Slot]):
    """Units of scarce things."""

    def __init__(self, db: StandardDatabase, queries: Queries) -> None:
        super().__init__(db, queries, Codec(Slot, "slots"))

    def of_resources(self, names: Sequence[str]) -> list[Slot]:
        """Return the slots of the named resources, by key."""
        return self.listed("slots_of_resources", resources=list(names))

    def all(self) -> list[Slot]:
        """Return every unit of every resource, by key."""
        return self.listed("slots_all")

    def capacities(self, names: Sequence[str]) -> dict[str, int]:
        """Return how many units there are of those of the named resources that exist."""
        rows = self._queries.rows("slots_capacities", resources=list(names))
        return {row["resource"]: int(row["units"]) for row in rows}

    def held_by(self, tasks: Sequence[TaskId]) -> list[Slot]:
        """Return the slots that `tasks` hold, under whatever token."""
        return self.listed("slots_held_by", tasks=list(tasks))

    def taken(self) -> list[Slot]:
        """Return every slot that is held or reserved."""
        return self.listed("slots_taken")


class ArangoAdmissions(ArangoDocuments[Admission]):
    """What was accepted."""

    def __init__(self, db: StandardDatabase, queries: Queries) -> None:
        super().__init__(db, queries, Codec(Admission, "admissions"))
        self._summaries = Codec(AdmissionSummary, "admissions")

    def unfinished(self) -> list[AdmissionSummary]:
        """Return accepted admissions that are not done, oldest first."""
        return self._summarised("admissions_unfinished")

    def recent(self, limit: int, instance: str = "") -> list[AdmissionSummary]:
        """Return admissions, newest first; of one instance or incarnation if given."""
        return self._summarised("admissions_recent", limit=limit, instance=instance)

    def _summarised(self, query: str, **parameters: Any) -> list[AdmissionSummary]:
        rows = self._queries.rows(query, **parameters)
        return [found for row in rows if (found := self._summaries.decoded(row)) is not None]


class ArangoConflicts(ArangoDocuments[Conflict]):
    """Double assignments that were detected."""

    def __init__(self, db: StandardDatabase, queries: Queries) -> None:
        super().__init__(db, queries, Codec(Conflict, "conflicts"))

    def recent(self, limit: int) -> list[Conflict]:
        """Return conflicts, newest first."""
        return self.listed("conflicts_recent", limit=limit)


class ArangoAnswers(ArangoDocuments[Answer]):
    """Approvals and events."""

    def __init__(self, db: StandardDatabase, queries: Queries) -> None:
        super().__init__(db, queries, Codec(Answer, "answers"))

    def for_tasks(self, tasks: Sequence[TaskId]) -> list[Answer]:
        """Return all answers recorded for `tasks`, oldest first."""
        return self.listed("answers_for", tasks=list(tasks))


class ArangoTenants(ArangoDocuments[Tenant]):
    """Customers."""

    def __init__(self, db: StandardDatabase, queries: Queries) -> None:
        super().__init__(db, queries, Codec(Tenant, "tenants"))

    def all(self) -> list[Tenant]:
        """Return every tenant that has a document, by name."""
        return self.listed("tenants_all")


class ArangoGrants(ArangoDocuments[Grants]):
    """What tenants were granted."""

    def __init__(self, db: StandardDatabase, queries: Queries) -> None:
        super().__init__(db, queries, Codec(Grants, "grants"))

    def runs_in_use(self, grants: Grants, quota: Quota, day: datetime) -> RunsInUse:
        """Return how much of its quota of runs a tenant uses, besides `grants`."""
        since = _NEVER if quota.runs_a_day_max is None else day
        (found,) = self._queries.rows(
            "grants_runs_in_use",
            tenant=grants.tenant,
            granted=[one.admission for one in grants.runs],
            runs=[one.run for one in grants.runs],
            since=instant(since),
            states=[] if quota.runs_in_flight_max is None else _UNENDED,
            void=[AdmissionState.VOID],
            uncounted=[AdmissionState.VOID, AdmissionState.REFUSED],
        )
        return RunsInUse(found["in_flight"], found["today"], frozenset(found["seen"]))

    def zones_in_use(self, tenant: str) -> int:
        """Count the zones of `tenant`."""
        (count,) = self._queries.rows("grants_zones_in_use", tenant=tenant)
        return int(count)


class ArangoPauses(ArangoDocuments[Pause]):
    """The pause of each scope that ever had one."""

    def __init__(self, db: StandardDatabase, queries: Queries) -> None:
        super().__init__(db, queries, Codec(Pause, "pauses"))

    def on(self) -> list[Pause]:
        """Return the pauses that were not lifted."""
        return self.listed("pauses_on")


class ArangoCalendars(ArangoDocuments[Calendar]):
    """Freezes and windows, removed ones too."""

    def __init__(self, db: StandardDatabase, queries: Queries) -> None:
        super().__init__(db, queries, Codec(Calendar, "calendars"))

    def on(self) -> list[Calendar]:
        """Return the calendars that were not removed."""
        return self.listed("calendars_on")


class ArangoSchedules(ArangoDocuments[Schedule]):
    """Schedules."""

    def __init__(self, db: StandardDatabase, queries: Queries) -> None:
        super().__init__(db, queries, Codec(Schedule, "schedules"))

    def all(self, tenant: str = "") -> list[Schedule]:
        """Return the schedules that are not deleted, by name, of one tenant if given."""
        return self.listed("schedules_all", tenant=tenant)

    def open(self, now: datetime) -> list[Schedule]:
        """Return those with something to do at `now`."""
        return self.listed("schedules_open", now=instant(now))

    def next_at(self, region: str, now: datetime) -> datetime | None:
        """Return when the next schedule at home in `region` is due after `now`."""
        rows = self._queries.rows("schedules_next", region=region, now=instant(now))
        return datetime.fromisoformat(rows[0]) if rows else None


class ArangoDurations(ArangoDocuments[Durations]):
    """What regions have learned of durations."""

    def __init__(self, db: StandardDatabase, queries: Queries) -> None:
        super().__init__(db, queries, Codec(Durations, "durations"))

    def all(self) -> list[Durations]:
        """Return what every region knows."""
        return self.listed("durations_all")

    def samples(self, region: str, runs: int, limit: int) -> list[Sample]:
        """Return what tasks of `region` took that ended well in the newest runs, newest first."""
        rows = self._queries.rows("durations_samples", region=region, runs=runs, limit=limit)
        return [
            Sample(
                step_key(runner, step),
                datetime.fromisoformat(begin),
                datetime.fromisoformat(end),
            )
            for runner, step, begin, end in rows
        ]


class ArangoAudit(ArangoDocuments[AuditEntry]):
    """What people did."""

    def __init__(self, db: StandardDatabase, queries: Queries) -> None:
        super().__init__(db, queries, Codec(AuditEntry, "audit"))

    def recent(
        self, limit: int, tenant: str = "", since: datetime | None = None
    ) -> list[AuditEntry]:
        """Return entries, newest first; of one tenant, or since an instant, if given."""
        begin = "" if since is None else instant(since)
        return self.listed("audit_recent", limit=limit, tenant=tenant, since=begin)
