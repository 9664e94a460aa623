"""The handed cases about who owns, leads and renews, each named by its id.

No run is owned: every task has a holder of its own, and who promotes a run only follows from which
schedulers live. What rises with each change of a leader is the region's `leader_epoch`, with each
take-over of an admission its `epoch`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.admission.cluster_manager import ClusterManager
from region_scheduler.admission.intake import Intake
from region_scheduler.admission.saga import AdmissionSaga
from region_scheduler.assembly.services import Services, settler
from region_scheduler.domain.admission import AdmissionState
from region_scheduler.domain.instance import renewed
from region_scheduler.domain.ownership import Ownership
from region_scheduler.domain.region import Region
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import EventKind
from region_scheduler.domain.tenant import Quota
from region_scheduler.errors import Fenced, OutcomeUnknown, Unavailable
from region_scheduler.identity.quotas import Quotas
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import World
from tests.cases.troubled import Moments, TroubledWorld, once
from tests.simulation.acts import admit, another, effects, home, state_of, task_of
from tests.simulation.scenarios import HOME, REGIONS, a_plan, graph_of, spec
from tests.unit.domain.samples import AT

CHAIN = a_plan([spec("a"), spec("b"), spec("c")], "a>b", "b>c")
MODES = pytest.mark.parametrize("mode", [Ownership.RUN, Ownership.LEADER])


@pytest.fixture
def moments() -> Moments:
    return Moments()


@pytest.fixture
def world(tmp_path: Path, moments: Moments) -> TroubledWorld:
    return TroubledWorld(tmp_path, REGIONS, hook=moments)


def region_of(world: World, name: str = HOME) -> Region:
    (region,) = graph_of(world).regions.read([name])
    assert region is not None
    return region


def live(world: World, seconds: float, *schedulers: Services, works: bool = True) -> None:
    """Let time pass for further serving processes of the home region, and for all workers."""
    for _ in range(round(seconds / world.timings.renew_every_s)):
        world.clock.advance(world.timings.renew_every_s)
        world.renew_workers()
        for one in schedulers:
            one.keeper.renew()
            for role in (one.resource_manager, one.reconciler, one.mender, one.scheduler):
                role.tick()
        while works and home(world).workers[0].work():
            pass
        world.woken.clear()


def retire(world: World) -> None:
    """Take the world's own serving process of the home region out."""
    home(world).services.keeper.surrender()
    world.woken.clear()


def starts(world: World, runs: Sequence[Run]) -> Counter[str]:
    return Counter(
        entry.kind.value
        for run in runs
        for task in graph_of(world).tasks.of_run(run.id)
        for entry in task.history
        if entry.kind in {EventKind.CLAIMED, EventKind.STARTED, EventKind.LOST}
    )


def test_clk_004_who_slept_for_ten_leases_looks_at_its_lease_first_and_comes_back_as_a_follower(
    world: TroubledWorld,
) -> None:
    """Its clock counts the time asleep. The timekeeper's part is in `test_schedules.py`."""
    calls: list[str] = []

    def noted(point: str, call: partial[Any]) -> Any:
        calls.append(point)
        return call()

    sleeper, other = another(world, Ownership.LEADER, noted), another(world, Ownership.LEADER)
    retire(world)
    sleeper.scheduler.tick()
    assert region_of(world).leader == sleeper.keeper.instance.id
    live(world, 10 * world.timings.lease_s, other)
    runs = [admit(world, CHAIN, f"k{n}") for n in range(3)]
    world.woken.clear()
    calls.clear()

    sleeper.scheduler.notice()
    for role in (sleeper.scheduler, sleeper.reconciler, sleeper.resource_manager):
        role.tick()
    sleeper.cluster_manager.tick()
    assert calls == [], "each looks at the lease before anything else, and does nothing"
    with pytest.raises(Fenced):
        sleeper.keeper.renew()

    again = another(world, Ownership.LEADER)  # its process ends, and is started anew
    assert again.scheduler.tick().dispatched == ()
    assert region_of(world).leader == other.keeper.instance.id
    live(world, 6, again, other)
    assert [state_of(world, run) for run in runs] == [RunState.DONE] * 3
    assert Counter(effects(world)) == {"a": 3, "b": 3, "c": 3}


