"""Cancel: what is cancelled, what is stopped, what stands; whoever dies on the way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.ids import ClaimId, Incarnation, ReceiptId
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import Exit, ExitKind, Holder, LockNeed, OnLoss, RetryPolicy
from region_scheduler.domain.transitions import Stamp, claim, lose, start
from region_scheduler.errors import (
    InvalidInput,
    LostRace,
    OutcomeUnknown,
    Unavailable,
)
from region_scheduler.operations.cancel import (
    cancel_run,
    reprioritise_task,
)
from region_scheduler.operations.runs import resume_run
from region_scheduler.scheduling.settings import SchedulerSettings
from region_scheduler.simulation.faults import Fault, Faults, FaultyWorld, Kind
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import World
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
from tests.simulation.cancels import (
    cancelled,
    plainly,
    run_of,
    states,
    task_cancelled,
    until_over,
    zone_in,
)
from tests.simulation.scenarios import HOME, LOCK, ZONE, a_plan, graph_of, spec
from tests.unit.domain.samples import AT

pytestmark = pytest.mark.usefixtures("judged")

ONCE = RetryPolicy(limit=0)

# -- a run in all states at once


def mixed(world: World) -> Run:
    """Bring a run to where its tasks are in every state but running, as their names say."""
    zone_in(world)
    tasks = [
        spec("done", locks=(LockNeed(LOCK),)),
        spec("failed", retry=ONCE),
        spec("awaiting", runner="approval"),
        spec("pending"),
        spec("claimed", locks=(LockNeed(LOCK),)),
        spec("ready", "us-east"),
        spec("doubt", "us-east", on_loss=OnLoss.INSPECT),
    ]
    plan = a_plan(tasks, "done>claimed", "awaiting>pending", zone=ZONE, zone_type="aws-pci_dss")
    world.log.fails["failed"] = 1
    run = admit(world, plan)
    scheduler, (worker,) = home(world).services.scheduler, home(world).workers
    scheduler.tick()
    while worker.work():
        pass
    scheduler.tick()
    gone = Incarnation("gone:1")
    holder = Holder(gone, ReceiptId("r"))
    id_ = task_of(world, run, "doubt").id
    store = graph_of(world).tasks
    taken = commit_one(
        store,
        Change(id_, partial(claim, claim_id=ClaimId("c"), scheduler=gone, region="us-east", at=AT)),
    )
    begin = partial(start, token=taken.token, holder=holder, at=AT)
    begun = commit_one(store, Change(id_, begin))
    take = partial(
        lose, token=begun.token, holder=begun.holder, reason="gone", stamp=Stamp("test", AT)
    )
    commit_one(store, Change(id_, take))
    found = states(world, run)
    assert found.pop("doubt") is TaskState.IN_DOUBT
    assert {name: state.value for name, state in found.items()} == {name: name for name in found}
    return run


def wrong_with(world: World, run: Run) -> list[str]:
    """Return what is wrong once a run of all states was cancelled and all is at rest."""
    found = []
    after = run_of(world, run)
    if after.state is not RunState.CANCELLED or not after.reason.startswith("cancelled by alice"):
        found.append(f"the run is {after.state}: {after.reason!r}")
    wanted = dict.fromkeys(states(world, run), TaskState.CANCELLED)
    wanted |= {"done": TaskState.DONE, "failed": TaskState.FAILED}
    found += [f"{n} is {s}" for n, s in states(world, run).items() if s is not wanted[n]]
    if sorted(effects(world)) != ["done", "failed"]:
        found.append(f"ran {effects(world)}")
    if not task_of(world, run, "doubt").is_inspect:
        found.append("the doubt is forgotten")
    taken = [slot.resource for slot in graph_of(world).slots.taken()]
    held = [zone.name for zone in graph_of(world).zones.held()]
    return [*found, *(f"{name} is still held" for name in [*taken, *held])]


def test_nothing_of_a_cancelled_run_starts_and_what_it_held_is_free(world: World) -> None:
    run = mixed(world)

    after, moved = cancelled(world, run)

    assert after.state is RunState.CANCELLED, "nothing runs: it ends at once"
    assert after.ended_at is not None
    names = sorted(task.spec.name for task in moved)
    assert names == ["awaiting", "claimed", "doubt", "failed", "pending", "ready"]
    world.fast_path()
    world.pass_time(3)
    assert wrong_with(world, run) == []
    (entry, *others) = graph_of(world).audit.recent(9)
    assert (entry.actor, entry.action, entry.thing, entry.why) == (
        "alice",
        "runs.cancel",
        run.id,
        "not needed",
    )
    assert others == []


def test_a_run_that_is_cancelled_twice_is_cancelled_once(world: World) -> None:
    run = mixed(world)
    first, _ = cancelled(world, run)

    again, moved = cancelled(world, run)

    assert (again, moved) == (first, [])
    assert len(graph_of(world).audit.recent(9)) == 1


def with_fault(directory: Path, fault: Fault | None) -> tuple[Faults, list[str]]:
    """Cancel a run of all states with one fault in the call; return what is wrong at rest."""
    directory.mkdir(exist_ok=True)
    world = FaultyWorld(directory, (HOME, "us-east"), fault)
    run = mixed(world)
    graph, settler = home(world).ports.graph, home(world).services.settler
    entries = auditor(world)
    call = partial(cancel_run, graph, settler, entries, world.clock, run_of(world, run))
    world.faults.is_armed = True
    try:
        call()
    except Crash:
        world.restart(home(world))
    except (Unavailable, OutcomeUnknown):
        call()  # a person asks again
    world.faults.is_armed = False
    if run_of(world, run).state is RunState.RUNNING:  # it died before it began
        cancelled(world, run)
    until_over(world, run)
    return world.faults, wrong_with(world, run)


@pytest.mark.parametrize(
    "kinds",
    [{Kind.CRASH_AFTER}, pytest.param(set(Kind) - {Kind.CRASH_AFTER}, marks=pytest.mark.slow)],
    ids=["dies after it", "anything else"],
)
def test_whatever_breaks_off_a_cancel_it_comes_to_its_end(tmp_path: Path, kinds: set[Kind]) -> None:
    faults, problems = with_fault(tmp_path / "survey", None)
    assert problems == []
    points = {fault.point for fault in faults.all()}
    assert points >= {"runs.write", "tasks.write", "slots.write", "zones.write"}
    harmful = []
    for fault in (fault for fault in faults.all() if fault.kind in kinds):
        met, problems = with_fault(tmp_path / str(fault), fault)
        problems += [] if met.has_struck else ["it never happened"]
        harmful += [f"{fault}: {problem}" for problem in problems]

    assert harmful == []


# -- running tasks


@pytest.mark.parametrize(
    ("ends", "task_state", "run_state"),
    [
        (ExitKind.CANCELLED, TaskState.CANCELLED, RunState.CANCELLED),
        (ExitKind.RETRYABLE, TaskState.CANCELLED, RunState.CANCELLED),
        (ExitKind.IN_DOUBT, TaskState.CANCELLED, RunState.CANCELLED),
        (ExitKind.PERMANENT, TaskState.FAILED, RunState.CANCELLED),
        (ExitKind.OK, TaskState.DONE, RunState.DONE),
    ],
)
def test_a_running_task_is_stopped_by_its_holder_and_an_end_that_comes_first_stands(
    world: World, ends: ExitKind, task_state: TaskState, run_state: RunState
) -> None:
    seen: list[str] = []

    def while_running(should_stop: Callable[[], str]) -> Exit:
        after, (asked,) = cancelled(world, run)
        seen.append(after.state)
        assert (asked.state, after.ended_at) == (TaskState.RUNNING, None)
        world.clock.advance(world.timings.renew_every_s)
        seen.append(should_stop())
        return Exit(kind=ends)

    world.log.during["a"] = while_running
    zone_in(world)
    run = admit(world, a_plan([spec("a")], zone=ZONE, zone_type="aws-pci_dss"))
    world.fast_path()

    assert seen == [RunState.CANCELLING, "cancel"]
    task = task_of(world, run, "a")
    assert (task.state, task.holder) == (task_state, None)
    assert task.is_inspect is (ends is ExitKind.IN_DOUBT)
    assert state_of(world, run) is run_state
    assert graph_of(world).zones.held() == []


def test_the_doubt_of_a_cancelled_task_whose_holder_was_lost_stays_recorded(world: World) -> None:
    run = admit(world, a_plan([spec("a", on_loss=OnLoss.INSPECT), spec("b")], "a>b"))
    home(world).services.scheduler.tick()
    message = home(world).broker.take()
    assert message is not None
    dead = Holder(Incarnation("worker.eu-west:gone"), ReceiptId("r"))
    begin = partial(start, token=message.token, holder=dead, at=AT)
    commit_one(graph_of(world).tasks, Change(message.task, begin))

    waiting, _ = cancelled(world, run)
    assert waiting.state is RunState.CANCELLING
    assert until_over(world, run).state is RunState.CANCELLED
    assert (task_of(world, run, "a").state, effects(world)) == (TaskState.CANCELLED, [])

    resumed(world, run)
    world.fast_path()
    assert state_of(world, run) is RunState.DONE
    assert [effect.name for effect in world.log.inspected] == ["a"], "looked at before it ran"


# -- rounds


@pytest.mark.parametrize("point", ["runs.write", "tasks.of_run", "runs.read"])
def test_who_opens_a_round_late_does_not_bring_a_cancelled_run_back(
    world: World, point: str
) -> None:
    """The opener stands still on its way; meanwhile the run is cancelled."""
    world.log.fails["a"] = 1
    run = admit(world, a_plan([spec("a", retry=ONCE), spec("b")], "a>b"))
    world.fast_path()
    assert state_of(world, run) is RunState.FAILED
    graph, settler = plainly(world)
    calls: list[str] = []
    stood: list[str] = []

    def cancel_after(at: str, call: partial[Any]) -> Any:
        done = call()
        calls.append(at)
        is_there = "tasks.of_run" in calls if point == "runs.read" else at == point
        if at == point and is_there and not stood:
            stood.append(at)
            found = run_of(world, run)
            after, _ = cancel_run(graph, settler, auditor(world), world.clock, found)
            assert after.state is RunState.CANCELLED
        return done

    late = home(world).ports.through(cancel_after).graph
    resume_run(late, settler, auditor(world), world.clock, run.id)
    world.fast_path()
    world.pass_time(4)

    assert stood == [point]
    assert state_of(world, run) is RunState.CANCELLED
    assert states(world, run) == {"a": TaskState.FAILED, "b": TaskState.CANCELLED}
    assert effects(world) == ["a"]

    resumed(world, run)
    world.fast_path()
    assert state_of(world, run) is RunState.DONE, "and it can be resumed after that"


def test_a_run_that_waits_for_its_zone_is_cancelled_and_never_takes_it(world: World) -> None:
    zone_in(world)
    plan = a_plan([spec("ask", runner="approval")], zone=ZONE, zone_type="aws-pci_dss")
    holding, waiting = admit(world, plan, "one"), admit(world, plan, "two")
    world.fast_path()

    after, _ = cancelled(world, waiting)
    world.pass_time(2)

    assert after.state is RunState.CANCELLED
    (zone,) = graph_of(world).zones.read([ZONE])
    assert zone is not None
    assert zone.active_run == holding.id


def test_the_next_run_of_the_zone_starts_when_one_is_cancelled(world: World) -> None:
    zone_in(world)
    plan = a_plan([spec("ask", runner="approval")], zone=ZONE, zone_type="aws-pci_dss")
    holding, waiting = admit(world, plan, "one"), admit(world, plan, "two")
    world.fast_path()

    cancelled(world, holding)
    world.fast_path()

    assert task_of(world, waiting, "ask").state is TaskState.AWAITING


def test_what_has_ended_is_not_cancelled(world: World) -> None:
    run = admit(world, a_plan([spec("a")]))
    world.fast_path()

    with pytest.raises(InvalidInput, match="it is done"):
        cancelled(world, run)
    with pytest.raises(InvalidInput, match="it is done"):
        task_cancelled(world, run, "a")
    assert graph_of(world).audit.recent(9) == []


# -- one task


def test_a_cancelled_task_blocks_as_a_failed_one_and_other_branches_go_on(world: World) -> None:
    plan = a_plan([spec("ask", runner="approval"), spec("after"), spec("far", "us-east")],
                  "ask>after")  # fmt: skip
    run = admit(world, plan)
    home(world).services.scheduler.tick()
    home(world).workers[0].work()

    task = task_cancelled(world, run, "ask")

    assert task.reason == "cancelled by alice"
    assert state_of(world, run) is RunState.RUNNING
    world.fast_path()
    assert state_of(world, run) is RunState.FAILED
    assert states(world, run) == {
        "ask": TaskState.CANCELLED,
        "after": TaskState.PENDING,
        "far": TaskState.DONE,
    }
    resumed(world, run)
    world.fast_path()
    answered(world, task_of(world, run, "ask"), is_yes=True)
    world.fast_path()
    assert state_of(world, run) is RunState.DONE


def test_a_cancelled_task_that_runs_is_stopped_and_only_that_one(world: World) -> None:
    def while_running(should_stop: Callable[[], str]) -> Exit:
        assert task_cancelled(world, run, "a").stop_requested is not None
        world.clock.advance(world.timings.renew_every_s)
        assert should_stop() == "cancel"
        return Exit(kind=ExitKind.CANCELLED)

    world.log.during["a"] = while_running
    run = admit(world, a_plan([spec("a"), spec("b")]))
    world.fast_path()

    assert states(world, run) == {"a": TaskState.CANCELLED, "b": TaskState.DONE}
    assert state_of(world, run) is RunState.FAILED


def test_a_task_is_not_cancelled_while_a_round_is_being_opened(world: World) -> None:
    zone_in(world)
    world.log.fails["a"] = 1
    more: dict[str, Any] = {"zone": ZONE, "zone_type": "aws-pci_dss"}
    run = admit(world, a_plan([spec("a", retry=ONCE), spec("b")], "a>b", **more), "one")
    world.fast_path()
    admit(world, a_plan([spec("ask", runner="approval")], **more), "two")
    waiting, _ = resumed(world, run)
    assert waiting.state is RunState.ADMITTED

    with pytest.raises(LostRace, match="being opened"):
        task_cancelled(world, run, "b")
    after, _ = cancelled(world, run)
    assert after.state is RunState.CANCELLED


# -- sooner


def test_a_task_with_a_higher_priority_is_promoted_first_from_the_next_look_on(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, (HOME,), slots=1)
    run = admit(world, a_plan([spec(name) for name in "abcd"]))
    home(world).services.scheduler.tick()  # one per slot and one ahead are in the queue now
    (last, *_) = sorted(n for n, s in states(world, run).items() if s is TaskState.READY)[-1:]
    region = home(world)
    graph, settler = region.ports.graph, region.services.settler

    after = reprioritise_task(
        graph, settler, auditor(world), task_of(world, run, last), 7, "the customer waits"
    )

    assert after.priority_now == 7
    world.clock.advance(SchedulerSettings(region=HOME).look_every_s)
    world.renew()
    before = effects(world)
    claimed = [n for n, s in states(world, run).items() if s is TaskState.CLAIMED]
    world.fast_path()
    rest = effects(world)[len(before) + len(claimed) :]
    assert rest[0] == last
    assert len(rest) > 1
    (entry,) = graph.audit.recent(9)
    assert (entry.action, entry.detail, entry.why) == (
        "tasks.reprioritise",
        "0 -> 7",
        "the customer waits",
    )
    with pytest.raises(InvalidInput, match="it is done"):
        reprioritise_task(graph, settler, auditor(world), task_of(world, run, last), 1)
