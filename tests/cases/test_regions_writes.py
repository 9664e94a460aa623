"""The handed cases about writes whose answer, order or leader is not what it seems, by their ids.

What a follower shows too late is in `test_regions_replicas.py`, a store that was set back in
`test_regions_restored.py`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import region_scheduler
from region_scheduler.assembly.in_process import in_process_graph
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.admission import AdmissionState
from region_scheduler.domain.instance import Fence, FenceKind, fenced
from region_scheduler.domain.region import Region
from region_scheduler.domain.slot import Slot
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import EventKind, LockNeed
from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.embedded.arango.faults import Fault, FaultKind
from region_scheduler.errors import LostRace
from region_scheduler.ports.queue import AttemptMessage
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import World
from tests.cases.test_admission_saga import (
    DEAD_S,
    accept_and_die,
    admission,
    leaders,
    pass_time_without,
)
from tests.cases.troubled import Moments, TroubledWorld, happened
from tests.simulation.acts import admit, effects, home, state_of, task_of
from tests.simulation.scenarios import HOME, LOCK, REGIONS, a_plan, graph_of, spec

AWAY = "us-east"
SOON_S = 15.0


@pytest.fixture
def moments() -> Moments:
    return Moments()


@pytest.fixture
def world(tmp_path: Path, moments: Moments) -> TroubledWorld:
    return TroubledWorld(tmp_path, REGIONS, hook=moments)


def test_stl_001_what_a_deposed_leader_answers_has_no_effect(world: TroubledWorld) -> None:
    """The assignment of a run is its admission's instance; both managers ask whose it is."""
    accept_and_die(world, "k")
    graph, control = graph_of(world), FaultControl(world.engine)
    first, second = (name for name in leaders(world) if name != HOME)
    pass_time_without(world, {HOME}, DEAD_S)
    control.depose(first)  # its reads show this moment from now on, its writes go to the new leader
    fence = Fence(kind=FenceKind.UNRESPONSIVE, by="operator:anna", at=world.clock.now())
    cut_off = world.regions[first].services.keeper
    commit_one(graph.instances, Change(cut_off.instance.id, lambda i: fenced(i, i.beat, fence)))
    (run,) = world.regions[second].services.cluster_manager.tick()
    taken = admission(graph, "k")

    (seen,) = world.regions[first].ports.graph.admissions.read([taken.id])
    assert seen is not None
    assert (seen.epoch, seen.state) == (1, AdmissionState.ACCEPTED), "the old leader's answer"
    assert cut_off.may_act(), "it believes to lead within its lease time"
    with pytest.raises(LostRace):
        world.regions[first].services.cluster_manager.tick()

    assert admission(graph, "k") == taken
    assert (taken.epoch, taken.state) == (2, AdmissionState.DONE)
    assert taken.instance == world.regions[second].services.keeper.instance.id
    control.heal_leader(first)
    world.pass_time(DEAD_S)
    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == {"a": 1, "b": 1}


@pytest.mark.parametrize("is_applied", [True, False])
def test_stl_005_a_claim_of_unknown_outcome_is_dispatched_once(
    world: TroubledWorld, moments: Moments, is_applied: bool
) -> None:
    run = admit(world, a_plan([spec("a")]))
    sent: list[AttemptMessage] = []
    moments.after["queue.publish"] = lambda call, _: sent.extend(call.args[0])
    fault = Fault(
        FaultKind.TIMED_OUT,
        method="PATCH",
        path="/document/tasks",
        times=1,
        is_applied=is_applied,
    )
    FaultControl(world.engine).inject(fault)
    promoted = home(world).services.scheduler.tick()

    assert promoted.dispatched == (task_of(world, run, "a").id,)
    assert [one.token for one in sent] == [task_of(world, run, "a").token]
    world.pass_time(5)
    assert len(sent) == 1
    assert effects(world) == ["a"]
    assert happened(world, run, "a", EventKind.CLAIMED) == [EventKind.CLAIMED]