def test_dbl_004_who_was_cut_off_past_its_lease_renews_nothing_and_stops_at_once(
    world: TroubledWorld,
) -> None:
    first, second = another(world, Ownership.LEADER), another(world, Ownership.LEADER)
    retire(world)
    runs = [admit(world, CHAIN, f"k{n}") for n in range(3)]
    assert first.scheduler.tick().dispatched
    live(world, world.timings.lease_s + 4, second)  # the first is cut off: nothing of it arrives
    assert region_of(world).leader == second.keeper.instance.id
    before = graph_of(world).instances.read([first.keeper.instance.id])

    with pytest.raises(Fenced):
        first.keeper.renew()

    assert not first.keeper.may_act()
    runs.append(admit(world, CHAIN, "late"))
    first.scheduler.notice()
    assert first.scheduler.tick().dispatched == ()
    assert first.resource_manager.tick().moved == ()
    assert graph_of(world).instances.read([first.keeper.instance.id]) == before
    live(world, 6, second)
    assert Counter(effects(world)) == {"a": 4, "b": 4, "c": 4}


def test_dbl_004_a_renewal_is_conditional_on_the_incarnation_and_its_beat(world: World) -> None:
    keeper = home(world).services.keeper
    mine = keeper.instance
    keeper.renew()

    (late,) = graph_of(world).instances.write([(mine, renewed(mine, (), AT))])

    assert late.result.value == "conflict"


@MODES
def test_dbl_010_the_one_that_comes_back_later_takes_nothing_over_again(
    world: World, mode: Ownership
) -> None:
    first, second = another(world, mode), another(world, mode)
    retire(world)
    runs = [admit(world, CHAIN, f"r{n}") for n in range(3)]
    live(world, 1, first, second, works=False)
    epoch = region_of(world).leader_epoch
    for one in (first, second):
        one.keeper.surrender()

    adopts = another(world, mode)
    live(world, 1, adopts)
    comes_later = another(world, mode)
    live(world, 8, adopts, comes_later)

    assert [state_of(world, run) for run in runs] == [RunState.DONE] * 3
    assert region_of(world).leader_epoch == epoch + (mode is Ownership.LEADER)
    if mode is Ownership.LEADER:
        assert region_of(world).leader == adopts.keeper.instance.id
    assert Counter(effects(world)) == {"a": 3, "b": 3, "c": 3}
    tasks = [task for run in runs for task in graph_of(world).tasks.of_run(run.id)]
    assert {(task.attempt, task.losses) for task in tasks} == {(1, 0)}


def test_dbl_022_a_scheduler_cut_off_from_the_store_dispatches_nothing_further(
    world: TroubledWorld, moments: Moments
) -> None:
    """Step a takes 6 s; from 2 s on the first scheduler reaches the broker only, for 10 s."""
    published: list[tuple[str, float, str]] = []
    cut: list[str] = []

    def of(who: str) -> Any:
        def hook(point: str, call: partial[Any]) -> Any:
            if who in cut and not point.startswith(("queue.", "backlog.", "metadata.")):
                raise Unavailable(dependency="graph store", detail="cut off")
            if point == "queue.publish":
                published.extend((who, world.clock.seconds, m.task) for m in call.args[0])
            return call()

        return hook

    retire(world)
    first = another(world, Ownership.LEADER, of("first"))
    second = another(world, Ownership.LEADER, of("second"))
    run = admit(world, CHAIN)
    assert first.scheduler.tick().dispatched
    deadlines: list[float] = []

    def six_seconds() -> None:
        for tenth in range(160):
            world.clock.advance(0.1)
            if tenth == 20:
                cut.append("first")
                deadlines.append(first.keeper.deadline)
            if tenth == 120:
                cut.clear()
            if tenth % 10 == 0:
                world.renew_workers()
                second.keeper.renew()
                second.resource_manager.tick()
                with suppress(Fenced, Unavailable, OutcomeUnknown):
                    first.keeper.renew()
            for one in (first, second):
                one.scheduler.notice()
                with suppress(Unavailable, OutcomeUnknown):
                    one.scheduler.tick()

    world.log.during["a"] = once(six_seconds)
    assert home(world).workers[0].work()
    live(world, 6, second)

    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == {"a": 1, "b": 1, "c": 1}
    assert Counter(task for _, _, task in published) == dict.fromkeys(
        (t.id for t in graph_of(world).tasks.of_run(run.id)), 1
    )
    late = [at for who, at, _ in published if who == "first" and at >= deadlines[0]]
    assert late == []


