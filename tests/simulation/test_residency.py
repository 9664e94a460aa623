"""Data that may lie in the EU only: it is nowhere else, and its run waits while the EU is gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from region_scheduler.assembly.in_process import in_process_graph
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.residence import MARK, is_reference
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.step import StepJob, StopWish
from region_scheduler.domain.task import Exit, ExitKind
from region_scheduler.errors import InvalidGraph
from region_scheduler.operations.explain import explain
from region_scheduler.operations.runs import resume_run
from region_scheduler.operations.schedules import ScheduleWish
from region_scheduler.simulation.steps import EffectLog
from region_scheduler.simulation.world import World
from region_scheduler.verify.residency import misplaced, strays
from tests.simulation.acts import admit, auditor, effects, state_of, task_of
from tests.simulation.scenarios import a_plan, graph_of, spec

EU = ("eu-central", "eu-west")
US = "us-east"
SECRET, RESULT, SAID = "IBAN-DE02-1203", "CARD-4111-1111", "LOGGED-7788"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, (*EU, US))


def eu_only(*names: str, runner: str = "simulate") -> Plan:
    tasks = [
        spec(
            name,
            EU[0],
            allowed_regions=EU,
            is_resident=True,
            runner=runner,
            inputs={"account": SECRET, "deep": [{"again": SECRET}]},
        )
        for name in names
    ]
    edges = [f"{before}>{after}" for before, after in pairwise(names)]
    return a_plan(tasks, *edges, home_region=EU[0], regions=EU)


def leaves_results(world: World) -> None:
    """Let every step return and say what must stay, and note what it was given."""

    def end(*_: object) -> Exit:
        told = {"card": RESULT}
        return Exit(kind=ExitKind.OK, message=SAID, outputs=told, log_tail=SAID)

    world.log.during |= dict.fromkeys("abc", end)


def files(directory: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            yield path, path.read_bytes()


def outside_the_eu(world: World, directory: Path) -> list[str]:
    """Grep all documents of the store, and all files but those of the EU's own storage."""
    words = [word.encode() for word in (SECRET, RESULT, SAID)]
    found = [
        str(path)
        for path, body in files(directory)
        if not any(world.resident_dir(region) in path.parents for region in EU)
        if any(word in body for word in words)
    ]
    database = in_process_graph(world.engine, US).db
    for described in database.collections():  # type: ignore[union-attr]
        if not described["system"]:
            text = str(list(database.collection(described["name"]).all())).encode()  # type: ignore[arg-type]
            found += [described["name"] for word in words if word in text]
    return found


def blobs_in(world: World, region: str) -> dict[str, bytes]:
    return {path.name: body for path, body in files(world.resident_dir(region))}


def test_no_resident_byte_lies_in_the_store_or_in_another_region(
    world: World, tmp_path: Path
) -> None:
    leaves_results(world)
    run = admit(world, eu_only("a", "b", "c"), region=EU[0])
    world.pass_time(6)

    assert state_of(world, run) is RunState.DONE
    assert outside_the_eu(world, tmp_path) == []
    assert blobs_in(world, US) == {}
    tasks = graph_of(world).tasks.of_run(run.id)
    assert all(is_reference(t.spec.inputs) and is_reference(t.outputs) for t in tasks)
    assert list(strays(tasks)) == []
    for region in EU:
        blobs = blobs_in(world, region)
        assert len(blobs) == 6, "inputs and outputs of three tasks, in both regions"
        assert list(misplaced(region, blobs)) == []
        assert SECRET.encode() in b"".join(blobs.values())


def test_a_step_is_given_its_inputs_and_what_came_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[object, object]] = []
    run_step = EffectLog.run

    def run(log: EffectLog, job: StepJob, should_stop: StopWish) -> Exit:
        given.append((job.spec.inputs, job.upstream))
        return run_step(log, job, should_stop)

    monkeypatch.setattr(EffectLog, "run", run)
    leaves_results(world)
    admit(world, eu_only("a", "b"), region=EU[0])
    world.pass_time(5)

    assert given[0][0] == {"account": SECRET, "deep": [{"again": SECRET}]}
    assert given[1][1] == {"a": {"card": RESULT}}