def test_stl_007_increments_of_one_document_by_twenty_threads_are_all_there_or_refused() -> None:
    threads, each = 20, 50
    engine = Engine(is_cluster=True, regions=(HOME, AWAY))
    stores = [in_process_graph(engine, (HOME, AWAY)[n % 2]).regions for n in range(threads)]
    stores[0].insert([Region(id="counted", epoch=0)])
    applied = [0] * threads
    refused: list[LostRace] = []

    def count(n: int) -> None:
        for _ in range(each):
            try:
                commit_one(stores[n], Change("counted", lambda r: replace(r, epoch=r.epoch + 1)))
                applied[n] += 1
            except LostRace as busy:
                refused.append(busy)

    workers = [threading.Thread(target=count, args=[n]) for n in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert sum(applied) + len(refused) == threads * each
    (found,) = stores[0].read(["counted"])
    assert found is not None
    assert found.epoch == sum(applied)
    assert all("writers that came before every try" in str(busy) for busy in refused)


def lock_of(world: World) -> Slot:
    (slot,) = graph_of(world).slots.of_resources([LOCK])
    return slot


def test_stl_009_a_lock_left_by_a_dead_coordinator_delays_claims_and_halves_none(
    world: TroubledWorld,
) -> None:
    """A stranger's transaction holds the document; it ends when its coordinator is found dead."""
    first = admit(world, a_plan([spec("a", locks=(LockNeed(LOCK),))]))
    world.pass_time(3)
    assert state_of(world, first) is RunState.DONE
    slot = lock_of(world)
    stranger = in_process_graph(world.engine, HOME).db.begin_transaction(write=["slots"])
    stranger.collection("slots").update({"_key": slot.id, "resource": "half-written"})

    run = admit(world, a_plan([spec("b", AWAY, locks=(LockNeed(LOCK),))]), "k2")
    world.pass_time(6)
    waits = task_of(world, run, "b")
    assert (waits.state, waits.holder, lock_of(world)) == (TaskState.READY, None, slot)
    assert waits.retries_used == 0
    world.engine.streams.abort_all()  # as the data servers do for a coordinator that is gone
    world.pass_time(SOON_S - 6)

    assert state_of(world, run) is RunState.DONE
    assert lock_of(world).resource == LOCK


def test_stl_009_who_dies_with_an_assignment_on_its_way_blocks_a_lock_for_a_lease(
    world: TroubledWorld, moments: Moments
) -> None:
    """A claim is no transaction: of two writes one may be there, and the sweep takes it back."""
    dead = admit(world, a_plan([spec("a", locks=(LockNeed(LOCK),), allowed_regions=(HOME,))]))
    left = ["once"]

    def die(_call: object, _answer: object) -> None:
        if left:
            left.pop()
            raise Crash("slots.write")

    moments.after["slots.write"] = die
    moments.after["slots.insert"] = die
    with pytest.raises(Crash):
        home(world).services.scheduler.tick()
    world.lose_region(HOME)
    run = admit(
        world, a_plan([spec("b", AWAY, locks=(LockNeed(LOCK),))], home_region=AWAY), "k2", AWAY
    )
    world.pass_time(SOON_S)

    assert state_of(world, run) is RunState.DONE
    assert task_of(world, dead, "a").state is TaskState.READY, "it waits for its region"
    assert lock_of(world).holder is None


def test_stl_010_who_fails_in_the_middle_of_a_claim_leaves_no_lock(
    world: TroubledWorld, moments: Moments
) -> None:
    run = admit(world, a_plan([spec(f"t{n}") for n in range(6)]))

    def fail(_: object) -> None:
        raise RuntimeError("in the middle of a claim")

    moments.before["tasks.write"] = fail
    for _ in range(5):
        with pytest.raises(RuntimeError, match="middle"):
            home(world).services.scheduler.tick()
        assert in_process_graph(world.engine, HOME).db.list_transactions() == []
    del moments.before["tasks.write"]

    assert home(world).services.scheduler.tick().dispatched, "at once: no clock has moved"
    world.pass_time(4)
    assert state_of(world, run) is RunState.DONE


def test_stl_010_nothing_here_begins_a_transaction_that_could_be_left_open() -> None:
    root = Path(region_scheduler.__file__).parent
    product = [path for path in root.rglob("*.py") if "embedded" not in path.parts]
    begun = [path for path in product if "begin_transaction" in path.read_text()]
    exclusive = [p for p in root.rglob("*.aql") if "exclusive: true" in p.read_text().lower()]

    assert (begun, exclusive) == ([], [])


def test_stl_011_events_of_the_past_move_nothing_back(
    world: TroubledWorld, moments: Moments
) -> None:
    """Rows and messages are all that a scheduler and a worker learn of events; both come again."""
    calls: dict[str, list[partial[Any]]] = {}
    for point in ("queue.publish", "backlog.add", "metadata.record"):
        moments.before[point] = calls.setdefault(point, []).append
    names = [f"t{n:02}" for n in range(24)]
    run = admit(world, a_plan([spec(name, allowed_regions=(HOME,)) for name in names]))
    world.pass_time(1)
    world.is_waking = False
    for worker in home(world).workers:
        worker.work()
    store = graph_of(world)

    def seen() -> dict[str, Any]:
        tasks = {task.spec.name: (task.seq, task.state) for task in store.tasks.of_run(run.id)}
        return {**tasks, "rows": dict(home(world).ports.metadata.marks(run.id))}

    before, ran = seen(), Counter(effects(world))
    replay(calls)
    world.woken.clear()
    assert seen() == before
    world.is_waking = True
    world.pass_time(6)

    assert state_of(world, run) is RunState.DONE
    assert ran <= Counter(effects(world)) == dict.fromkeys(names, 1)
    assert home(world).ports.backlog.depth() == 0


def replay(calls: Mapping[str, Sequence[partial[Any]]]) -> None:
    """Make the last twenty calls of each kind again, the oldest first."""
    for made in calls.values():
        for call in list(made)[-20:]:
            call()


def test_stl_018_nothing_of_a_graph_is_seen_before_all_of_it_is_there(
    world: TroubledWorld, moments: Moments
) -> None:
    count, fails_at = 5_000, 3_000
    plan = a_plan([spec(f"t{n}", runner="approval") for n in range(count)])
    written = [0]

    def die(_call: object, answers: Any) -> None:
        written[0] += len(answers)
        if fails_at <= written[0] < count:
            raise Crash("tasks.insert")

    moments.after["tasks.insert"] = die
    with pytest.raises(Crash):
        admit(world, plan)
    del moments.after["tasks.insert"]
    graph = graph_of(world)
    (found,) = graph.admissions.recent(2)
    assert graph.tasks.counts(found.run)[0] == fails_at
    assert graph.runs.recent(9) == []
    for region in world.regions.values():
        region.services.reconciler.tick()
        region.services.mender.tick()
        assert region.services.scheduler.tick().dispatched == ()
    assert graph.tasks.state_counts(found.run) == {TaskState.PENDING: fails_at}

    pass_time_without(world, {HOME}, DEAD_S)
    for name in leaders(world):
        if name != HOME:
            world.regions[name].services.cluster_manager.tick()
    assert graph.tasks.counts(found.run) == (count, 0)
    assert [run.id for run in graph.runs.recent(9)] == [found.run]
