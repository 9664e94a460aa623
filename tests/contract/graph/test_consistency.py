"""What may only suggest is read from the region's follower; what may decide, at the leader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib import resources
from typing import Any, get_type_hints

import pytest

from region_scheduler.domain.admission import AdmissionState
from region_scheduler.domain.durations import Durations
from region_scheduler.domain.grant import Grants
from region_scheduler.domain.ids import RunId
from region_scheduler.domain.instance import Fence, FenceKind
from region_scheduler.domain.region import Region
from region_scheduler.domain.slot import SlotHolder
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import EventKind, ExitKind, Token
from region_scheduler.domain.tenant import Quota, tenant_key
from region_scheduler.drivers.arango.graph import ArangoGraph
from region_scheduler.drivers.arango.query import question
from region_scheduler.ports import follower, leftovers, records, tasks
from tests.contract.graph.samples import (
    a_calendar,
    a_conflict,
    a_pause,
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
    put_graph,
)
from tests.engines import GraphServer, empty
from tests.unit.domain.samples import AT, RUN, SCHEDULER, a_spec, a_task, ended

S = TaskState
LATE = AT + timedelta(days=9)
PORTS: dict[str, type] = {
    "tasks": tasks.TaskStore,
    "runs": records.RunStore,
    "zones": records.ZoneStore,
    "regions": records.RegionStore,
    "instances": records.InstanceStore,
    "slots": records.SlotStore,
    "admissions": records.AdmissionStore,
    "conflicts": records.ConflictStore,
    "answers": records.AnswerStore,
    "tenants": records.TenantStore,
    "grants": records.GrantStore,
    "pauses": records.PauseStore,
    "calendars": records.CalendarStore,
    "schedules": records.ScheduleStore,
    "durations": records.DurationStore,
    "leftovers": leftovers.Leftovers,
    "audit": records.AuditStore,
    "follower": follower.Follower,
}
NONE = Grants(id=tenant_key("acme"), tenant="acme")
ID = {name: a_task(name).id for name in "abcd"}
# Each question, asked so that there is something to see once `fill` has been seen.
QUESTIONS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("tasks", "known"): lambda s: s.known([ID["a"]]),
    ("tasks", "glimpse"): lambda s: s.glimpse(ID["a"]),
    ("tasks", "marks_claimable"): lambda s: s.marks_claimable("eu"),
    ("tasks", "marks_of_run"): lambda s: s.marks_of_run(RUN, "eu"),
    ("tasks", "unlocked_by"): lambda s: s.unlocked_by([ID["a"]]),
    ("tasks", "ready"): lambda s: s.ready(RUN, 5),
    ("tasks", "held"): lambda s: s.held("eu"),
    ("tasks", "held_by"): lambda s: s.held_by([SCHEDULER]),
    ("tasks", "unheld"): lambda s: s.unheld("eu", [], 5).stuck,
    ("tasks", "movable"): lambda s: s.movable("eu", "us", ["default"], 5),
    ("tasks", "load"): lambda s: s.load(),
    ("tasks", "state_marks"): lambda s: s.state_marks(RUN),
    ("tasks", "state_counts"): lambda s: s.state_counts(RUN),
    ("tasks", "has_active"): lambda s: s.has_active(RUN),
    ("tasks", "outputs_before"): lambda s: s.outputs_before(ID["b"]),
    ("tasks", "of_run"): lambda s: s.of_run(RUN),
    ("tasks", "named"): lambda s: s.named(RUN, "a"),
    ("tasks", "counts"): lambda s: s.counts(RUN)[0],
    ("tasks", "damage"): lambda s: s.damage(a_run(RUN, task_count=99)),
    ("tasks", "blocks"): lambda s: s.blocks(ID["a"]),
    ("tasks", "dependents"): lambda s: s.dependents(ID["a"]),
    ("tasks", "numbers_before"): lambda s: s.numbers_before([ID["b"]]).get(ID["b"]),
    ("tasks", "failed"): lambda s: s.failed("eu", 5),
    ("tasks", "ancestors"): lambda s: s.ancestors(ID["b"]),
    ("tasks", "order"): lambda s: s.order(RUN),
    ("tasks", "critical_path"): lambda s: s.critical_path(RUN),
    ("runs", "unended"): lambda s: s.unended(),
    ("runs", "recent"): lambda s: s.recent(5),
    ("runs", "of_zone"): lambda s: s.of_zone("z1"),
    ("runs", "ids"): lambda s: s.ids(),
    ("zones", "all"): lambda s: s.all(),
    ("zones", "held"): lambda s: s.held(),
    ("grants", "runs_in_use"): lambda s: s.runs_in_use(NONE, Quota(0, 9, 9), AT).in_flight,
    ("grants", "zones_in_use"): lambda s: s.zones_in_use("acme"),
    ("regions", "all"): lambda s: s.all(),
    ("regions", "standing"): lambda s: s.standing("eu", ["acme"]).region,
    ("instances", "unfenced"): lambda s: s.unfenced(),
    ("instances", "fenced"): lambda s: s.fenced(),
    ("instances", "workers"): lambda s: s.workers("eu"),
    ("slots", "of_resources"): lambda s: s.of_resources(["lock"]),
    ("slots", "all"): lambda s: s.all(),
    ("slots", "capacities"): lambda s: s.capacities(["lock"]),
    ("slots", "held_by"): lambda s: s.held_by([ID["a"]]),
    ("slots", "taken"): lambda s: s.taken(),
    ("admissions", "unfinished"): lambda s: s.unfinished(),
    ("admissions", "recent"): lambda s: s.recent(5),
    ("conflicts", "recent"): lambda s: s.recent(5),
    ("answers", "for_tasks"): lambda s: s.for_tasks([ID["a"]]),
    ("tenants", "all"): lambda s: s.all(),
    ("pauses", "on"): lambda s: s.on(),
    ("calendars", "on"): lambda s: s.on(),
    ("schedules", "all"): lambda s: s.all(),
    ("schedules", "open"): lambda s: s.open(AT),
    ("schedules", "next_at"): lambda s: s.next_at("eu", AT - timedelta(seconds=1)),
    ("durations", "all"): lambda s: s.all(),
    ("durations", "samples"): lambda s: s.samples("eu", 9, 9),
    ("leftovers", "runs"): lambda s: s.runs(LATE, 9, LATE, 9),
    ("leftovers", "admissions"): lambda s: s.admissions(LATE, 9),
    ("leftovers", "conflicts"): lambda s: s.conflicts(LATE, 9, 9),
    ("leftovers", "audit"): lambda s: s.audit(LATE, 9, 9),
    ("leftovers", "unpublished"): lambda s: s.unpublished(),
    ("leftovers", "tasks"): lambda s: s.tasks(RUN, 9),
    ("leftovers", "edges"): lambda s: s.edges(RUN, 9),
    ("audit", "recent"): lambda s: s.recent(5),
    ("follower", "beats"): lambda s: s.beats(),
}


def markers() -> dict[tuple[str, str], str]:
    """Return what each port says of its questions, by store and method."""
    found: dict[tuple[str, str], str] = {}
    for store, port in PORTS.items():
        for name, method in vars(port).items():
            if not name.startswith("_") and callable(method):
                hint = get_type_hints(method, include_extras=True).get("return")
                said = getattr(hint, "__metadata__", ())
                if said:
                    found[store, name] = said[0]
    return found


def fill(graph: ArangoGraph) -> None:
    states = {"a": S.DONE, "b": S.PENDING, "c": S.CLAIMED, "d": S.READY, "e": S.FAILED}
    put_graph(graph, [("a", "b")], states, remaining_s={})
    put(graph, "runs", [a_run(zone="z1"), a_run("over", state=RunState.DONE)])
    put(graph, "zones", [a_zone(active_run="run1")])
    put(graph, "regions", [Region(id="eu")])
    fence = Fence(kind=FenceKind.EXPIRED, by="s:1", at=AT)
    put(graph, "instances", [an_instance("w:1"), an_instance("w:2", fenced=fence)])
    put(graph, "slots", [a_slot("lock", holder=SlotHolder(ID["a"], Token(1)))])
    gone = an_admission("gone", state=AdmissionState.DONE, run=RunId("gone"))
    refused = an_admission("refused", state=AdmissionState.REFUSED, run=RunId("refused"))
    put(graph, "admissions", [an_admission(), gone, refused])
    put(graph, "conflicts", [a_conflict()])
    put(graph, "answers", [an_answer(task=ID["a"])])
    put(graph, "tenants", [a_tenant()])
    put(graph, "pauses", [a_pause()])
    put(graph, "calendars", [a_calendar()])
    put(graph, "schedules", [a_schedule()])
    put(graph, "audit", [an_entry()])
    put(graph, "durations", [Durations(id="eu", at=AT)])
    spec = a_spec("f", step="network", state_key="k")
    put(graph, "tasks", [ended(ExitKind.OK, name="f", spec=spec)])


@pytest.fixture(scope="module")
def frozen(engine: GraphServer) -> Iterator[ArangoGraph]:
    """A graph in a region whose follower has seen nothing of what is there."""
    graph = engine.open("ap", database="frozen")
    empty(graph)
    engine.change("ap", is_frozen=True)
    fill(graph)
    yield graph
    engine.heal()


def test_every_question_of_the_ports_is_asked_below() -> None:
    assert set(QUESTIONS) == set(markers())


@pytest.mark.parametrize("asked", list(QUESTIONS), ids=".".join)
def test_a_question_is_answered_where_its_port_says(
    frozen: ArangoGraph, asked: tuple[str, str]
) -> None:
    store, _ = asked
    answer = QUESTIONS[asked](getattr(frozen, store))

    assert bool(answer) == (markers()[asked] == "deciding")


@pytest.mark.parametrize("asked", list(QUESTIONS), ids=".".join)
def test_a_question_sees_what_is_there(graph: ArangoGraph, asked: tuple[str, str]) -> None:
    fill(graph)

    assert QUESTIONS[asked](getattr(graph, asked[0]))


def test_a_document_is_read_at_the_leader(frozen: ArangoGraph) -> None:
    assert frozen.runs.read(["run1"]) != [None]


def test_a_lagging_follower_catches_up(engine: GraphServer, faulty_graph: ArangoGraph) -> None:
    far = engine.open("ap")
    engine.change("ap", is_frozen=True)
    put(faulty_graph, "runs", [a_run()])
    assert far.runs.recent(5) == []
    assert len(far.runs.unended()) == 1
    engine.change("ap", is_frozen=False)

    assert len(far.runs.recent(5)) == 1


QUERIES = sorted(
    entry.name.removesuffix(".aql")
    for entry in (resources.files("region_scheduler.drivers.arango") / "queries").iterdir()
)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_names_only_states_that_there_are(name: str) -> None:
    quoted = set(re.findall(r'"([^"]*)"', question(name).text))
    others = {"", "/", ":", "bfs", "global", "accepted", "zone", *EventKind, *ExitKind}

    assert quoted - others <= {state.value for state in TaskState}


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_sent_without_its_header(name: str) -> None:
    assert "//" not in question(name).text


def test_every_query_is_used() -> None:
    package = resources.files("region_scheduler.drivers.arango")
    sources = [
        (package / f"{module}.py").read_text()
        for module in ("tasks", "records", "leftovers", "follower", "history")
    ]

    assert [name for name in QUERIES if not any(f'"{name}"' in text for text in sources)] == []
