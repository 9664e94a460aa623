"""The lists of the other documents: which belong, and in which order."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from region_scheduler.domain.admission import Admission, AdmissionState, admission_key
from region_scheduler.domain.grant import Grants, RunGrant, RunsInUse
from region_scheduler.domain.ids import ClaimId, RunId, TaskId
from region_scheduler.domain.instance import Fence, FenceKind, Role
from region_scheduler.domain.region import Region
from region_scheduler.domain.schedule import Firing
from region_scheduler.domain.slot import Reservation, SlotHolder
from region_scheduler.domain.states import RUN_ENDED, RunState
from region_scheduler.domain.task import Token
from region_scheduler.domain.tenant import Quota, tenant_key
from region_scheduler.drivers.arango.graph import ArangoGraph
from region_scheduler.errors import Unavailable
from tests.contract.graph.samples import (
    a_conflict,
    a_run,
    a_schedule,
    a_slot,
    a_tenant,
    a_zone,
    an_admission,
    an_answer,
    an_entry,
    an_instance,
    put,
)
from tests.unit.domain.samples import AT, a_spec

HALF_S = timedelta(milliseconds=500)
SECOND = timedelta(seconds=1)
T1, T2 = TaskId("tasks/t1"), TaskId("tasks/t2")


def test_unended_runs_come_oldest_first(graph: ArangoGraph) -> None:
    """With and without a fraction of a second: as text `12:00:00Z` would come after it."""
    put(graph, "runs", [a_run(state, state=state) for state in RunState])
    put(graph, "runs", [a_run("x-newer", created_at=AT + HALF_S)])
    put(graph, "runs", [a_run("z-older", created_at=AT - HALF_S)])
    live = sorted(state for state in RunState if state not in RUN_ENDED)

    assert [r.id for r in graph.runs.unended()] == ["z-older", *live, "x-newer"]


def test_recent_runs_come_newest_first(graph: ArangoGraph) -> None:
    put(graph, "runs", [a_run(f"run{n}", created_at=AT + n * HALF_S) for n in range(5)])

    assert [r.id for r in graph.runs.recent(3)] == ["run4", "run3", "run2"]
    assert sorted(graph.runs.ids()) == [f"run{n}" for n in range(5)]


BOUNDED = Quota(runs_a_day_max=9, runs_in_flight_max=9)
NOTHING = Grants(id=tenant_key("b"), tenant="b")


def accepted(key: str, state: AdmissionState, seconds: float = 0, tenant: str = "b") -> Admission:
    """Return an admission whose run is called as its key."""
    at = AT + timedelta(seconds=seconds)
    made = an_admission(key, state=state, run=RunId(key), created_at=at)
    return replace(made, id=admission_key("client", tenant, key), tenant=tenant)


def test_a_run_is_in_flight_from_its_admission_to_its_end_and_counts_once(
    graph: ArangoGraph,
) -> None:
    """`both` is published and its admission not closed yet."""
    runs = [a_run(name, tenant="b") for name in ("both", "late")]
    ended = a_run("ended", tenant="b", state=RunState.DONE)
    put(graph, "runs", [*runs, ended, a_run("other", tenant="a")])
    open_ = [accepted(name, AdmissionState.ACCEPTED) for name in ("both", "early")]
    others = [
        accepted("stranger", AdmissionState.ACCEPTED, tenant="a"),
        accepted("void", AdmissionState.VOID),
        accepted("refused", AdmissionState.REFUSED),
    ]
    put(graph, "admissions", [*open_, *others])

    assert graph.grants.runs_in_use(NOTHING, BOUNDED, AT).in_flight == 3
    unbounded = graph.grants.runs_in_use(NOTHING, Quota(runs_a_day_max=9), AT)
    assert unbounded.in_flight == 2, "runs are not counted, what is just being admitted is"


def test_the_runs_of_a_day_are_those_accepted_since_it_began(graph: ArangoGraph) -> None:
    states = [AdmissionState.DONE, AdmissionState.ACCEPTED, AdmissionState.CANCELLED]
    made = [accepted(f"k{n}", state, n) for n, state in enumerate(states)]
    uncounted = [AdmissionState.REFUSED, AdmissionState.VOID]
    made += [accepted(state, state, 9) for state in uncounted]
    put(graph, "admissions", [*made, accepted("yesterday", AdmissionState.DONE, -0.5)])

    assert graph.grants.runs_in_use(NOTHING, BOUNDED, AT).today == 3
    assert graph.grants.runs_in_use(NOTHING, BOUNDED, AT + SECOND).today == 2
    in_flight_only = Quota(runs_in_flight_max=9)
    assert graph.grants.runs_in_use(NOTHING, in_flight_only, AT).today == 0


def test_what_is_granted_is_seen_and_counted_apart(graph: ArangoGraph) -> None:
    there, void = accepted("there", AdmissionState.ACCEPTED), accepted("void", AdmissionState.VOID)
    put(graph, "admissions", [there, void, accepted("more", AdmissionState.ACCEPTED)])
    granted = [
        RunGrant(id=one.key, admission=one.id, run=one.run, instance=one.instance)
        for one in (there, void, accepted("not yet", AdmissionState.ACCEPTED))
    ]

    used = graph.grants.runs_in_use(replace(NOTHING, runs=tuple(granted)), BOUNDED, AT)

    assert used == RunsInUse(in_flight=1, today=1, seen=frozenset({there.id}))


def test_zones_of_a_tenant_are_counted(graph: ArangoGraph) -> None:
    put(graph, "zones", [a_zone(f"z{n}") for n in range(3)] + [a_zone("z0", tenant="other")])

    assert [graph.grants.zones_in_use(name) for name in ("acme", "other", "nobody")] == [3, 1, 0]


def test_tenants_come_by_name(graph: ArangoGraph) -> None:
    put(graph, "tenants", [a_tenant(name) for name in ("zeta", "acme", "mid")])

    assert [t.name for t in graph.tenants.all()] == ["acme", "mid", "zeta"]


def test_runs_of_a_zone_are_its_unended_ones_oldest_first(graph: ArangoGraph) -> None:
    put(
        graph,
        "runs",
        [
            a_run("b", zone="z1", created_at=AT + SECOND),
            a_run("a", zone="z1", created_at=AT + 2 * SECOND),
            a_run("c", zone="z1", state=RunState.CANCELLING),
            a_run("ended", zone="z1", state=RunState.DONE),
            a_run("other", zone="z2"),
        ],
    )

    assert [r.id for r in graph.runs.of_zone("z1")] == ["c", "b", "a"]


def test_zones_come_by_name(graph: ArangoGraph) -> None:
    put(graph, "zones", [a_zone("b"), a_zone("a", active_run="run1"), a_zone("c", tenant="other")])

    assert [z.name for z in graph.zones.all()] == ["a", "b", "c"]
    assert [z.name for z in graph.zones.all("acme")] == ["a", "b"]
    assert [z.name for z in graph.zones.held()] == ["a"]


def test_regions_come_by_name(graph: ArangoGraph) -> None:
    put(graph, "regions", [Region(id="us-east"), Region(id="ap-south"), Region(id="eu-west")])

    assert [r.id for r in graph.regions.all()] == ["ap-south", "eu-west", "us-east"]


def test_instances_by_fence_role_and_region(graph: ArangoGraph) -> None:
    fence = Fence(kind=FenceKind.EXPIRED, by="s:1", at=AT)
    put(
        graph,
        "instances",
        [
            an_instance("w:1"),
            an_instance("w:2", fenced=fence),
            an_instance("w:3", region="us"),
            an_instance("s:1", roles=(Role.SCHEDULER,)),
        ],
    )

    assert [i.id for i in graph.instances.unfenced()] == ["s:1", "w:1", "w:3"]
    assert [i.id for i in graph.instances.fenced()] == ["w:2"]
    assert [i.id for i in graph.instances.workers("eu")] == ["w:1"]
    assert [i.id for i in graph.instances.workers("us")] == ["w:3"]


def test_slots_by_resource_holder_and_use(graph: ArangoGraph) -> None:
    held = SlotHolder(T1, Token(3, ClaimId("c")))
    wish = Reservation(T2, 4, "2026")
    put(
        graph,
        "slots",
        [
            a_slot("lock", 1, holder=held),
            a_slot("lock", 0, holder=held, reservation=wish),
            a_slot("lock", 2),
            a_slot("pool", 0, reservation=wish),
            a_slot("pool", 1, holder=SlotHolder(T2, Token(9, ClaimId("d")))),
        ],
    )
    slots = graph.slots

    assert [s.unit for s in slots.of_resources(["lock"])] == [0, 1, 2]
    assert len(slots.of_resources(["lock", "pool", "none"])) == 5
    assert [(s.resource, s.unit) for s in slots.held_by([T1])] == [("lock", 0), ("lock", 1)]
    assert len(slots.held_by([T1, T2])) == 3
    taken = [(s.resource, s.unit) for s in slots.taken()]
    assert sorted(taken) == [("lock", 0), ("lock", 1), ("pool", 0), ("pool", 1)]
    assert [s.id for s in slots.taken()] == sorted(s.id for s in slots.taken())


def test_there_are_as_many_units_of_a_resource_as_do_not_retire(graph: ArangoGraph) -> None:
    """`begun` has no first unit, which is made last: nobody knows yet how many there will be."""
    made = [a_slot("lock", n) for n in range(3)]
    made += [a_slot("shrunk", n, is_retiring=n > 0) for n in range(3)]
    put(graph, "slots", [*made, a_slot("begun", 1), a_slot("other")])

    names = ["lock", "shrunk", "begun", "none"]
    assert graph.slots.capacities(names) == {"lock": 3, "shrunk": 1}


def test_unfinished_admissions_come_oldest_first(graph: ArangoGraph) -> None:
    put(
        graph,
        "admissions",
        [
            an_admission("new", created_at=AT + SECOND),
            an_admission("old"),
            an_admission("done", state=AdmissionState.DONE),
            an_admission("refused", state=AdmissionState.REFUSED),
        ],
    )

    assert [a.key for a in graph.admissions.unfinished()] == ["old", "new"]


def test_an_admission_of_a_big_graph_is_read_as_it_was_written(graph: ArangoGraph) -> None:
    plan = replace(an_admission("big").plan, tasks=(), edges=())
    specs = tuple(a_spec(name=f't{n} "\u00e9"') for n in range(1_001))
    pairs = tuple((before.name, after.name) for before, after in pairwise(specs))
    for name, whole in {
        "tasks": replace(plan, tasks=specs, edges=()),
        "edges": replace(plan, tasks=specs[:2], edges=(*pairs, pairs[0])),
        "small": replace(plan, tasks=specs[:2], edges=pairs[:1]),
    }.items():
        wanted = replace(an_admission(name), plan=whole)
        graph.admissions.insert([wanted])

        (found,) = graph.admissions.read([wanted.id])
        assert found is not None
        assert found.plan == whole
        (summary,) = [one for one in graph.admissions.recent(10) if one.id == wanted.id]
        assert (summary.task_count, summary.edge_count) == (len(whole.tasks), len(whole.edges))


def test_an_admission_that_is_packed_in_an_unknown_way_is_not_taken_for_missing(
    graph: ArangoGraph,
) -> None:
    wanted = an_admission("packed")
    graph.admissions.insert([wanted])
    graph.db.collection("admissions").update({"_key": wanted.id, "plan": {"tasks": "!"}})

    with pytest.raises(Unavailable, match="a schema that this version does not know"):
        graph.admissions.read([wanted.id])


def test_conflicts_and_audit_come_newest_first(graph: ArangoGraph) -> None:
    put(graph, "conflicts", [a_conflict(f"c{n}", at=AT + n * HALF_S) for n in range(4)])
    put(graph, "audit", [an_entry(f"e{n}", at=AT + n * HALF_S) for n in range(4)])

    assert [c.id for c in graph.conflicts.recent(2)] == ["c3", "c2"]
    assert [e.id for e in graph.audit.recent(2)] == ["e3", "e2"]
    assert [e.id for e in graph.audit.recent(9, since=AT + SECOND)] == ["e3", "e2"]


def test_audit_of_one_tenant(graph: ArangoGraph) -> None:
    put(graph, "audit", [an_entry("e1", tenant="a"), an_entry("e2", tenant="b"), an_entry("e3")])

    assert [e.id for e in graph.audit.recent(9, "b")] == ["e2"]
    assert [e.id for e in graph.audit.recent(9)] == ["e3", "e2", "e1"]


def test_answers_of_tasks_come_oldest_first(graph: ArangoGraph) -> None:
    put(
        graph,
        "answers",
        [
            an_answer("a", task=T1, at=AT + SECOND),
            an_answer("b", task=T1),
            an_answer("c", task=T2, at=AT + HALF_S),
            an_answer("d", task=TaskId("tasks/t3")),
        ],
    )

    assert [a.id for a in graph.answers.for_tasks([T1, T2])] == ["b", "c", "a"]
    assert graph.answers.for_tasks([]) == []


def test_schedules_come_by_name_without_the_deleted(graph: ArangoGraph) -> None:
    gone = a_schedule("gone", is_deleted=True, next_at=None)
    put(graph, "schedules", [a_schedule("b"), a_schedule("a"), gone, a_schedule("c", "other")])

    assert [s.name for s in graph.schedules.all()] == ["a", "b", "c"]
    assert [s.name for s in graph.schedules.all("acme")] == ["a", "b"]


def test_schedules_with_something_to_do_are_those_due_waiting_or_fired(graph: ArangoGraph) -> None:
    """With and without a fraction of a second: as text `12:00:00Z` would come after it."""
    firing = Firing(nominal_at=AT, run=RunId("r"))
    made = [
        a_schedule("due", next_at=AT),
        a_schedule("longer due", next_at=AT - HALF_S),
        a_schedule("later", next_at=AT + HALF_S),
        a_schedule("over", next_at=None),
        a_schedule("waits", next_at=None, waiting=(AT,)),
        a_schedule("fired", next_at=AT + SECOND, firings=(firing,)),
        a_schedule("deleted", next_at=None, is_deleted=True, firings=(firing,)),
    ]
    put(graph, "schedules", made)

    found = [s.name for s in graph.schedules.open(AT)]
    assert sorted(found) == ["deleted", "due", "fired", "longer due", "waits"]
    assert found[-3:] == ["longer due", "due", "fired"]


def test_the_next_schedule_of_a_region_is_found(graph: ArangoGraph) -> None:
    put(graph, "schedules", [a_schedule("a", next_at=AT), a_schedule("b", next_at=AT + SECOND)])
    put(graph, "schedules", [a_schedule("c", next_at=AT + HALF_S, home_region="us")])

    assert graph.schedules.next_at("eu", AT - HALF_S) == AT
    assert graph.schedules.next_at("eu", AT) == AT + SECOND
    assert graph.schedules.next_at("us", AT) == AT + HALF_S
    assert graph.schedules.next_at("eu", AT + SECOND) is None
