"""A request is accepted once and becomes one whole run, whoever dies and whoever helps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.admission import saga
from region_scheduler.admission.cluster_manager import ClusterManager
from region_scheduler.admission.intake import Intake
from region_scheduler.admission.rules import checked
from region_scheduler.admission.saga import AdmissionSaga, Calls, in_turn
from region_scheduler.assembly.services import Ports, intake, lease_keeper, settler
from region_scheduler.commit.gate import Change, commit_one
from region_scheduler.domain.admission import (
    Admission,
    AdmissionState,
    Plan,
    taken_over,
)
from region_scheduler.domain.ids import Incarnation
from region_scheduler.domain.instance import Fence, FenceKind, fenced
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState, TaskState
from region_scheduler.domain.task import LockNeed
from region_scheduler.errors import (
    BrokenInvariant,
    CyclicGraph,
    InvalidGraph,
    InvalidInput,
    KeyReused,
    Unavailable,
)
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.resources.capacity import set_capacity
from region_scheduler.runtime.lanes import side_by_side
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import World
from tests.simulation.scenarios import HOME, a_plan, spec

PLAN = a_plan([spec("a"), spec("b"), spec("c")], "a>b", "a>c")
Act = Callable[[str, partial[Any]], Any]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, (HOME,))


@pytest.fixture
def ports(world: World) -> Ports:
    return world.regions[HOME].ports


def submitter(world: World, ports: Ports, name: str) -> tuple[LeaseKeeper, Intake]:
    """Return the submitter role of a new process whose port calls go through `ports`."""
    instance = replace(
        world.regions[HOME].services.keeper.instance, id=Incarnation(f"{name}:1"), rev=""
    )
    keeper = lease_keeper(world.regions[HOME].ports, instance, world.timings)
    keeper.register()
    return keeper, intake(ports, instance)


def manager(world: World, ports: Ports, name: str) -> ClusterManager:
    keeper, _ = submitter(world, world.regions[HOME].ports, name)
    who = settler(ports, keeper.instance.id)
    carries_out = AdmissionSaga(HOME, ports.graph, ports.metadata, who)
    return ClusterManager(ports.graph, carries_out, keeper, world.timings, world.clock)


def kill(ports: Ports, incarnation: str) -> None:
    fence = Fence(kind=FenceKind.EXPIRED, by="observer", at=ports.clock.now())
    commit_one(
        ports.graph.instances, Change(incarnation, lambda found: fenced(found, found.beat, fence))
    )


def whole(ports: Ports) -> Run:
    """Return the only run there is, after looking at all that belongs to it."""
    (run,) = ports.graph.runs.recent(10)
    assert ports.graph.tasks.counts(run.id) == (3, 2)
    assert (run.task_count, run.edge_count) == (3, 2)
    assert ports.graph.admissions.unfinished() == []
    tasks = {task.spec.name: task for task in ports.graph.tasks.of_run(run.id)}
    assert {name: task.needs for name, task in tasks.items()} == {"a": 0, "b": 1, "c": 1}
    assert {name: task.state for name, task in tasks.items()} == {
        "a": TaskState.READY,
        "b": TaskState.PENDING,
        "c": TaskState.PENDING,
    }
    return run


def points(world: World) -> list[str]:
    """Return every port call of an admission, in order."""
    seen: list[str] = []

    def note(point: str, call: partial[Any]) -> Any:
        seen.append(point)
        return call()

    _, submits = submitter(world, world.regions[HOME].ports.through(note), "surveyor")
    submits.admit(PLAN, "survey")
    return seen


def dying(number: int, is_after: bool) -> Act:
    """Return a hook under which the process dies at a call."""
    numbers = count()

    def act(point: str, call: partial[Any]) -> Any:
        is_it = next(numbers) == number
        if is_it and not is_after:
            raise Crash(point)
        done = call()
        if is_it:
            raise Crash(point)
        return done

    return act


def accepting_only(point: str, call: partial[Any]) -> Any:
    """Be a process that dies as soon as the request is accepted."""
    done = call()
    if point == "admissions.insert":
        raise Crash(point)
    return done


def acting(number: int, act: Callable[[], None]) -> Act:
    """Return a hook under which somebody else acts before a call."""
    numbers = count()

    def before(_point: str, call: partial[Any]) -> Any:
        if next(numbers) == number:
            act()
        return call()

    return before


def calls_of_an_admission(tmp_path: Path) -> list[str]:
    (tmp_path / "survey").mkdir()
    return points(World(tmp_path / "survey", (HOME,)))


WAYS = {"one by one": (1, in_turn), "side by side": (1, side_by_side), "at once": (1_000, in_turn)}


@pytest.fixture(params=list(WAYS))
def carry(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Calls], None]:
    """How a graph is written: a big one in many batches, a small one in one."""
    size, way = WAYS[request.param]
    monkeypatch.setattr(saga, "_BATCH", size)
    return way


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
def test_an_admission_that_dies_at_any_call_is_finished_by_the_cluster_manager(
    tmp_path: Path, carry: Callable[[Calls], None], is_after: bool
) -> None:
    calls = calls_of_an_admission(tmp_path)
    assert len(calls) >= 8
    accepting = calls.index("admissions.insert")
    for number in range(len(calls)):
        (tmp_path / str(number)).mkdir()
        world = World(tmp_path / str(number), (HOME,))
        ports = replace(world.regions[HOME].ports, carry=carry)
        _, submits = submitter(world, ports.through(dying(number, is_after)), "dead")
        with pytest.raises(Crash):
            submits.admit(PLAN, "k")
        kill(ports, "dead:1")

        manager(world, ports, "live").tick()
        # What is published is unlocked by the reconciler at the latest.
        world.regions[HOME].services.reconciler.tick()

        if number < accepting or (number == accepting and not is_after):
            assert ports.graph.runs.recent(10) == [], "never accepted: nothing exists"
        else:
            whole(ports)


def test_an_admission_repeated_at_any_call_is_the_same_run(
    tmp_path: Path, carry: Callable[[Calls], None]
) -> None:
    """A client that gave up asks again, elsewhere, while the first is still at it."""
    for number in range(len(calls_of_an_admission(tmp_path))):
        (tmp_path / str(number)).mkdir()
        world = World(tmp_path / str(number), (HOME,))
        ports = replace(world.regions[HOME].ports, carry=carry)
        _, other = submitter(world, ports, "other")
        others: list[Run] = []

        repeat = acting(number, lambda: others.append(other.admit(PLAN, "k").run))  # noqa: B023
        _, submits = submitter(world, ports.through(repeat), "first")
        run = submits.admit(PLAN, "k").run

        assert others[0].id == run.id == whole(ports).id


def test_the_same_key_with_another_body_is_refused_and_writes_nothing(
    world: World, ports: Ports
) -> None:
    submits = world.regions[HOME].services.intake
    first = submits.admit(PLAN, "k")
    other = replace(PLAN, edges=PLAN.edges[:1])

    with pytest.raises(KeyReused) as refused:
        submits.admit(other, "k")

    assert refused.value.run_id == first.run.id
    whole(ports)
    assert submits.admit(PLAN, "k").is_repeat
    assert not submits.admit(other, "k2").is_repeat


def test_another_tenant_may_use_the_same_key(world: World) -> None:
    submits = world.regions[HOME].services.intake
    first = submits.admit(PLAN, "k")

    assert submits.admit(replace(PLAN, tenant="umbrella"), "k").run.id != first.run.id


def test_more_units_than_there_are_is_refused_though_the_graph_says_otherwise(
    world: World, ports: Ports
) -> None:
    """An operator has changed the resource since; one that takes a single unit is not asked for."""
    set_capacity(ports.graph.slots, "x", 2)
    submits = world.regions[HOME].services.intake
    greedy = a_plan([spec("a", locks=(LockNeed("x", capacity=5, units=3),))])

    with pytest.raises(InvalidGraph, match="'a' takes 3 units of 'x', which has 2"):
        submits.admit(greedy, "k")
    assert ports.graph.admissions.recent(9) == []
    set_capacity(ports.graph.slots, "x", 3)

    assert submits.admit(greedy, "k").run.task_count == 1


@pytest.mark.parametrize(
    ("plan", "error"),
    [
        (a_plan([]), InvalidGraph),
        (a_plan([spec("a"), spec("a")]), InvalidGraph),
        (a_plan([spec("a")], "a>z"), InvalidGraph),
        (a_plan([spec("a"), spec("b")], "a>b", "b>a"), CyclicGraph),
        (a_plan([spec("a", locks=(LockNeed("x", capacity=1, units=2),))]), InvalidGraph),
        (a_plan([spec("a", locks=(LockNeed("x"), LockNeed("x")))]), InvalidGraph),
        (a_plan([spec("a", locks=(LockNeed("x", units=0),))]), InvalidGraph),
        (a_plan([spec("a", locks=(LockNeed("x", capacity=0, units=0),))]), InvalidGraph),
    ],
    ids=[
        "empty", "twice", "to nowhere", "cycle", "too many units", "one lock twice", "no unit",
        "no capacity",
    ],
)  # fmt: skip
def test_what_could_never_run_is_refused_and_writes_nothing(
    world: World, ports: Ports, plan: Plan, error: type[Exception]
) -> None:
    with pytest.raises(error):
        world.regions[HOME].services.intake.admit(plan, "k")

    assert ports.graph.admissions.unfinished() == []
    assert ports.graph.runs.recent(10) == []


def test_locks_that_fit_are_accepted() -> None:
    fitting = (LockNeed("x", capacity=2), LockNeed("x", capacity=2), LockNeed("y", 3, units=3))

    assert checked(a_plan([spec("a", locks=fitting)])).order == ("a",)


def accepted_only(world: World, ports: Ports, name: str, key: str) -> Admission:
    """Accept a request, and die."""
    _, submits = submitter(world, ports.through(accepting_only), name)
    with pytest.raises(Crash):
        submits.admit(PLAN, key)
    id_ = next(a.id for a in ports.graph.admissions.unfinished() if a.key == key)
    (accepted,) = ports.graph.admissions.read([id_])
    assert accepted is not None
    return accepted


def test_what_a_live_submitter_is_at_is_left_to_it(world: World, ports: Ports) -> None:
    accepted_only(world, ports, "busy", "k")

    assert manager(world, ports, "live").tick() == []
    assert len(ports.graph.admissions.unfinished()) == 1


def test_an_epoch_that_was_taken_over_changes_nothing_and_still_names_the_run(
    world: World, ports: Ports
) -> None:
    old = accepted_only(world, ports, "slow", "k")
    kill(ports, "slow:1")
    (published,) = manager(world, ports, "live").tick()

    slow = AdmissionSaga(HOME, ports.graph, ports.metadata, settler(ports, "slow:1"))
    assert slow.carry_out(old).id == published.id == whole(ports).id
    (closed,) = ports.graph.admissions.read([old.id])
    assert closed is not None
    assert (closed.epoch, closed.instance) == (2, "live:1")


def test_two_cluster_managers_do_not_take_an_admission_from_each_other(
    world: World, ports: Ports
) -> None:
    accepted = accepted_only(world, ports, "dead", "k")
    kill(ports, "dead:1")
    quick = Incarnation("quick:1")

    def be_slower(point: str, call: partial[Any]) -> Any:
        if point == "admissions.write":
            commit_one(
                ports.graph.admissions,
                Change(accepted.id, lambda a: taken_over(a, quick) if a.epoch == 1 else a),
            )
        return call()

    assert manager(world, ports.through(be_slower), "late").tick() == []
    (standing,) = ports.graph.admissions.unfinished()
    assert (standing.epoch, standing.instance) == (2, "quick:1")


@pytest.mark.parametrize("error", [Unavailable(dependency="x", detail="y"), BrokenInvariant("z")])
def test_an_admission_that_cannot_be_finished_does_not_hold_up_the_others(
    world: World, ports: Ports, error: Exception
) -> None:
    poisoned = accepted_only(world, ports, "dead", "k1")
    world.clock.advance(1)
    accepted_only(world, ports, "dead2", "k2")
    for name in ("dead:1", "dead2:1"):
        kill(ports, name)

    def fail(point: str, call: partial[Any]) -> Any:
        if point == "tasks.counts" and call.args[0] == poisoned.run:
            raise error
        return call()

    with pytest.raises(type(error)):
        manager(world, ports.through(fail), "live").tick()

    assert [a.key for a in ports.graph.admissions.unfinished()] == ["k1"]
    assert len(ports.graph.runs.recent(10)) == 1


@pytest.mark.parametrize("state", [RunState.REFUSED, RunState.CANCELLED])
def test_a_run_that_was_published_as_over_never_starts(
    world: World, ports: Ports, state: RunState
) -> None:
    """Who refuses or cancels an admission inserts the run document itself, and comes first."""

    def insert_over(point: str, call: partial[Any]) -> Any:
        if point == "runs.insert":
            runs: Sequence[Run] = call.args[0]
            ports.graph.runs.insert([replace(run, state=state) for run in runs])
        return call()

    _, submits = submitter(world, ports.through(insert_over), "first")
    is_refused = state is RunState.REFUSED
    with pytest.raises(InvalidGraph) if is_refused else nullcontext():
        submits.admit(PLAN, "k")
    world.pass_time(2)

    (run,) = ports.graph.runs.recent(10)
    assert run.state is state
    assert world.log.effects == []
    states = {task.state for task in ports.graph.tasks.of_run(run.id)}
    assert states == (set() if is_refused else {TaskState.PENDING})
    assert ports.graph.admissions.unfinished() == []
    (admission,) = ports.graph.admissions.recent(10)
    assert admission.state is (AdmissionState.REFUSED if is_refused else AdmissionState.DONE)


def test_what_a_store_refuses_for_good_is_refused_once_and_never_starts(
    world: World, ports: Ports
) -> None:
    """A rule that one store has and the checks do not know must not be met again for ever."""
    sent: list[str] = []

    def refuse(point: str, call: partial[Any]) -> Any:
        sent.append(point)
        if point == "tasks.insert_edges":
            raise InvalidInput(field="graph store", value="edge", expected="something else")
        return call()

    _, submits = submitter(world, ports.through(refuse), "first")
    for _ in range(2):
        with pytest.raises(InvalidGraph, match="something else"):
            submits.admit(PLAN, "k")

    assert sent.count("tasks.insert_edges") == 1
    (run,) = ports.graph.runs.recent(10)
    assert run.state is RunState.REFUSED
    (admission,) = ports.graph.admissions.recent(10)
    assert (admission.state, admission.run) == (AdmissionState.REFUSED, run.id)
    world.pass_time(2)
    assert world.log.effects == []
    assert ports.graph.tasks.counts(run.id) == (0, 0)
    assert ports.metadata.marks(run.id) == {}


def test_the_same_request_is_the_same_run_though_its_plan_has_changed(
    world: World, ports: Ports
) -> None:
    submits = world.regions[HOME].services.intake
    first = submits.admit(PLAN, "k", "digest of the request")
    changed = replace(PLAN, catalog_version="2", edges=PLAN.edges[:1])

    again = submits.admit(changed, "k", "digest of the request")
    asked = submits.earlier(PLAN.tenant, "k", "digest of the request")

    assert asked is not None
    assert again.run.id == asked.run.id == first.run.id == whole(ports).id
    assert (again.is_repeat, asked.is_repeat) == (True, True)
    assert submits.earlier(PLAN.tenant, "other", "digest of the request") is None
    with pytest.raises(KeyReused):
        submits.earlier(PLAN.tenant, "k", "another")


def test_a_request_that_came_before_is_finished_when_it_is_asked_for_again(
    world: World, ports: Ports
) -> None:
    accepted = accepted_only(world, ports, "busy", "k")
    _, submits = submitter(world, ports, "other")

    again = submits.earlier(PLAN.tenant, "k", accepted.body_digest)

    assert again is not None
    assert again.run.id == accepted.run == whole(ports).id
