"""Cancel at every moment of a run, and before a run was published."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.domain.admission import AdmissionState, admission_key
from region_scheduler.domain.ids import Incarnation
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import FINAL, RunState, TaskState
from region_scheduler.domain.task import LockNeed, OnLoss, RetryPolicy
from region_scheduler.errors import (
    IllegalMove,
    InvalidInput,
    LostRace,
)
from region_scheduler.operations.cancel import (
    cancel_admission,
    cancel_run,
    find_cancellable,
)
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import World
from tests.simulation.acts import (
    answered,
    auditor,
    effects,
    home,
    resumed,
)
from tests.simulation.cancels import (
    Moment,
    MomentWorld,
    is_at_rest,
    plainly,
    run_of,
    until_over,
    zone_in,
)
from tests.simulation.scenarios import LOCK, ZONE, a_plan, graph_of, spec

pytestmark = pytest.mark.usefixtures("judged")

EVENTFUL = a_plan(
    [
        spec("a", locks=(LockNeed(LOCK),)),
        spec("b", "us-east", locks=(LockNeed(LOCK),)),
        spec("lost", on_loss=OnLoss.INSPECT),
        spec("again", retry=RetryPolicy(limit=1, delay_s=0.5)),
        spec("ask", runner="approval"),
        spec("end"),
    ],
    "a>ask", "b>ask", "lost>end", "again>end", "ask>end",
    zone=ZONE, zone_type="aws-pci_dss",
)  # fmt: skip


def at_moment(directory: Path, number: int, is_after: bool) -> tuple[Moment, list[str]]:
    """Cancel at one moment of a whole run; return what is wrong when all is at rest."""
    directory.mkdir(exist_ok=True)
    moment = Moment(number, is_after)
    world = MomentWorld(directory, moment)
    zone_in(world)
    world.log.crashes["lost"] = 1
    world.log.fails["again"] = 1
    graph, settler = plainly(world)
    running: set[str] = set()
    effects_before = [0]

    def cancel_now() -> None:
        moment.is_armed = False
        (admission,) = graph.admissions.recent(1)
        found = find_cancellable(graph, admission.run)
        how: Callable[..., Any] = cancel_run if isinstance(found, Run) else cancel_admission
        try:
            how(graph, settler, auditor(world), world.clock, found)
        except (LostRace, InvalidInput):
            return  # it had ended
        running.update(t.spec.name for t in graph.tasks.of_run(admission.run, [TaskState.RUNNING]))
        effects_before[0] = len(world.log.effects)

    moment.act = cancel_now
    moment.is_armed = True
    region = home(world)
    world.insist(region, lambda: region.services.intake.admit(EVENTFUL, "k"))
    (run,) = graph.runs.recent(1)
    world.fast_path()
    world.pass_time(world.timings.lease_s + 3)
    ask = graph.tasks.named(run.id, "ask")
    if ask is not None and ask.state is TaskState.AWAITING:
        answered(world, ask, is_yes=True)
    world.fast_path()
    until_over(world, run)
    return moment, wrong_at_rest(world, run, effects(world)[effects_before[0] :], running)


def wrong_at_rest(world: World, run: Run, later: list[str], running: set[str]) -> list[str]:
    after, tasks = run_of(world, run), graph_of(world).tasks.of_run(run.id)
    found = [] if is_at_rest(world, run) else ["something is still held, or goes on"]
    was_cancelled = any(entry.action.endswith(".cancel") for entry in world_audit(world))
    if after.is_tombstone:
        ran = effects(world)
        return [*found, f"a run that was never published ran {ran}"] if ran else found
    found += [f"{t.spec.name} is {t.state}" for t in tasks if t.state not in FINAL]
    found += [f"{t.spec.name} is held" for t in tasks if t.holder is not None]
    is_complete = all(t.state is TaskState.DONE for t in tasks)
    if after.state is not (RunState.DONE if is_complete else RunState.CANCELLED):
        found.append(f"the run is {after.state}")
    started = set(later) - running
    if was_cancelled and not is_complete and started:
        found.append(f"{started} started after the cancel")
    return found


def world_audit(world: World) -> list[Any]:
    return graph_of(world).audit.recent(9)


@pytest.mark.parametrize(
    ("first", "step"),
    [(2, 6), pytest.param(2, 1, marks=pytest.mark.slow)],
    ids=["some", "all"],
)
def test_a_run_is_cancelled_at_every_moment(tmp_path: Path, first: int, step: int) -> None:
    survey, problems = at_moment(tmp_path / "survey", 0, is_after=False)
    assert (problems, survey.count > 40) == ([], True)
    harmful = []
    for number in range(first, survey.count + 1, step):  # before the first nothing was asked for
        for is_after in (False, True):
            directory = tmp_path / f"{number}{is_after}"
            met, problems = at_moment(directory, number, is_after)
            problems += [] if met.count >= number else ["it never came"]
            harmful += [f"{number} {is_after}: {problem}" for problem in problems]

    assert harmful == []


# -- before it is published


def admitting(directory: Path, number: int, fault_in_cancel: bool) -> tuple[Moment, list[str]]:
    """Let a submitter die after one of its writes, then cancel; return what is wrong at rest."""
    directory.mkdir(exist_ok=True)
    moment = Moment(number, is_after=True)
    world = MomentWorld(directory, moment)
    region, (graph, settler) = home(world), plainly(world)

    def die() -> None:
        moment.is_armed = False
        raise Crash("submitter")

    moment.act = die
    moment.is_armed = True
    plan = a_plan([spec("a"), spec("b", "us-east"), spec("c")], "a>c", "b>c")
    world.insist(region, lambda: region.services.intake.admit(plan, "k"))
    moment.is_armed = False
    (admission,) = graph.admissions.recent(1)
    found = find_cancellable(graph, admission.run)
    how: Callable[..., Any] = cancel_run if isinstance(found, Run) else cancel_admission

    def die_after_tombstone(point: str, call: partial[Any]) -> Any:
        done = call()
        if point == "runs.insert":
            raise Crash(point)
        return done

    stores = region.ports.through(die_after_tombstone).graph if fault_in_cancel else graph
    world.perform(region, lambda: how(stores, settler, auditor(world), world.clock, found))
    world.pass_time(world.timings.lease_s + 3)
    (after,) = graph.runs.recent(9)
    (closed,) = graph.admissions.read([admission.id])
    assert closed is not None
    wrong = [] if after.state is RunState.CANCELLED else [f"the run is {after.state}"]
    wrong += [f"ran {effects(world)}"] if effects(world) else []
    wanted = AdmissionState.CANCELLED if after.is_tombstone else AdmissionState.DONE
    wrong += [] if closed.state is wanted else [f"the admission is {closed.state}"]
    again = region.services.intake.admit(plan, "k")
    wrong += [] if (again.run.id, again.is_repeat) == (after.id, True) else ["admitted anew"]
    world.pass_time(3)
    wrong += [f"came to life: {effects(world)}"] if effects(world) else []
    return moment, wrong


@pytest.mark.parametrize("fault_in_cancel", [False, True], ids=["whole", "canceller dies"])
def test_a_cancelled_admission_does_not_come_back_to_life(
    tmp_path: Path, fault_in_cancel: bool
) -> None:
    survey, _ = admitting(tmp_path / "survey", 0, fault_in_cancel=False)
    harmful: list[str] = []
    for number in range(1, survey.count + 1):
        _, problems = admitting(tmp_path / str(number), number, fault_in_cancel)
        harmful += [f"{number}: {problem}" for problem in problems]

    assert survey.count >= 5
    assert harmful == []


def test_what_was_cancelled_before_it_was_published_cannot_be_resumed(world: World) -> None:
    graph, settler = plainly(world)

    def die_after_accepting(point: str, call: partial[Any]) -> Any:
        done = call()
        if point == "admissions.insert":
            raise Crash(point)
        return done

    region = home(world)
    stores = region.ports.through(die_after_accepting).graph
    intake = type(region.services.intake)(
        stores, region.services.cluster_manager._saga, Incarnation("gone:1"), world.clock,
        world.chance, region.services.intake._quotas,
    )  # fmt: skip
    with pytest.raises(Crash):
        intake.admit(a_plan([spec("a")]), "k")
    (admission,) = graph.admissions.read([admission_key("client", "acme", "k")])
    assert admission is not None
    found = find_cancellable(graph, "k")
    assert not isinstance(found, Run)

    run, _ = cancel_admission(graph, settler, auditor(world), world.clock, found, "wrong zone")

    assert (run.state, run.reason) == (RunState.CANCELLED, "cancelled by alice: wrong zone")
    assert find_cancellable(graph, run.id) == run
    with pytest.raises(IllegalMove):
        resumed(world, run)
    (entry,) = graph.audit.recent(9)
    assert (entry.action, entry.thing, entry.why) == (
        "admissions.cancel",
        admission.id,
        "wrong zone",
    )