def test_dbl_022_who_was_paused_between_claim_and_dispatch_sends_nothing_after_its_deadline(
    world: World, moments: Moments
) -> None:
    run = admit(world, a_plan([spec("a")]))
    sent: list[str] = []
    moments.after["tasks.write"] = lambda *_: world.clock.advance(world.timings.ttl_s)
    moments.before["queue.publish"] = lambda call: sent.extend(m.task for m in call.args[0])

    assert home(world).services.scheduler.tick().dispatched == ()

    moments.after.clear()
    assert sent == []
    assert not home(world).services.keeper.may_act()
    world.pass_time(world.timings.dispatch_s + 3)
    assert state_of(world, run) is RunState.DONE
    assert effects(world) == ["a"]
    assert task_of(world, run, "a").retries_used == 0


@MODES
def test_dbl_024_a_further_scheduler_takes_nothing_from_the_one_that_works(
    world: World, mode: Ownership
) -> None:
    first = another(world, mode)
    retire(world)
    runs = [admit(world, CHAIN, f"r{n}") for n in range(3)]
    live(world, 1, first, works=False)
    tasks = [task_of(world, run, "a") for run in runs]
    assert {task.state for task in tasks} == {TaskState.CLAIMED}
    epoch = region_of(world).leader_epoch

    new = another(world, mode)
    live(world, 4, first, new, works=False)

    assert [task_of(world, run, "a") for run in runs] == tasks, "not even their documents moved"
    assert region_of(world).leader_epoch == epoch
    if mode is Ownership.LEADER:
        assert region_of(world).leader == first.keeper.instance.id
    live(world, 6, first, new)
    assert [state_of(world, run) for run in runs] == [RunState.DONE] * 3
    assert starts(world, runs) == {"claimed": 9, "started": 9}


def test_stk_019_an_owner_that_only_reads_learns_within_a_lease_that_another_leads(
    world: World,
) -> None:
    """It was asleep; there is no work at all by which it could find out."""
    calls: list[str] = []

    def noted(point: str, call: partial[Any]) -> Any:
        calls.append(point)
        return call()

    old, new = another(world, Ownership.LEADER, noted), another(world, Ownership.LEADER)
    retire(world)
    old.scheduler.tick()
    assert region_of(world).leader == old.keeper.instance.id
    live(world, world.timings.lease_s + 4, new)  # the old one does nothing
    assert region_of(world).leader == new.keeper.instance.id

    with pytest.raises(Fenced):
        old.keeper.renew()

    assert not old.keeper.may_act()
    admit(world, CHAIN)
    world.woken.clear()
    old.scheduler.notice()
    calls.clear()
    assert old.scheduler.tick().dispatched == ()
    assert calls == [], "it asks the store nothing more, not even by reads"


def test_stk_019_a_bucket_that_moved_is_dropped_by_the_next_look(world: World) -> None:
    """With shared ownership the part of a scheduler shrinks with the tick after another came."""
    old = another(world, Ownership.RUN)
    retire(world)
    runs = [admit(world, a_plan([spec("a")]), f"k{n}") for n in range(24)]
    home(world).services.mender.tick()

    another(world, Ownership.RUN)  # comes, and promotes nothing
    promoted = [old.scheduler.tick().dispatched]
    while promoted[-1]:
        while home(world).workers[0].work():
            pass
        promoted.append(old.scheduler.tick().dispatched)

    done = Counter(state_of(world, run) for run in runs)
    assert 0 < done[RunState.DONE] < 24, "the other's part is left to the other"


def accepted(world: World, count: int, region: str = HOME) -> None:
    """Let a submitter accept `count` admissions, do nothing more and never beat again."""
    dead = another(world, Ownership.NONE, region=region).keeper.instance.id
    ports = world.regions[region].ports.through(dying_after("admissions.insert"))
    saga = AdmissionSaga(region, ports.graph, ports.metadata, settler(ports, dead))
    quotas = Quotas(ports.graph, Quota(), ports.clock)
    intake = Intake(ports.graph, saga, dead, ports.clock, ports.ids, quotas)
    plan = a_plan(
        [spec("a", region, allowed_regions=(region,))], home_region=region, regions=(region,)
    )
    for n in range(count):
        with pytest.raises(Crash):
            intake.admit(plan, f"k{n}")


