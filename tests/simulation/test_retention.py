"""What is old and not needed goes whole, whoever dies on the way or looks at an old view."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from region_scheduler.domain.admission import AdmissionState, admission_key, tombstone_of
from region_scheduler.domain.ids import Incarnation, TaskId
from region_scheduler.domain.instance import Fence, FenceKind
from region_scheduler.domain.pause import Scope, ScopeKind
from region_scheduler.domain.retention import RecordKind, Retention
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import Holder, Task
from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.errors import (
    IllegalMove,
    InvalidInput,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from region_scheduler.lifecycle.collect import Policy, collect, removable
from region_scheduler.operations.pauses import pause, unpause
from region_scheduler.operations.retention import collect_all, preview
from region_scheduler.operations.rework import clear_task
from region_scheduler.operations.runs import resume_run
from region_scheduler.scheduling.collector import Collected
from region_scheduler.simulation.faults import Fault, Faults, FaultyWorld, Kind
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import World
from tests.contract.graph.samples import an_admission, an_instance
from tests.simulation.acts import (
    admit,
    answered,
    auditor,
    effects,
    home,
    resumed,
    state_of,
    task_of,
)
from tests.simulation.scenarios import HOME, KEY, ZONE, a_plan, a_zone, graph_of, spec

DAYS_91 = 91 * 86_400.0
RETENTION = Retention()


def leading(world: World) -> str:
    """Return the region whose process collects."""
    alive = graph_of(world).instances.unfenced()
    return min(one.id for one in alive if one.id.startswith("serve")).split(":")[0][6:]


def grow_old(world: World, seconds: float = DAYS_91) -> None:
    world.clock.advance(seconds)
    world.renew()


def tick(world: World) -> dict[str, Collected]:
    return {name: one.services.collector.tick() for name, one in world.regions.items()}


def a_run_with_everything(world: World, end: bool = True) -> Run:
    """Admit a run over two regions, if there are; answer it, pause it, let it end or not."""
    far = list(world.regions)[min(1, len(world.regions) - 1)]
    plan = a_plan(
        [spec("a"), spec("ask", runner="approval"), spec("b", far), spec("c")],
        "a>ask", "ask>b", "b>c",
    )  # fmt: skip
    run = admit(world, plan, KEY)
    world.fast_path()
    if end:
        answered(world, task_of(world, run, "ask"), is_yes=True)
        world.fast_path()
        assert state_of(world, run) is RunState.DONE
    scope = Scope(ScopeKind.RUN, run.id)
    pause(graph_of(world), auditor(world), world.clock, scope, "why")
    unpause(graph_of(world), home(world).services.settler, auditor(world), scope)
    return run


def left(world: World, run: Run, task_ids: list[TaskId]) -> dict[str, object]:
    """Return what is left of a run, by what it is; nothing if it is gone whole."""
    graph = graph_of(world)
    (found,) = graph.runs.read([run.id])
    (paused,) = graph.pauses.read([Scope(ScopeKind.RUN, run.id).key])
    seen: dict[str, object] = {
        "run": found,
        "tasks and edges": sum(graph.tasks.counts(run.id)),
        "answers": graph.answers.for_tasks(task_ids),
        "pause": paused,
        "rows": [name for name, r in world.regions.items() if r.ports.metadata.marks(run.id)],
    }
    return {name: value for name, value in seen.items() if value}


def ids_of(world: World, run: Run) -> list[TaskId]:
    return [task.id for task in graph_of(world).tasks.of_run(run.id)]


def test_an_old_run_goes_whole_then_its_admission_and_the_key_is_free(world: World) -> None:
    run = a_run_with_everything(world)
    ids = ids_of(world, run)
    assert set(left(world, run, ids)) == {"run", "tasks and edges", "answers", "pause", "rows"}
    assert not any(one.gone for one in tick(world).values())

    grow_old(world)
    seen = tick(world)
    tick(world)  # the rows of regions that looked before the leader

    assert left(world, run, ids) == {}
    assert seen[leading(world)].gone[RecordKind.RUNS] == 1
    assert graph_of(world).admissions.read([admission_key("client", "acme", KEY)]) == [None]
    again = admit(world, a_plan([spec("new")]), KEY)
    world.fast_path()
    assert (again.id != run.id, state_of(world, again)) == (True, RunState.DONE)


def test_what_has_not_ended_or_is_opened_again_stays(world: World) -> None:
    run = a_run_with_everything(world, end=False)
    world.log.fails["bad"] = 99
    failed = admit(world, a_plan([spec("bad")]), "failed")
    world.pass_time(8)
    assert state_of(world, failed) is RunState.FAILED
    grow_old(world)
    resumed(world, failed)

    assert not any(one.gone.get(RecordKind.RUNS) for one in tick(world).values())
    answered(world, task_of(world, run, "ask"), is_yes=True)
    world.fast_path()
    assert state_of(world, run) is RunState.DONE


def test_a_zone_keeps_what_it_was_made_by(world: World) -> None:
    graph_of(world).zones.insert([a_zone()])
    runs = []
    for number in range(3):
        runs.append(admit(world, a_plan([spec("a")], zone=ZONE), f"k{number}"))
        world.fast_path()
        grow_old(world, 5 * 86_400.0)
    grow_old(world)
    tick(world)

    assert [run is not None for run in graph_of(world).runs.read([run.id for run in runs])] == [
        False, False, True,
    ]  # fmt: skip


def test_who_opens_a_run_between_the_look_and_the_removal_keeps_it_whole(world: World) -> None:
    world.log.fails["bad"] = 99
    run = admit(world, a_plan([spec("a"), spec("bad")], "a>bad"))
    world.pass_time(8)
    grow_old(world)
    found = removable(graph_of(world), Policy(RETENTION, world.clock.now(), 9))
    assert [one.id for one in found[RecordKind.RUNS]] == [run.id]
    world.log.fails.clear()
    resumed(world, run)

    assert collect(graph_of(world), found)[RecordKind.RUNS] == 0
    world.pass_time(5)
    assert state_of(world, run) is RunState.DONE
    assert graph_of(world).tasks.counts(run.id) == (2, 1)
    # Ended anew, in a later round than the one that was seen: that look gives it up no more.
    assert collect(graph_of(world), found)[RecordKind.RUNS] == 0


def test_who_opens_a_run_after_it_was_closed_is_refused(world: World) -> None:
    world.log.fails["bad"] = 99
    run = admit(world, a_plan([spec("bad")]))
    world.pass_time(8)
    (found,) = graph_of(world).runs.read([run.id])
    assert found is not None
    graph_of(world).runs.write([(found, replace(found, is_closed=True))])

    with pytest.raises(IllegalMove, match="a further round"):
        resumed(world, run)


def harm(world: FaultyWorld, run: Run, ids: list[TaskId]) -> list[str]:
    """Return what is wrong in the middle of a collection, seen by somebody else."""
    world.faults.is_armed = False
    problems = []
    remains = left(world, run, ids)
    if "run" in remains and len(ids_of(world, run)) < len(ids):
        (found,) = graph_of(world).runs.read([run.id])
        if found is not None and not found.is_closed:
            problems.append("a run without its tasks can be opened")
    if "run" not in remains and remains.keys() - {"rows"}:
        problems.append(f"the run is gone before {sorted(remains)}")
    world.faults.is_armed = True
    return problems


def played(directory: Path, fault: Fault | None) -> tuple[Faults, list[str]]:
    """Let a collection meet one fault, and the next one go on; return what was wrong."""
    world = FaultyWorld(directory, (HOME,), fault)
    run = a_run_with_everything(world)
    ids = ids_of(world, run)
    fence = Fence(kind=FenceKind.EXPIRED, by="x", at=world.clock.now())
    graph_of(world).instances.insert([an_instance("dead:1", region=HOME, fenced=fence)])
    grow_old(world)
    problems: list[str] = []
    world.faults.is_armed = True
    for _ in range(3):
        for region in world.regions.values():
            with suppress(Crash, Unavailable, OutcomeUnknown):
                region.services.collector.tick()
            problems += harm(world, run, ids)
    world.faults.is_armed = False
    if left(world, run, ids):
        problems.append(f"left: {sorted(left(world, run, ids))}")
    if graph_of(world).admissions.read([admission_key("client", "acme", KEY)]) != [None]:
        problems.append("the admission is left")
    if graph_of(world).instances.read(["dead:1"]) != [None]:
        problems.append("the dead instance is left")
    return world.faults, problems


def harmful(place: Path, is_chosen: Callable[[Fault], bool]) -> dict[str, list[str]]:
    """Return every chosen fault that did harm, with what was wrong then."""
    survey, problems = played(place / "survey", None)
    assert problems == []
    faults = [f for f in survey.all() if not f.point.startswith(("metadata.", "backlog."))]
    assert {fault.point for fault in faults} >= WRITES
    found = {}
    for number, fault in enumerate(filter(is_chosen, faults)):
        struck, problems = played(place / str(number), fault)
        if problems or not struck.has_struck:
            found[str(fault)] = problems
    return found


WRITES = {"runs.write", "leftovers.remove_edges"} | {
    f"{kind}.remove" for kind in ("runs", "tasks", "answers", "pauses", "admissions", "instances")
}


def test_a_collection_that_breaks_off_after_a_write_is_finished_by_the_next(
    tmp_path: Path,
) -> None:
    chosen = {Kind.CRASH_AFTER, Kind.LOST_AFTER}

    assert harmful(tmp_path, lambda f: f.point in WRITES and f.kind in chosen) == {}


@pytest.mark.slow
def test_a_collection_that_breaks_off_anywhere_is_finished_by_the_next(tmp_path: Path) -> None:
    assert harmful(tmp_path, lambda _: True) == {}


def test_a_reader_whose_view_is_older_brings_nothing_back(world: World) -> None:
    """One region still sees the run after it is gone; every loop of it acts on that view."""
    run = a_run_with_everything(world)
    ids, ran = ids_of(world, run), effects(world)
    control = FaultControl(world.engine)
    stale = world.regions["us-east"]
    control.freeze(stale.name)
    grow_old(world)
    tick(world)
    seen = stale.ports.graph.tasks.of_run(run.id)
    assert [task.id for task in seen] == ids, "the view is old"

    world.pass_time(3)
    stale.services.mender.rebuild()
    with pytest.raises(NotFound):
        resume_run(stale.ports.graph, stale.services.settler, auditor(world), world.clock, run.id)
    with pytest.raises(NotFound):
        clear_task(stale.ports.graph, stale.services.settler, auditor(world), world.clock, seen[0])
    control.thaw(stale.name)
    tick(world)

    assert left(world, run, ids) == {}
    assert effects(world) == ran


def test_two_that_believe_to_lead_remove_it_once(world: World) -> None:
    run = a_run_with_everything(world)
    ids = ids_of(world, run)
    grow_old(world)
    graph = graph_of(world)
    policy = Policy(RETENTION, world.clock.now(), 9)
    first, second = removable(graph, policy), removable(graph, policy)

    assert collect(graph, first)[RecordKind.RUNS] == 1
    assert collect(graph, second)[RecordKind.RUNS] == 0
    tick(world)
    assert left(world, run, ids) == {}


def test_a_clock_that_is_ahead_calls_nothing_old(world: World) -> None:
    run = a_run_with_everything(world)
    world.renew()
    world.clocks[leading(world)].ahead_s = DAYS_91
    seen = tick(world)

    assert seen[leading(world)].clock_ahead_s == pytest.approx(DAYS_91, abs=5)
    assert state_of(world, run) is RunState.DONE
    ahead = world.clocks[leading(world)]
    with pytest.raises(InvalidInput, match="set its clock"):
        collect_all(graph_of(world), auditor(world), RETENTION, ahead, 4.0)


def test_an_ended_instance_stays_while_a_task_or_an_admission_names_it(world: World) -> None:
    graph, at = graph_of(world), world.clock.now()
    fence = Fence(kind=FenceKind.EXPIRED, by="x", at=at)
    names = ["holds:1", "admits:1", "free:1"]
    graph.instances.insert([an_instance(name, fenced=fence) for name in names])
    graph.admissions.insert([an_admission(instance=Incarnation("admits:1"))])
    run = admit(world, a_plan([spec("a")]))
    (task,) = graph.tasks.of_run(run.id)
    graph.tasks.write([(task, held(task, "holds:1"))])
    grow_old(world, 8 * 86_400.0)

    found = removable(graph, Policy(RETENTION, world.clock.now(), 9))
    assert [one.id for one in found[RecordKind.INSTANCES]] == ["free:1"]


def held(task: Task, by: str) -> Task:
    return replace(task, state=TaskState.RUNNING, holder=Holder(Incarnation(by)))


def test_a_dry_run_tells_what_would_go_and_writes_nothing(world: World) -> None:
    run = a_run_with_everything(world)
    grow_old(world)
    graph = graph_of(world)
    before = len(graph.audit.recent(99))

    found = {one.kind: one for one in preview(graph, RETENTION, world.clock)}
    assert (list(found[RecordKind.RUNS].ids), found[RecordKind.RUNS].tasks) == ([run.id], 4)
    assert found[RecordKind.RUNS].rule == "older than 90 days or beyond the newest 50000"
    assert found[RecordKind.AUDIT].rule == "kept for ever"
    assert (state_of(world, run), len(graph.audit.recent(99))) == (RunState.DONE, before)

    gone = collect_all(graph, auditor(world), RETENTION, world.clock, 4.0)
    assert (gone[RecordKind.RUNS], gone[RecordKind.ADMISSIONS]) == (1, 1)
    assert len(graph.audit.recent(99)) == before + 1
    assert collect_all(graph, auditor(world), RETENTION, world.clock, 4.0)[RecordKind.RUNS] == 0


def test_a_cancelled_admission_leaves_nothing_behind(world: World) -> None:
    graph = graph_of(world)
    made = an_admission(state=AdmissionState.CANCELLED, created_at=world.clock.now())
    graph.admissions.insert([made])
    graph.runs.insert([tombstone_of(made, "not wanted", world.clock.now())])
    grow_old(world)
    tick(world)
    tick(world)

    assert graph.runs.read([made.run]) == [None]
    assert graph.admissions.read([made.id]) == [None]
