"""The handed cases about what a cut, a crash or an empty broker may lose, each named by its id.

LST-008 is in `test_scheduling_leases.py`; the brokers' other cases are in
`test_scheduling_queue.py`. With real processes: `tests/integration/local/test_broker_wiped.py`
and `test_again.py` beside it.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.admission.intake import Intake
from region_scheduler.admission.saga import AdmissionSaga
from region_scheduler.assembly.services import settler
from region_scheduler.domain.admission import AdmissionState
from region_scheduler.domain.ownership import Ownership
from region_scheduler.domain.states import RUN_ENDED, RunState, TaskState
from region_scheduler.domain.task import EventKind, Task
from region_scheduler.domain.tenant import Quota
from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.embedded.arango.faults import Fault, FaultKind
from region_scheduler.identity.quotas import Quotas
from region_scheduler.ports.documents import WriteResult, Written
from region_scheduler.simulation.steps import Crash
from region_scheduler.simulation.world import World
from tests.cases.troubled import TroubledWorld, happened
from tests.simulation.acts import admit, another, effects, home, state_of, task_of
from tests.simulation.scenarios import HOME, a_plan, graph_of, spec

AWAY = "us-east"


class AfterCompletion:
    """A hook that counts the calls after the completion of `a`, and dies before one of them."""

    def __init__(self, dies_at: int | None) -> None:
        self.dies_at = dies_at
        self.points: list[str] = []
        self.is_counting = False

    def __call__(self, point: str, call: partial[Any]) -> Any:
        if self.is_counting and not point.startswith("instances."):
            self.points.append(point)
            if len(self.points) - 1 == self.dies_at:
                self.is_counting = False
                raise Crash(point)
        answer = call()
        if point == "tasks.write" and not self.points and self.dies_at != -1:
            self.is_counting |= any(is_done(one.value) for one in answer)
        return answer


def is_done(task: Task | None) -> bool:
    return task is not None and task.state is TaskState.DONE and task.spec.name == "a"


def crashed_at(directory: Path, number: int | None) -> list[str]:
    """Let a worker die before its `number`th call after a completion; return its calls."""
    directory.mkdir()
    hook = AfterCompletion(number)
    world = TroubledWorld(directory, (HOME, AWAY), hook=hook)
    run = admit(world, a_plan([spec("a"), spec("b", AWAY)], "a>b"))
    home(world).services.scheduler.tick()
    world.perform(home(world), home(world).workers[0].work, home(world).workers[0])
    hook.is_counting = False
    assert task_of(world, run, "a").state is TaskState.DONE
    if number is not None:
        world.woken.clear()
    world.pass_time(4 * world.timings.reconcile_every_s + 3)

    assert state_of(world, run) is RunState.DONE, hook.points
    assert effects(world) == ["a", "b"]
    a, b = task_of(world, run, "a"), task_of(world, run, "b")
    (unlocked,) = [entry for entry in b.history if entry.kind is EventKind.UNLOCKED]
    assert unlocked.seen == {a.id: str(a.token)}
    return hook.points


def test_lst_003_a_successor_starts_wherever_the_completions_worker_dies(tmp_path: Path) -> None:
    """There is no event that could be lost: the completion itself is what the scan looks for."""
    points = crashed_at(tmp_path / "none", None)
    assert {"tasks.unlocked_by", "tasks.write", "wake_ups.wake"} <= set(points)

    for number, point in enumerate(points):
        assert crashed_at(tmp_path / str(number), number)[-1] == point


@pytest.mark.parametrize("seed", [1, 2])
def test_lst_005_what_was_acknowledged_to_a_worker_is_there_after_a_cut_of_43_s(
    tmp_path: Path, seed: int
) -> None:
    """Fifty completions a second; some answers are lost, and the cut ends with another leader."""
    acknowledged: dict[str, str] = {}

    def note(point: str, call: partial[Any]) -> Any:
        answer = call()
        if point == "tasks.write":
            for one in answer:
                if one.value is not None and one.value.state is TaskState.DONE:
                    acknowledged[one.value.id] = one.value.history[-1].receipt_id
        return answer

    world = TroubledWorld(tmp_path, (HOME, AWAY), seed, hook=note)
    control = FaultControl(world.engine)
    names = [f"t{n}" for n in range(60)]
    run = admit(world, a_plan([spec(name, allowed_regions=(HOME,)) for name in names]))
    lossy = Fault(FaultKind.ANSWER_DROPPED, rate=0.2, region=HOME, path="/document/tasks")
    number = control.inject(lossy)

    def takes_20_ms(_: object) -> None:
        world.clock.advance(0.02)
        if len(world.log.effects) == 20:
            control.cut(HOME, is_refusing=True)

    world.log.during |= dict.fromkeys(names, takes_20_ms)
    world.pass_time(2)
    before = len(acknowledged)
    assert 5 < before < 60, "the cut comes in the middle"
    world.pass_time(43)
    assert len(acknowledged) == before, "who is cut off is told nothing"
    control.heal(HOME)
    control.depose(HOME)  # for a while its reads find the leader of before
    world.pass_time(2)
    control.heal_leader(HOME)
    control.withdraw(number)
    for _ in range(30):
        if state_of(world, run) in RUN_ENDED:
            break
        world.pass_time(2)

    assert state_of(world, run) is RunState.DONE
    for task in graph_of(world).tasks.of_run(run.id):
        (end,) = [e for e in task.history if e.kind is EventKind.ENDED and e.state is task.state]
        assert acknowledged.get(task.id, end.receipt_id) == end.receipt_id
    assert before < len(acknowledged), "others were lost on their way, and found again as done"


def test_lst_015_a_hundred_tasks_whose_broker_was_replaced_by_an_empty_one_run_once(
    tmp_path: Path,
) -> None:
    """The cost is delay: the time that a dispatch may take, a scan, and the tasks' own time."""
    world = World(tmp_path, (HOME,), slots=100)
    run = admit(world, a_plan([spec(f"t{n}") for n in range(100)]))
    while home(world).broker.length("default") < 100:
        assert home(world).services.scheduler.tick().dispatched
    world.woken.clear()
    home(world).broker.lose_all()

    bound_s = world.timings.dispatch_s + 2 * world.timings.reconcile_every_s + 1
    begin_s = world.clock.seconds
    while state_of(world, run) is RunState.RUNNING:
        world.pass_time(1)

    assert world.clock.seconds - begin_s <= bound_s
    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == {f"t{n}": 1 for n in range(100)}
    tasks = graph_of(world).tasks.of_run(run.id)
    assert {(t.attempt, t.retries_used, t.losses) for t in tasks} == {(1, 0, 0)}