def test_with_both_its_regions_gone_an_eu_run_waits_and_goes_on_in_the_one_that_returns(
    world: World, tmp_path: Path
) -> None:
    leaves_results(world)
    run = admit(world, eu_only("a", "b", "c"), region=EU[0])
    for region in EU:
        world.lose_region(region)
    waited: list[dict[str, int]] = []
    for _ in range(12):
        world.clock.advance(world.timings.ttl_s / 4)
        world.renew()
        failover = world.regions[US].services.failover
        world.regions[US].services.resource_manager.tick()
        world.regions[US].services.reconciler.tick()
        seen = failover.tick()
        world.regions[US].services.promote()
        assert sum(seen.moved.values()) == 0
        waited.append(dict(seen.waiting))
    assert sum(waited[-1].values()) == 3, "`tasks wait for a region` is logged from this"
    assert effects(world) == []
    assert "region" in str(explain(graph_of(world), task_of(world, run, "a"), world.clock.now()))

    world.regain_region(EU[1])  # not the one that it was submitted in
    world.pass_time(2 * world.timings.lease_s)

    assert state_of(world, run) is RunState.DONE
    assert {effect.region for effect in world.log.effects} == {EU[1]}
    assert outside_the_eu(world, tmp_path) == []
    assert list(strays(graph_of(world).tasks.of_run(run.id))) == []


def test_inputs_that_no_region_that_answers_has_fail_the_task_until_it_is_resumed(
    world: World,
) -> None:
    world.lost.add(EU[1])  # no copy is made there
    run = admit(world, eu_only("a"), region=EU[0])
    world.lost.discard(EU[1])
    assert blobs_in(world, EU[1]) == {}
    world.lose_region(EU[0])
    world.pass_time(2 * world.timings.lease_s)
    waits = task_of(world, run, "a")
    assert (waits.region, effects(world)) == (EU[1], [])
    assert SECRET not in str(waits)

    world.pass_time(5)
    failed = task_of(world, run, "a")
    assert (failed.state, effects(world)) == (TaskState.FAILED, [])
    assert "is in none that answers of eu-central, eu-west" in failed.reason

    world.regain_region(EU[0])
    region = world.regions[EU[0]]
    resume_run(region.ports.graph, region.services.settler, auditor(world), world.clock, run.id)
    world.pass_time(6)
    assert state_of(world, run) is RunState.DONE
    assert effects(world) == ["a"]


@pytest.mark.parametrize(
    ("plan", "region", "told"),
    [
        (eu_only("a"), US, "submit it there, not in us-east"),
        (eu_only("a", runner="approval"), EU[0], "what people answer is kept everywhere"),
    ],
)
def test_what_residency_makes_impossible_is_refused(
    world: World, plan: Plan, region: str, told: str
) -> None:
    with pytest.raises(InvalidGraph, match=told):
        admit(world, plan, region=region)

    assert graph_of(world).admissions.recent(5) == []
    assert all(blobs_in(world, name) == {} for name in world.regions)


def test_a_condition_over_resident_outputs_is_refused(world: World) -> None:
    first = eu_only("a")
    then = spec(
        "b", EU[0], allowed_regions=EU, condition=({"path": "/upstream/a/card", "op": "present"},)
    )
    plan = a_plan([*first.tasks, then], "a>b", home_region=EU[0], regions=EU)

    with pytest.raises(InvalidGraph, match="which are resident"):
        admit(world, plan, region=EU[0])


def test_a_schedule_of_resident_tasks_is_refused(world: World) -> None:
    graph = graph_of(world)
    nodes = [{"id": "a", "runner": "simulate", "is_resident": True}]
    document = {"name": "g", "nodes": nodes, "edges": []}
    wish = ScheduleWish(name="nightly", tenant="acme", document=document, expression="0 3 * * *")

    with pytest.raises(InvalidGraph, match="a schedule keeps its graph in every region"):
        wish.schedule(graph, graph.regions.all(), world.clock.now(), "alice")


def test_a_checker_finds_what_lies_outside(world: World) -> None:
    run = admit(world, eu_only("a"), region=EU[0])
    world.pass_time(4)
    task = task_of(world, run, "a")
    bare = replace(task, outputs={"card": RESULT}, log_tail=SAID)
    started = [replace(entry, region=US) for entry in task.history]

    assert [line.partition(": ")[2] for line in strays([bare])] == [
        "outputs holds resident data instead of a reference",
        "log_tail holds resident data instead of a reference",
    ]
    (line,) = strays([replace(task, history=tuple(started))])
    assert "in us-east, allowed: eu-central, eu-west" in line
    key, blob = min(blobs_in(world, EU[0]).items())
    assert MARK not in blob.decode()
    assert list(misplaced(US, {key: blob})) == [f"blob {key} in us-east, allowed: {', '.join(EU)}"]
    assert len(list(misplaced(EU[0], {"0" * 64: blob}))) == 1
