"""Retry and clear: what is wanted is done once, whoever dies on the way, and nothing else moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.ids import Incarnation, ReceiptId
from region_scheduler.domain.run import Run, cancelling
from region_scheduler.domain.states import RUN_ENDED, RunState, TaskState
from region_scheduler.domain.task import (
    EventKind,
    Exit,
    ExitKind,
    Holder,
    OnLoss,
    RetryPolicy,
    Task,
)
from region_scheduler.domain.transitions import start
from region_scheduler.errors import InvalidInput, LostRace
from region_scheduler.operations.rework import clear_task, retry_task
from region_scheduler.simulation.faults import Fault, Faults, FaultyWorld
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import World
from tests.simulation.acts import (
    admit,
    answered,
    auditor,
    effects,
    home,
    state_of,
    task_of,
)
from tests.simulation.scenarios import HOME, a_plan, a_zone, graph_of, spec
from tests.unit.domain.samples import AT

ONCE = RetryPolicy(limit=0)
#    a -> b -> d -> e,  a -> c -> d
DIAMOND = a_plan(
    [spec("a"), spec("b", "us-east"), spec("c"), spec("d"), spec("e")],
    "a>b", "a>c", "b>d", "c>d", "d>e",
)  # fmt: skip


def cleared(
    world: World, run: Run, name: str, *, is_deep: bool = True, graph: Any = None
) -> tuple[Run, list[Task]]:
    region = home(world)
    stores = graph or region.ports.graph
    settler, task = region.services.settler, task_of(world, run, name)
    return clear_task(stores, settler, auditor(world), world.clock, task, is_deep=is_deep)


def retried(world: World, run: Run, name: str) -> tuple[Run, list[Task]]:
    region = home(world)
    task = task_of(world, run, name)
    return retry_task(
        region.ports.graph, region.services.settler, auditor(world), world.clock, task
    )


def submissions(world: World, run: Run) -> dict[str, int]:
    return {t.spec.name: t.submission for t in graph_of(world).tasks.of_run(run.id)}


def names(moved: list[Task]) -> list[str]:
    return [task.spec.name for task in moved]


# -- retry


def test_a_failed_task_of_an_ended_run_is_retried_alone_in_the_next_round(world: World) -> None:
    world.log.fails |= {"a": 1, "b": 1}
    run = admit(world, a_plan([spec("a", retry=ONCE), spec("b", retry=ONCE), spec("c")], "a>c"))
    world.fast_path()
    assert state_of(world, run) is RunState.FAILED

    again, moved = retried(world, run, "a")

    assert (again.state, again.round, names(moved)) == (RunState.RUNNING, 2, ["a"])
    world.fast_path()
    assert state_of(world, run) is RunState.FAILED, "b was not retried"
    assert Counter(effects(world)) == {"a": 2, "b": 1, "c": 1}
    assert task_of(world, run, "a").retries_used == 0
    (entry, *_) = graph_of(world).audit.recent(9)
    assert (entry.actor, entry.action, entry.thing) == ("alice", "tasks.retry", moved[0].id)


def test_a_failed_task_of_a_run_that_goes_on_is_retried_in_the_same_round(world: World) -> None:
    world.log.fails["a"] = 1
    run = admit(world, a_plan([spec("a", retry=ONCE), spec("ask", runner="approval")]))
    world.fast_path()
    assert task_of(world, run, "a").state is TaskState.FAILED

    again, _ = retried(world, run, "a")
    world.fast_path()

    assert (again.round, again.rework) == (1, None)
    assert task_of(world, run, "a").state is TaskState.DONE


def test_only_what_failed_or_was_cancelled_is_retried(world: World) -> None:
    run = admit(world, a_plan([spec("a")]))
    world.fast_path()

    with pytest.raises(InvalidInput, match="tasks clear"):
        retried(world, run, "a")


def test_a_run_that_is_being_cancelled_takes_no_wish(world: World) -> None:
    run = admit(world, a_plan([spec("a", runner="approval")]))
    world.fast_path()
    commit_one(graph_of(world).runs, Change(run.id, partial(cancelling, reason="alice")))

    with pytest.raises(LostRace):
        cleared(world, run, "a")


# -- clear


def test_a_cleared_task_and_everything_after_it_run_again_and_nothing_else(world: World) -> None:
    run = admit(world, DIAMOND)
    world.fast_path()

    again, moved = cleared(world, run, "b")

    assert names(moved) == ["b", "d", "e"], "itself first, then the nearest"
    assert (again.state, again.round) == (RunState.RUNNING, 2)
    world.fast_path()
    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == {"a": 1, "b": 2, "c": 1, "d": 2, "e": 2}
    assert submissions(world, run) == {"a": 1, "b": 2, "c": 1, "d": 2, "e": 2}
    done = task_of(world, run, "d")
    assert [e.kind for e in done.history][:2] == [EventKind.CLEARED, EventKind.UNLOCKED]
    assert done.attempt == 1


def test_what_has_ended_after_it_stays_by_choice(world: World) -> None:
    run = admit(world, DIAMOND)
    world.fast_path()

    _, moved = cleared(world, run, "a", is_deep=False)
    world.fast_path()

    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == {"a": 2, "b": 1, "c": 1, "d": 1, "e": 1}
    assert moved[0].spec.name == "a"


def test_what_is_ready_or_claimed_after_it_goes_back_and_waits(world: World) -> None:
    run = admit(world, a_plan([spec("a"), spec("b"), spec("c", "us-east")], "a>b", "a>c"))
    home(world).services.scheduler.tick()
    (worker,) = home(world).workers
    worker.work()  # a is done; b and c are ready
    home(world).services.scheduler.tick()
    states = {name: task_of(world, run, name).state for name in "abc"}
    assert states == {"a": TaskState.DONE, "b": TaskState.CLAIMED, "c": TaskState.READY}

    cleared(world, run, "a")

    held = task_of(world, run, "b")
    assert (held.state, held.holder, held.token.claim_id) == (TaskState.PENDING, None, "")
    assert task_of(world, run, "a").state is TaskState.READY, "nothing keeps it back"
    world.fast_path()
    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == {"a": 2, "b": 1, "c": 1}, "its old message starts nothing"


@pytest.mark.parametrize("ends", [ExitKind.CANCELLED, ExitKind.OK, ExitKind.PERMANENT])
def test_a_running_task_is_stopped_and_runs_again_whatever_it_came_to(
    world: World, ends: ExitKind
) -> None:
    """Cases: a cleared task that runs is fenced from its old end, and starts anew (STK-026)."""
    seen: list[str] = []

    def while_running(should_stop: Callable[[], str]) -> Exit | None:
        if seen:
            return None
        cleared(world, run, "a")
        world.clock.advance(world.timings.renew_every_s)
        seen.append(should_stop())
        return Exit(kind=ends)

    world.log.during["a"] = while_running
    run = admit(world, a_plan([spec("a"), spec("b")], "a>b"))
    world.fast_path()
    world.renew()

    assert seen == ["clear"]
    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == {"a": 2, "b": 1}
    again = task_of(world, run, "a")
    assert (again.submission, again.attempt, again.is_inspect) == (2, 1, False)


def test_the_doubt_of_a_cleared_task_whose_holder_is_lost_is_kept(world: World) -> None:
    run = admit(world, a_plan([spec("a", on_loss=OnLoss.INSPECT)]))
    home(world).services.scheduler.tick()
    message = home(world).broker.take()
    assert message is not None
    dead = Holder(Incarnation("worker.eu-west:gone"), ReceiptId("r"))
    begin = partial(start, token=message.token, holder=dead, at=AT)
    commit_one(graph_of(world).tasks, Change(message.task, begin))

    cleared(world, run, "a")
    assert task_of(world, run, "a").state is TaskState.RUNNING, "only its holder lets go of it"
    world.pass_time(world.timings.lease_s + 3)

    assert state_of(world, run) is RunState.DONE
    assert [e.name for e in world.log.inspected] == ["a"]
    assert task_of(world, run, "a").submission == 2


def test_an_unlock_that_read_before_the_clear_has_to_read_again(world: World) -> None:
    run = admit(world, a_plan([spec("ask", runner="approval"), spec("b")], "ask>b"))
    world.fast_path()
    before = task_of(world, run, "b")

    cleared(world, run, "ask")

    after = task_of(world, run, "b")
    assert after.state is TaskState.PENDING
    assert after.seq > before.seq
    assert after.rev != before.rev


def test_an_answer_given_before_a_clear_is_given_anew_after_it(world: World) -> None:
    run = admit(world, a_plan([spec("ask", runner="approval"), spec("b")], "ask>b"))
    world.fast_path()
    answered(world, task_of(world, run, "ask"), is_yes=True)
    world.fast_path()
    cleared(world, run, "ask")
    world.fast_path()

    assert task_of(world, run, "ask").state is TaskState.AWAITING
    answered(world, task_of(world, run, "ask"), is_yes=True)
    world.fast_path()
    assert state_of(world, run) is RunState.DONE


def test_a_clear_of_an_ended_run_waits_for_the_zone(world: World) -> None:
    zone = a_zone()
    graph_of(world).zones.insert([zone])
    run = admit(world, a_plan([spec("a")], zone=zone.id, zone_type=zone.zone_type), "one")
    world.fast_path()
    blocker = a_plan([spec("ask", runner="approval")], zone=zone.id, zone_type=zone.zone_type)
    other = admit(world, blocker, "two")
    world.fast_path()

    waiting, moved = cleared(world, run, "a")
    assert (waiting.state, moved) == (RunState.ADMITTED, [])
    world.pass_time(2)
    assert task_of(world, run, "a").state is TaskState.DONE
    answered(world, task_of(world, other, "ask"), is_yes=True)
    world.pass_time(3)

    assert state_of(world, run) is RunState.DONE
    assert task_of(world, run, "a").submission == 2


# -- whoever dies on the way


def play(directory: Path, act: str, fault: Fault | None) -> tuple[Faults, list[str]]:
    """Clear or retry in an ended run, with one fault in the call; return what is wrong then."""
    directory.mkdir(exist_ok=True)
    world = FaultyWorld(directory, (HOME,), fault)
    world.log.fails |= {"b": 1, "x": 1} if act == "retry" else {}
    tasks = [spec(name, retry=ONCE) for name in ("a", "b", "c", "d", "x")]
    run = admit(world, a_plan(tasks, "a>b", "b>c", "c>d"))
    world.fast_path()
    region = home(world)
    stores, settler = region.ports.graph, region.services.settler
    task = task_of(world, run, "b")
    wish: Callable[..., Any] = retry_task if act == "retry" else clear_task
    call = partial(wish, stores, settler, auditor(world), world.clock, task)
    world.faults.is_armed = True
    world.insist(region, call)
    world.faults.is_armed = False
    world.fast_path()
    for _ in range(10):
        (now,) = graph_of(world).runs.read([run.id])
        if now is not None and now.state in RUN_ENDED and now.rework is None:
            break
        world.pass_time(world.timings.renew_every_s)
    times = Counter(effects(world))
    wanted = (
        {"a": 1, "b": 2, "c": 1, "d": 1, "x": 1}
        if act == "retry"
        else {"a": 1, "b": 2, "c": 2, "d": 2, "x": 1}
    )
    once = {"a": 1, "b": 1, "x": 1} | ({} if act == "retry" else {"c": 1, "d": 1})
    assert now is not None
    is_untouched = times == once and now.round == 1
    found = [] if times == wanted or is_untouched else [f"ran {dict(times)}"]
    if now.rework is not None:
        found.append("the wish stands still")
    ends = {"retry": RunState.FAILED, "clear": RunState.DONE}
    if now.state is not ends[act]:
        found.append(f"the run is {now.state}")
    return world.faults, found


@pytest.mark.parametrize("act", ["retry", "clear"])
def test_whatever_breaks_off_a_wish_it_is_fulfilled_once_or_was_never_made(
    tmp_path: Path, act: str
) -> None:
    faults, problems = play(tmp_path / "survey", act, None)
    assert problems == []
    assert {fault.point for fault in faults.all()} >= {"runs.write", "tasks.write"}
    harmful: list[str] = []
    for fault in faults.all():
        met, problems = play(tmp_path / str(fault), act, fault)
        problems += [] if met.has_struck else ["it never happened"]
        harmful += [f"{fault}: {problem}" for problem in problems]

    assert harmful == []


def test_a_clear_that_died_after_its_first_task_leaves_nothing_running_on_its_old_end(
    world: World,
) -> None:
    run = admit(world, DIAMOND)
    world.fast_path()

    def die_after(point: str, call: partial[Any]) -> Any:
        done = call()
        if point == "tasks.write":
            raise Crash(point)
        return done

    with pytest.raises(Crash):
        cleared(world, run, "a", graph=home(world).ports.through(die_after).graph)
    assert submissions(world, run) == {"a": 2, "b": 1, "c": 1, "d": 1, "e": 1}
    assert state_of(world, run) is RunState.ADMITTED

    world.pass_time(4)

    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == dict.fromkeys("abcde", 2)
