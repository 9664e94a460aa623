"""Every question asked of the graph, against what plain Python makes of the same graph."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from region_scheduler.domain.dag import Dag
from region_scheduler.domain.ids import RunId, TaskId
from region_scheduler.domain.instance import Fence, FenceKind, Role
from region_scheduler.domain.pause import Scope, ScopeKind
from region_scheduler.domain.region import Region
from region_scheduler.domain.relocation import Site
from region_scheduler.domain.states import (
    ACTIVE,
    CLAIMABLE,
    FINAL,
    HELD,
    SATISFYING,
    RunState,
    TaskState,
)
from region_scheduler.domain.task import Task
from region_scheduler.drivers.arango.graph import ArangoGraph
from region_scheduler.ports.tasks import Related
from tests.contract.graph.samples import (
    a_calendar,
    a_pause,
    a_run,
    a_tenant,
    an_instance,
    put,
    put_graph,
)
from tests.unit.domain.samples import AT, RUN, SCHEDULER, WORKER, a_spec, a_task

S = TaskState
DIAMOND = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]


class Sample:
    """A random graph in random states, in the store and as a `Dag` of names."""

    def __init__(self, graph: ArangoGraph, seed: int) -> None:
        chance = random.Random(seed)
        names = [f"n{n:02}" for n in range(chance.randint(1, 25))]
        pairs = [
            (a, b)
            for n, b in enumerate(names)
            for a in chance.sample(names[:n], min(n, chance.randint(0, 3)))
        ]
        states = {name: chance.choice([*S, *SATISFYING, S.PENDING]) for name in names}
        seconds = {name: float(chance.randint(0, 9)) for name in names}
        self.dag = Dag.checked(names, pairs)
        self.seconds = seconds
        self.tasks = put_graph(graph, pairs, states, expected_s=seconds)
        # Another run beside it, whose tasks must never show up.
        put_graph(graph, DIAMOND, dict.fromkeys("abcd", S.READY), RunId("other"))

    def unlockable(self) -> set[str]:
        return {
            name
            for name, task in self.tasks.items()
            if task.state is S.PENDING
            and all(self.tasks[p].state in SATISFYING for p in self.dag.before[name])
        }

    def in_states(self, states: frozenset[TaskState]) -> list[Task]:
        return sorted((t for t in self.tasks.values() if t.state in states), key=lambda t: t.id)


@pytest.mark.parametrize("seed", range(8))
def test_ready_is_every_pending_task_whose_predecessors_are_satisfied(
    graph: ArangoGraph, seed: int
) -> None:
    sample = Sample(graph, seed)
    found = graph.tasks.ready(RUN, 100)

    assert {u.task.spec.name for u in found} == sample.unlockable()
    assert [u.task.id for u in found] == sorted(u.task.id for u in found)
    for unlockable in found:
        name = unlockable.task.spec.name
        assert unlockable.task == sample.tasks[name]
        before = [sample.tasks[p] for p in sample.dag.before[name]]
        assert unlockable.seen == {task.id: str(task.token) for task in before}
    assert len(graph.tasks.ready(RUN, 1)) == min(1, len(found))


@pytest.mark.parametrize("seed", range(8))
def test_completions_unlock_their_own_dependents_only(graph: ArangoGraph, seed: int) -> None:
    sample = Sample(graph, seed)
    completed = [name for name, task in sample.tasks.items() if task.state in SATISFYING]
    expected = {d for name in completed for d in sample.dag.after[name]} & sample.unlockable()
    found = graph.tasks.unlocked_by([sample.tasks[name].id for name in completed])

    assert {u.task.spec.name for u in found} == expected
    assert len(found) == len(expected)
    for unlockable in found:
        assert len(unlockable.seen) == unlockable.task.needs
    assert graph.tasks.unlocked_by([]) == []


def test_a_task_is_not_unlocked_before_all_its_edges_are_there(graph: ArangoGraph) -> None:
    tasks = put_graph(graph, DIAMOND[:3], {"a": S.DONE, "b": S.DONE, "c": S.DONE, "d": S.PENDING})
    graph.db.collection("tasks").update({"_id": tasks["d"].id, "needs": 2}, check_rev=False)
    done = [tasks["b"].id, tasks["c"].id]

    assert graph.tasks.ready(RUN, 10) == graph.tasks.unlocked_by(done) == []
    graph.tasks.insert_edges([(tasks["c"].id, tasks["d"].id)])
    assert [u.task.spec.name for u in graph.tasks.ready(RUN, 10)] == ["d"]
    assert [u.task.spec.name for u in graph.tasks.unlocked_by(done)] == ["d"]


def test_an_edge_too_many_unlocks_nothing(graph: ArangoGraph) -> None:
    tasks = put_graph(graph, [("a", "b")], {"a": S.DONE, "b": S.PENDING, "x": S.DONE})
    graph.tasks.insert_edges([(tasks["x"].id, tasks["b"].id)])

    assert graph.tasks.ready(RUN, 10) == []


def test_an_edge_from_nowhere_unlocks_nothing(graph: ArangoGraph) -> None:
    tasks = put_graph(graph, [("a", "b")], {"a": S.DONE, "b": S.PENDING})
    graph.db.collection("tasks").delete(tasks["a"].id, check_rev=False)

    assert graph.tasks.ready(RUN, 10) == []
    assert graph.tasks.outputs_before(tasks["b"].id) == {}


@pytest.mark.parametrize("seed", range(4))
def test_lists_by_state(graph: ArangoGraph, seed: int) -> None:
    sample = Sample(graph, seed)
    held = sample.in_states(HELD)

    assert [t for t in graph.tasks.held("eu") if t.run == RUN] == held
    assert graph.tasks.held("us") == []
    ready = {t.id: t.seq for t in sample.in_states(CLAIMABLE)}
    marks = graph.tasks.marks_claimable("eu")
    assert {t.id: marks[t.id] for t in sample.tasks.values() if t.id in marks} == ready
    assert graph.tasks.marks_claimable("eu", 1_000) == marks
    assert graph.tasks.of_run(RUN) == sample.in_states(frozenset(S))
    assert graph.tasks.of_run(RUN, [S.DONE]) == sample.in_states(frozenset({S.DONE}))
    assert graph.tasks.of_run(RUN, limit=2) == sample.in_states(frozenset(S))[:2]
    assert graph.tasks.state_counts(RUN) == Counter(t.state for t in sample.tasks.values())
    assert graph.tasks.has_active(RUN) == bool(sample.in_states(ACTIVE))
    edges = sum(len(before) for before in sample.dag.before.values())
    assert graph.tasks.counts(RUN) == (len(sample.tasks), edges)
    in_flight = graph.regions.standing("eu", []).in_flight
    assert in_flight.by_tenant == ({"acme": len(held)} if held else {})
    assert in_flight.total == len(held)


@pytest.mark.parametrize("state", list(S))
def test_only_active_states_are_active(graph: ArangoGraph, state: TaskState) -> None:
    put_graph(graph, [], {"a": state})

    assert graph.tasks.has_active(RUN) == (state in ACTIVE)


def test_held_by_asks_for_holders_wherever_they_hold(graph: ArangoGraph) -> None:
    tasks = put_graph(
        graph, [], {"a": S.CLAIMED, "b": S.RUNNING, "c": S.DONE, "d": S.READY, "e": S.RUNNING}
    )
    by_worker = sorted((tasks["b"], tasks["e"]), key=lambda t: t.id)

    assert graph.tasks.held_by([SCHEDULER]) == [tasks["a"]]
    assert graph.tasks.held_by([WORKER.incarnation]) == by_worker
    assert len(graph.tasks.held_by([SCHEDULER, WORKER.incarnation])) == 3
    assert graph.tasks.held_by([]) == []


def test_unheld_is_what_waits_in_a_region_apart_by_whether_it_can_go(graph: ArangoGraph) -> None:
    names = {f"t-{state}": state for state in S}
    put_graph(graph, [], names, allowed_regions=("eu", "us"))
    waiting = sorted(f"t-{state}" for state in S if state not in HELD and state not in FINAL)
    us, ap = Site("us", {"default": 1}, frozenset()), Site("ap", {"default": 1}, frozenset())
    gpu = Site("us", {"gpu": 1}, frozenset())

    found = graph.tasks.unheld("eu", [us, ap], 100)
    assert sorted(task.spec.name for task in found.tasks) == waiting
    assert found.tasks[-1].state is S.PENDING, "what could run first comes first"
    assert found.stuck == 0
    assert len(graph.tasks.unheld("eu", [us], 2).tasks) == 2
    for sites in ([], [ap], [gpu]):
        nobody = graph.tasks.unheld("eu", sites, 100)
        assert (nobody.tasks, nobody.stuck) == ([], len(waiting))
    assert graph.tasks.unheld("us", [us, ap], 100).tasks == []


def test_what_waits_of_an_ended_run_is_not_stuck_but_goes_along(graph: ArangoGraph) -> None:
    put_graph(graph, [], {"a": S.PENDING}, allowed_regions=("eu", "us"))
    put(graph, "runs", [a_run(RUN, state=RunState.FAILED)])

    assert graph.tasks.unheld("eu", [], 100).stuck == 0
    us = Site("us", {"default": 1}, frozenset())
    assert len(graph.tasks.unheld("eu", [us], 100).tasks) == 1


def test_load_counts_what_is_to_do_now_by_region(graph: ArangoGraph) -> None:
    put_graph(graph, [], {f"t-{state}": state for state in S})

    assert graph.tasks.load() == {"eu": len(HELD | CLAIMABLE)}


def test_of_what_is_claimable_a_limit_leaves_the_longest_remaining_path_first(
    graph: ArangoGraph,
) -> None:
    lengths = {"a": 1.0, "b": 10.0, "c": 2.0, "d": 10.0}
    tasks = put_graph(
        graph,
        [],
        {"a": S.READY, "b": S.READY, "c": S.IN_DOUBT, "d": S.READY, "e": S.CLAIMED},
        remaining_s=lengths,
    )
    expected = sorted(lengths, key=lambda name: (-lengths[name], tasks[name].id))

    marks = [(tasks[name].id, tasks[name].seq) for name in expected]
    assert list(graph.tasks.marks_claimable("eu", 10).items()) == marks
    assert list(graph.tasks.marks_claimable("eu", 3).items()) == marks[:3]


def test_of_what_is_claimable_each_tenant_has_an_equal_part_of_a_limit(
    graph: ArangoGraph,
) -> None:
    """One with little is not hidden behind one with much, however long the paths of that are."""
    much = [
        a_task(f"m{n}", tenant="much", state=S.READY, spec=a_spec(f"m{n}", remaining_s=100.0 - n))
        for n in range(9)
    ]
    little = [
        a_task(f"l{n}", tenant="little", state=S.READY, spec=a_spec(f"l{n}")) for n in range(2)
    ]
    graph.tasks.insert([*much, *little])

    found = list(graph.tasks.marks_claimable("eu", 6))

    assert set(found) == {task.id for task in (*much[:3], *little)}
    assert [id_ for id_ in found if id_ in {task.id for task in much}] == [t.id for t in much[:3]]
    assert len(graph.tasks.marks_claimable("eu", 100)) == 11


def test_a_look_is_two_round_trips_however_much_is_ready(graph: ArangoGraph) -> None:
    tasks = [a_task(f"t{n}", tenant=f"of{n % 2}", state=S.READY) for n in range(5)]
    graph.tasks.insert(tasks)
    ids = [task.id for task in tasks]
    before = graph.round_trips

    marks = graph.tasks.marks_claimable("eu", 4)
    found = graph.tasks.known([*marks, *(TaskId(f"{ids[0]}{n}") for n in range(2_500))])

    assert len(marks) == len(found) == 4
    assert graph.round_trips - before <= 2  # none at all in this process


def test_how_a_region_stands_is_seen_in_one_look(graph: ArangoGraph) -> None:
    (eu,) = put(graph, "regions", [Region(id="eu", serves=("eu-west-1",))])
    fence = Fence(kind=FenceKind.EXPIRED, by="s:1", at=AT)
    (worker, scheduler, _, _) = put(
        graph,
        "instances",
        [
            an_instance("b:1", roles=(Role.WORKER,)),
            an_instance("a:1", roles=(Role.SCHEDULER, Role.API)),
            an_instance("c:1", fenced=fence),
            an_instance("d:1", region="us"),
        ],
    )
    (on, _) = put(graph, "pauses", [a_pause(), a_pause(name="other", is_on=False)])
    zone_pause = a_pause(ScopeKind.ZONE, "z1")
    (lifted,) = put(graph, "pauses", [replace(zone_pause, is_on=False)])
    frozen = a_calendar("f", scope=Scope(ScopeKind.ZONE, "z2"))
    (kept, _) = put(graph, "calendars", [frozen, a_calendar("gone", is_on=False)])
    put(graph, "runs", [a_run("r1", zone="z1"), a_run("r2", zone="z2")])
    put(graph, "runs", [a_run("r3", zone="z2", state=RunState.DONE), a_run("r4", zone="")])
    (gold,) = put(graph, "tenants", [a_tenant("acme")])

    standing = graph.regions.standing("eu", ["acme", "nobody"])

    assert standing.region == eu
    assert standing.pauses == [on]
    assert standing.calendars == [kept]
    assert standing.zone_runs == {"z2": ["r2"]}
    assert standing.members == [scheduler, worker]
    assert (standing.schedulers, standing.workers) == ([scheduler], [worker])
    assert standing.levels == {"acme": gold.level, "nobody": None}
    assert graph.regions.standing("nowhere", []).region is None
    graph.pauses.write([(lifted, replace(lifted, is_on=True))])
    assert graph.regions.standing("eu", []).zone_runs == {"z1": ["r1"], "z2": ["r2"]}


def test_in_flight_counts_by_tenant_pool_and_region(graph: ArangoGraph) -> None:
    put_graph(graph, [], {"a": S.CLAIMED, "b": S.RUNNING, "c": S.READY})
    put(
        graph,
        "tasks",
        [
            a_task("x", tenant="other", state=S.RUNNING, needs=0, spec=a_spec("x", pool="big")),
            a_task("y", tenant="other", region="us", state=S.RUNNING, needs=0),
        ],
    )

    here = graph.regions.standing("eu", []).in_flight
    assert here.counts == {("acme", "default"): 2, ("other", "big"): 1}
    assert here.by_tenant == {"acme": 2, "other": 1}
    assert here.by_pool == {"default": 2, "big": 1}
    assert graph.regions.standing("us", []).in_flight.by_tenant == {"other": 1}
    assert graph.regions.standing("ap", []).in_flight.total == 0


def test_outputs_come_from_the_direct_predecessors_by_name(graph: ArangoGraph) -> None:
    tasks = put_graph(graph, DIAMOND, dict.fromkeys("abcd", S.DONE))

    assert graph.tasks.outputs_before(tasks["d"].id) == {"b": {"id": "b"}, "c": {"id": "c"}}
    assert graph.tasks.outputs_before(tasks["a"].id) == {}


@pytest.mark.parametrize("name", ["plain", "Zürich 東京/🚀", '"; REMOVE x', "a.b:c"])
def test_a_task_is_found_by_its_name(graph: ArangoGraph, name: str) -> None:
    (task,) = put(graph, "tasks", [a_task(name, spec=a_spec(name))])

    assert graph.tasks.named(RUN, name) == task
    assert graph.tasks.named(RUN, name + "x") is None
    assert graph.tasks.named(RunId("other"), name) is None


@pytest.mark.parametrize("seed", range(8))
def test_closures_in_both_directions(graph: ArangoGraph, seed: int) -> None:
    sample = Sample(graph, seed)
    dag = sample.dag
    reverse = Dag.checked(dag.before, [(b, a) for b, before in dag.before.items() for a in before])
    for name, task in sample.tasks.items():
        _check_walk(graph.tasks.blocks(task.id), dag, name, sample)
        _check_walk(graph.tasks.dependents(task.id), dag, name, sample)
        _check_walk(graph.tasks.ancestors(task.id), reverse, name, sample)


def _check_walk(found: list[Related], dag: Dag, start: str, sample: Sample) -> None:
    distances = {start: 0}
    for name in dag.closure(start):
        near = [distances[p] for p in dag.before[name] if p in distances]
        distances[name] = 1 + min(near)
    del distances[start]

    assert {r.name: r.distance for r in found} == distances
    assert [r.distance for r in found] == sorted(r.distance for r in found)
    for related in found:
        task = sample.tasks[related.name]
        assert (related.id, related.state, related.region) == (task.id, task.state, "eu")


def test_the_token_numbers_before_a_task_are_those_of_its_direct_predecessors(
    graph: ArangoGraph,
) -> None:
    sample = Sample(graph, 1)
    tasks = sample.tasks

    found = graph.tasks.numbers_before([task.id for task in tasks.values()])

    assert found == {
        task.id: {tasks[p].id: tasks[p].token.number for p in sample.dag.before[name]}
        for name, task in tasks.items()
    }
    assert graph.tasks.numbers_before([]) == {}


def test_the_failed_tasks_of_a_region_come_newest_run_first(graph: ArangoGraph) -> None:
    old, new, elsewhere = (
        a_task("x", RunId(run), region=region, state=S.FAILED)
        for run, region in (("run1", "eu"), ("run2", "eu"), ("run3", "us"))
    )
    put(graph, "tasks", [old, new, elsewhere, a_task("y", state=S.DONE)])

    assert [t.id for t in graph.tasks.failed("eu", 9)] == [new.id, old.id]
    assert [t.id for t in graph.tasks.failed("eu", 1)] == [new.id]


def test_a_task_that_is_not_there_has_no_relations(graph: ArangoGraph) -> None:
    missing = a_task("gone").id

    assert graph.tasks.blocks(missing) == graph.tasks.ancestors(missing) == []
    assert graph.tasks.outputs_before(missing) == {}
    assert graph.tasks.unlocked_by([missing]) == []


@pytest.mark.parametrize("seed", range(6))
def test_order_goes_by_waves(graph: ArangoGraph, seed: int) -> None:
    sample = Sample(graph, seed)
    found = graph.tasks.order(RUN)
    waves = {name: n for n, wave in enumerate(sample.dag.waves) for name in wave}

    assert [wave for wave, _ in found] == sorted(waves.values())
    assert {related.name: wave for wave, related in found} == waves


@pytest.mark.parametrize("seed", range(6))
def test_the_critical_path_is_the_heaviest(graph: ArangoGraph, seed: int) -> None:
    sample = Sample(graph, seed)
    expected = sample.dag.critical_path(sample.seconds)

    assert [t.spec.name for t in graph.tasks.critical_path(RUN)] == list(expected)


def test_a_run_that_is_not_there_answers_with_nothing(graph: ArangoGraph) -> None:
    gone = RunId("gone")

    assert graph.tasks.ready(gone, 10) == []
    assert graph.tasks.of_run(gone) == []
    assert graph.tasks.state_counts(gone) == {}
    assert graph.tasks.counts(gone) == (0, 0)
    assert graph.tasks.order(gone) == []
    assert graph.tasks.critical_path(gone) == []
    assert not graph.tasks.has_active(gone)


def test_marks_tell_the_seq_of_what_is_claimable_and_of_a_runs_tasks_by_region(
    graph: ArangoGraph,
) -> None:
    states = {"a": S.DONE, "b": S.READY, "c": S.IN_DOUBT, "d": S.PENDING}
    tasks = put_graph(graph, [], states)
    away = replace(a_task("away", spec=a_spec("away", region="us")), region="us")
    put(graph, "tasks", [away])

    claimable = {tasks[name].id: tasks[name].seq for name in "bc"}
    assert graph.tasks.marks_claimable("eu") == claimable
    assert graph.tasks.marks_of_run(RUN, "eu") == {t.id: t.seq for t in tasks.values()}
    assert graph.tasks.marks_of_run(RUN, "us") == {away.id: away.seq}
    assert graph.tasks.marks_claimable("us") == {}
