"""One rich value of every kind of document, and small graphs to ask questions of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from region_scheduler.domain.admission import Admission, Plan, admission_key
from region_scheduler.domain.calendar import Calendar, CalendarKind, calendar_key
from region_scheduler.domain.durations import Durations, Figure
from region_scheduler.domain.grant import Grants, RunGrant
from region_scheduler.domain.ids import (
    ClaimId,
    Incarnation,
    ReceiptId,
    RunId,
    slot_key,
    task_id,
    zone_key,
)
from region_scheduler.domain.instance import Fence, FenceKind, Instance, Role
from region_scheduler.domain.pause import Pause, Scope, ScopeKind
from region_scheduler.domain.region import Region, RegionStatus
from region_scheduler.domain.run import Run, RunMode, Zone
from region_scheduler.domain.schedule import Firing, Missed, Schedule, schedule_key
from region_scheduler.domain.slot import Reservation, Slot, SlotHolder
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import LockNeed, OnLoss, Task, Token, WhenHolderLost
from region_scheduler.domain.tenant import Level, Quota, Tenant, tenant_key
from region_scheduler.domain.timetable import Gap, Timetable
from region_scheduler.drivers.arango.graph import ArangoGraph
from region_scheduler.ports.documents import WriteResult
from region_scheduler.ports.records import Answer, AuditEntry, Conflict
from tests.unit.domain.samples import AT, IN_STATE, RUN, a_spec, a_task, running

TEXT: Final = 'Zürich 東京 🚀 "quoted" \\ \x00 {{x}} /* */ ${y}'
JSON: Final[dict[str, Any]] = {
    "list": [1, 2.5, None, True, {"deep": [[]]}],
    TEXT: TEXT,
    "empty": {},
}


def _task() -> Task:
    spec = a_spec(
        TEXT,
        inputs=JSON,
        locks=(LockNeed("acme/aws:organizations", 1, 1, WhenHolderLost.KEEP),),
        on_loss=OnLoss.INSPECT,
        remaining_s=12.5,
    )
    return replace(running(name=TEXT, spec=spec), outputs=JSON, log_tail=TEXT, trace="00-ab-cd-01")


def a_run(id_: str = "run1", **more: Any) -> Run:
    given: dict[str, Any] = {
        "tenant": "acme",
        "name": TEXT,
        "home_region": "eu",
        "regions": ("eu", "us"),
        "task_count": 2,
        "edge_count": 1,
        "digest": "d",
        "created_at": AT,
    }
    return Run(id=RunId(id_), **{**given, **more})


def a_zone(name: str = "prod", tenant: str = "acme", **more: Any) -> Zone:
    given: dict[str, Any] = {
        "zone_type": "aws-pci_dss",
        "catalog_version": "1",
        "parameters": JSON,
        "regions": ("eu",),
        "created_at": AT,
    }
    return Zone(id=zone_key(tenant, name), tenant=tenant, name=name, **{**given, **more})


def an_instance(id_: str, **more: Any) -> Instance:
    given: dict[str, Any] = {
        "roles": (Role.WORKER, Role.API),
        "region": "eu",
        "ttl_s": 4.0,
        "receipts": (ReceiptId("r1"), ReceiptId("r2")),
        "capacity": {"default": 4},
        "stamped_at": AT + timedelta(microseconds=7),
    }
    return Instance(id=Incarnation(id_), **{**given, **more})


def a_slot(resource: str = TEXT, unit: int = 0, **more: Any) -> Slot:
    return Slot(id=slot_key(resource, unit), resource=resource, unit=unit, **more)


def an_admission(key: str = TEXT, **more: Any) -> Admission:
    plan = Plan(
        name="run",
        tenant="acme",
        mode=RunMode.PLAN,
        home_region="eu",
        regions=("eu", "us"),
        tasks=(a_spec("a", inputs=JSON), a_spec("b")),
        edges=(("a", "b"),),
    )
    given: dict[str, Any] = {
        "body_digest": "abc",
        "run": RunId("run1"),
        "plan": plan,
        "instance": Incarnation("api:1"),
        "created_at": AT,
    }
    return Admission(
        id=admission_key("client", "acme", key), tenant="acme", key=key, **{**given, **more}
    )


def a_conflict(id_: str = "c1", **more: Any) -> Conflict:
    given: dict[str, Any] = {
        "kind": "claim",
        "thing": "tasks/x",
        "winner": "s:1",
        "loser": "s:2",
        "region": "eu",
        "staleness_s": 0.25,
        "at": AT,
    }
    return Conflict(id=id_, **{**given, **more})


def an_answer(id_: str = "a1", **more: Any) -> Answer:
    given: dict[str, Any] = {
        "task": task_id(RunId("run1"), "x"),
        "name": "approval",
        "submission": 1,
        "actor": "anna",
        "is_yes": True,
        "outputs": JSON,
        "at": AT,
    }
    return Answer(id=id_, **{**given, **more})


def a_schedule(name: str = TEXT, tenant: str = "acme", **more: Any) -> Schedule:
    table = Timetable(expression="30 2 * * *", time_zone="Europe/Berlin", gap=Gap.SKIP)
    given: dict[str, Any] = {
        "timetable": table,
        "plan": an_admission().plan,
        "home_region": "eu",
        "next_at": AT,
        "created_at": AT,
    }
    return Schedule(id=schedule_key(tenant, name), tenant=tenant, name=name, **{**given, **more})


def an_entry(id_: str = "e1", **more: Any) -> AuditEntry:
    given: dict[str, Any] = {
        "actor": TEXT,
        "action": "cancel",
        "thing": "run1",
        "why": TEXT,
        "source": "cli on laptop",
        "at": AT,
    }
    return AuditEntry(id=id_, **{**given, **more})


def a_pause(kind: ScopeKind = ScopeKind.RUN, name: str = "run1", **more: Any) -> Pause:
    scope = Scope(kind, name)
    given: dict[str, Any] = {"reason": TEXT, "by": "operator:anna", "at": AT}
    return Pause(id=scope.key, scope=scope, **{**given, **more})


def a_calendar(name: str = TEXT, **more: Any) -> Calendar:
    scope = Scope(ScopeKind.REGION, "eu")
    given: dict[str, Any] = {
        "kind": CalendarKind.WINDOW,
        "scope": scope,
        "title": "eu",
        "reason": TEXT,
        "by": "operator:anna",
        "at": AT,
    }
    made = {**given, **more}
    return Calendar(id=calendar_key(made["scope"], name), name=name, **made)


def a_tenant(name: str = TEXT, **more: Any) -> Tenant:
    given: dict[str, Any] = {
        "level": Level("gold", 2.5, 3, 40),
        "quota": Quota(zones_max=1, runs_a_day_max=2, runs_in_flight_max=None),
        "created_at": AT,
    }
    return Tenant(id=tenant_key(name), name=name, **{**given, **more})


def some_grants(tenant: str = TEXT, **more: Any) -> Grants:
    grant = RunGrant(
        id="g1",
        admission=admission_key("client", tenant, "k"),
        run=RunId("run1"),
        instance=Incarnation("cli:1"),
    )
    given = {"runs": (grant,), "zones": (replace(a_zone(), tenant=tenant),)}
    return Grants(id=tenant_key(tenant), tenant=tenant, **{**given, **more})


_HOLDER: Final = SlotHolder(task_id(RunId("run1"), "x"), Token(3, ClaimId("c")))
KINDS: Final[dict[str, Callable[[], Any]]] = {
    "tasks": _task,
    "runs": lambda: a_run(ended_at=AT, mode=RunMode.DESTROY),
    "zones": a_zone,
    "regions": lambda: Region(id="eu", status=RegionStatus.DRAINING, serves=("eu-west-1",)),
    "instances": lambda: an_instance(
        "worker-eu:1", fenced=Fence(kind=FenceKind.UNRESPONSIVE, by="s:1", at=AT)
    ),
    "slots": lambda: a_slot(holder=_HOLDER, reservation=Reservation(_HOLDER.task, 3, "2026")),
    "admissions": an_admission,
    "conflicts": a_conflict,
    "answers": an_answer,
    "tenants": a_tenant,
    "grants": some_grants,
    "pauses": lambda: a_pause(number=3, until=AT),
    "calendars": lambda: a_calendar(
        begin=AT, end=AT, timetable=a_schedule().timetable, lasts_s=3.5
    ),
    "schedules": lambda: a_schedule(
        waiting=(AT,),
        firings=(Firing(nominal_at=AT, run=RunId("run1")),),
        missed=(Missed(first_at=AT, last_at=AT, count=1, reason=TEXT, noted_at=AT),),
    ),
    "durations": lambda: Durations(id="eu", figures={"a:b": Figure(1.5, 2.0, 3)}, at=AT),
    "audit": an_entry,
}
"""By the name of the store: a value with as much in it as can be."""


def put(graph: ArangoGraph, store: str, values: Iterable[Any]) -> list[Any]:
    """Insert values and return them at their revisions."""
    written = getattr(graph, store).insert(list(values))
    assert [w.result for w in written] == [WriteResult.APPLIED] * len(written)
    return [w.value for w in written]


def put_graph(
    graph: ArangoGraph,
    edges: Iterable[tuple[str, str]],
    states: Mapping[str, TaskState],
    run: RunId = RUN,
    **more: Any,
) -> dict[str, Task]:
    """Insert a graph of names and return its tasks by name.

    Args:
        graph: Where to.
        edges: (before, after) names.
        states: Every name, and the state that its task is in.
        run: Its run.
        more: Attributes of specs, by name: `expected_s={"a": 1.0}`.
    """
    edges = list(edges)
    needs = dict.fromkeys(states, 0)
    for _, after in edges:
        needs[after] += 1
    made = []
    for name, state in states.items():
        spec = a_spec(name, **{field: of[name] for field, of in more.items() if name in of})
        begun = a_task(name, run, needs=needs[name], spec=spec)
        like = IN_STATE[state]()
        changed = {f: getattr(like, f) for f in ("state", "token", "holder", "history", "seq")}
        made.append(replace(begun, **changed, outputs={"id": name}))
    tasks = {task.spec.name: task for task in put(graph, "tasks", made)}
    pairs = [(tasks[before].id, tasks[after].id) for before, after in edges]
    assert graph.tasks.insert_edges(pairs) == [True] * len(pairs)
    return tasks