LEAVES = [f"leaf{n}" for n in range(5)]


def test_stk_003_completions_whose_answers_are_lost_let_their_join_start_once(
    tmp_path: Path,
) -> None:
    """Of one leaf the write was applied, of another it was not; neither was answered."""
    lost: dict[str, int] = {"leaf0": 1, "leaf1": 1}

    def lose(point: str, call: partial[Any]) -> Any:
        if point != "tasks.write":
            return call()
        ((_, after), *others) = call.args[0]
        name = after.spec.name
        if others or after.state is not TaskState.DONE or not lost.get(name):
            return call()
        lost[name] = 0
        if name == "leaf0":
            call()
        return [Written(WriteResult.UNKNOWN)]

    world = World(tmp_path, (HOME,), hook=lose)
    plan = a_plan([*map(spec, LEAVES), spec("join")], *(f"{leaf}>join" for leaf in LEAVES))
    run = admit(world, plan)
    world.fast_path()
    world.pass_time(3)

    assert lost == {"leaf0": 0, "leaf1": 0}
    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == dict.fromkeys([*LEAVES, "join"], 1)
    assert effects(world)[-1] == "join"
    (unlocked,) = [e for e in task_of(world, run, "join").history if e.kind is EventKind.UNLOCKED]
    assert len(unlocked.seen) == 5
    assert happened(world, run, "join", EventKind.STARTED) == [EventKind.STARTED]


def test_stk_027_a_submission_that_broke_off_after_four_leaves_is_finished_by_another(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, (HOME, AWAY))
    leaves = [f"leaf{n}" for n in range(10)]
    plan = a_plan([*map(spec, leaves), spec("join")], *(f"{leaf}>join" for leaf in leaves))
    dead = another(world, Ownership.NONE).keeper.instance.id

    def die(point: str, call: partial[Any]) -> Any:
        if point != "tasks.insert":
            return call()
        home(world).ports.graph.tasks.insert(call.args[0][:4])
        raise Crash(point)

    ports = home(world).ports.through(die)
    saga = AdmissionSaga(HOME, ports.graph, ports.metadata, settler(ports, dead))
    quotas = Quotas(ports.graph, Quota(), ports.clock)
    with pytest.raises(Crash):
        Intake(ports.graph, saga, dead, ports.clock, ports.ids, quotas).admit(plan, "k")
    graph = graph_of(world)
    (open_,) = graph.admissions.unfinished()
    assert graph.tasks.counts(open_.run) == (4, 0)
    assert graph.runs.recent(9) == [], "so nobody looks for what it may do"

    begin_s = world.clock.seconds
    while graph.admissions.unfinished():
        world.pass_time(world.timings.renew_every_s / 2)

    assert world.clock.seconds - begin_s <= world.timings.lease_s + 3
    (run,) = graph.runs.recent(9)
    world.pass_time(3)
    assert graph.tasks.counts(run.id) == (11, 10)
    assert state_of(world, run) is RunState.DONE
    assert Counter(effects(world)) == dict.fromkeys([*leaves, "join"], 1)
    assert effects(world)[-1] == "join"
    (admission,) = graph.admissions.recent(9)
    assert (admission.state, admission.epoch) == (AdmissionState.DONE, 2)