def dying_after(point: str) -> Any:
    def hook(called: str, call: partial[Any]) -> Any:
        done = call()
        if called == point:
            raise Crash(point)
        return done

    return hook


def observe(world: TroubledWorld, seconds: float) -> dict[str, list[Run]]:
    """Let the serving processes watch and take over; return what each says it has published."""
    told: dict[str, list[Run]] = {name: [] for name in world.regions}
    for _ in range(round(seconds / world.timings.renew_every_s)):
        world.clock.advance(world.timings.renew_every_s)
        for name, region in world.regions.items():
            world.perform(region, region.services.keeper.renew)
            world.perform(region, region.services.resource_manager.tick)
            told[name] += world.perform(region, region.services.cluster_manager.tick) or []
    return told


def test_stk_024_what_a_cluster_manager_writes_after_a_long_pause_is_refused(
    world: TroubledWorld,
) -> None:
    leading = min(world.regions, key=lambda n: world.regions[n].services.keeper.instance.id)
    old = world.regions[leading]
    accepted(world, 4, leading)
    with world.paused(*world.regions.values()):
        observe(world, 0)
    writes: list[str] = []
    paused: list[bool] = []
    others: list[Run] = []

    def pause(point: str, call: partial[Any]) -> Any:
        is_write = point.rpartition(".")[2] in {"write", "insert", "insert_edges"}
        if is_write and not paused:
            paused.append(True)
            with world.paused(old):
                told = observe(world, 3 * world.timings.lease_s)
            others.extend(run for runs in told.values() for run in runs)
        answer = call()
        if is_write:
            writes.extend(f"{point}: {one.result}" for one in answer)
        return answer

    for _ in range(6):  # until it sees that the submitter is dead
        world.clock.advance(world.timings.renew_every_s)
        world.renew()
        old.services.resource_manager.tick()
    ports = old.ports.through(pause)
    saga = AdmissionSaga(leading, ports.graph, ports.metadata, settler(ports, "old"))
    manager = ClusterManager(
        ports.graph, saga, old.services.keeper, world.timings, world.clocks[leading]
    )
    late = manager.tick()

    assert len(others) == 4
    assert late == []
    assert writes == ["admissions.write: conflict"], "and it looked at no further one"
    found = graph_of(world).admissions.recent(9)
    assert {(one.state, one.epoch) for one in found} == {(AdmissionState.DONE, 2)}
    assert {one.instance for one in found}.isdisjoint({old.services.keeper.instance.id})
    with pytest.raises(Fenced):
        old.services.keeper.renew()
    assert old.services.cluster_manager.tick() == []


MANAGERS = ("cm1", "cm2", "cm3", "cm4")


def test_lst_006_one_side_of_a_partition_hands_admissions_on_and_all_it_said_stands(
    tmp_path: Path,
) -> None:
    """The third is cut off; meanwhile the fourth joins, and the first leaves."""
    world = TroubledWorld(tmp_path, MANAGERS)
    cm1, cm4 = world.regions["cm1"], world.regions["cm4"]
    with world.paused(cm4):
        observe(world, world.timings.lease_s + 4)  # the fourth is not there yet
        accepted(world, 6, "cm2")
        observe(world, world.timings.ttl_s - 2)
    with world.cut("cm3"), world.paused(cm1):
        before = cm4.services.keeper.instance.id
        told = observe(world, 2 * world.timings.lease_s)
        joined = cm4.services.keeper.instance.id
    healed = observe(world, world.timings.lease_s + 4)

    assert joined != before, "it came as a new incarnation"
    assert told["cm3"] == []
    acknowledged = [run.id for runs in (*told.values(), *healed.values()) for run in runs]
    assert len(acknowledged) == len(set(acknowledged)) == 6
    found = graph_of(world).admissions.recent(9)
    assert {(one.state, one.epoch) for one in found} == {(AdmissionState.DONE, 2)}
    by = {one.instance for one in found}
    assert by <= {world.regions[name].services.keeper.instance.id for name in ("cm2", "cm4")}
    assert {run.id for run in graph_of(world).runs.recent(9)} == set(acknowledged)
    world.pass_time(world.timings.lease_s)
    assert Counter(effects(world)) == {"a": 6}
