"""Small graphs, each with the trouble that it is about, and what must be true in the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from region_scheduler.assembly.in_process import in_process_graph
from region_scheduler.domain.admission import AdmissionState, Plan, admission_key
from region_scheduler.domain.ids import zone_key
from region_scheduler.domain.run import Run, Zone
from region_scheduler.domain.states import FINAL, RUN_ENDED, RunState, TaskState
from region_scheduler.domain.task import (
    EventKind,
    ExitKind,
    LockNeed,
    OnLoss,
    RetryPolicy,
    Task,
    TaskSpec,
)
from region_scheduler.operations.audit import Auditor
from region_scheduler.operations.runs import give_answer
from region_scheduler.ports.records import Conflict, GraphStores
from region_scheduler.simulation.faults import Fault, Faults, FaultyWorld
from region_scheduler.simulation.world import World
from tests.unit.domain.samples import AT

REGIONS = ("eu-west", "us-east", "ap-south")
HOME = "eu-west"
KEY = "the-key"
LOCK = "acme/aws:organizations"
ZONE = zone_key("acme", "prod")
PATIENCE_S = 90.0


def spec(name: str, region: str = HOME, **more: Any) -> TaskSpec:
    given: dict[str, Any] = {
        "runner": "simulate",
        "allowed_regions": REGIONS,
        "retry": RetryPolicy(limit=2, delay_s=1.0),
    }
    return TaskSpec(name=name, region=region, **{**given, **more})


def a_zone() -> Zone:
    return Zone(
        id=ZONE,
        tenant="acme",
        name="prod",
        zone_type="aws-pci_dss",
        catalog_version="1",
        regions=REGIONS,
        created_at=AT,
    )


def a_plan(tasks: Sequence[TaskSpec], *edges: str, **more: Any) -> Plan:
    """Return a plan; an edge is written `before>after`."""
    pairs = tuple((b, a) for b, _, a in (edge.partition(">") for edge in edges))
    given: dict[str, Any] = {"tenant": "acme", "home_region": HOME, "regions": REGIONS}
    return Plan(name="g", tasks=tuple(tasks), edges=pairs, **{**given, **more})


@dataclass(frozen=True)
class Scenario:
    """A graph and the trouble it is about.

    Attributes:
        end: How its run ends, whatever single fault it meets.
        fails, crashes: As in `EffectLog`.
        settled: States that the tasks end in; done unless they are named.
        is_answered: A person says yes to whatever waits.
    """

    name: str
    plan: Plan
    regions: tuple[str, ...] = (HOME,)
    end: RunState = RunState.DONE
    fails: dict[str, int] = field(default_factory=dict)
    crashes: dict[str, int] = field(default_factory=dict)
    settled: dict[str, TaskState] = field(default_factory=dict)
    is_answered: bool = False


CHAIN = Scenario("chain", a_plan([spec("a", locks=(LockNeed(LOCK),)), spec("b")], "a>b"))
DIAMOND = Scenario(
    "diamond",
    a_plan(
        [spec("a"), spec("b", "us-east"), spec("c", "ap-south"), spec("d")],
        "a>b", "a>c", "b>d", "c>d",
    ),
    regions=REGIONS,
)  # fmt: skip
CONTENDED = Scenario(
    "contended",
    a_plan(
        [
            spec("root"),
            *(
                spec(name, region, locks=(LockNeed(LOCK), LockNeed("pool", capacity=2, units=2)))
                for name, region in (("x", HOME), ("y", HOME), ("z", "us-east"))
            ),
        ],
        "root>x", "root>y", "root>z",
    ),
    regions=(HOME, "us-east"),
)  # fmt: skip
FAILING = Scenario(
    "failing",
    a_plan([spec("a"), spec("bad"), spec("after")], "a>bad", "bad>after"),
    end=RunState.FAILED,
    fails={"bad": 99},
    settled={"bad": TaskState.FAILED, "after": TaskState.PENDING},
)
APPROVAL = Scenario(
    "approval",
    a_plan([spec("ask", runner="approval"), spec("go")], "ask>go"),
    is_answered=True,
)
LOST = Scenario(
    "lost",
    a_plan([spec("a", on_loss=OnLoss.INSPECT, locks=(LockNeed(LOCK),)), spec("b")], "a>b"),
    crashes={"a": 1},
)
ALL = (CHAIN, DIAMOND, CONTENDED, FAILING, APPROVAL, LOST)


def graph_of(world: World) -> GraphStores:
    """Return the stores, not passed through any hook."""
    return in_process_graph(world.engine, next(iter(world.regions)))


def survey(scenario: Scenario, directory: Path) -> list[Fault]:
    """Run without a fault and return every fault that the run could meet."""
    faults, problems = play(scenario, directory, None)
    assert problems == []
    return list(faults.all())


def play(scenario: Scenario, directory: Path, fault: Fault | None) -> tuple[Faults, list[str]]:
    """Run to the end with one fault, and return what is wrong then."""
    directory.mkdir(exist_ok=True)
    world = FaultyWorld(directory, scenario.regions, fault)
    world.log.fails |= scenario.fails
    world.log.crashes |= scenario.crashes
    world.faults.is_armed = True
    graph = graph_of(world)
    submit(world, graph, scenario.plan)
    waited_s = 0.0
    world.fast_path()
    while not is_over(graph) and waited_s < PATIENCE_S:
        if scenario.is_answered:
            answer_all(world, graph)
        world.pass_time(world.timings.renew_every_s / 2)
        waited_s += world.timings.renew_every_s / 2
    world.faults.is_armed = False
    return world.faults, violations(world, scenario, graph)


def submit(world: FaultyWorld, graph: GraphStores, plan: Plan) -> None:
    """Submit; a client whose server died asks again only if nothing was accepted."""
    region = world.regions[HOME]
    admission = admission_key("client", plan.tenant, KEY)
    for _ in range(2):
        world.insist(region, lambda: region.services.intake.admit(plan, KEY))
        if graph.admissions.read([admission]) != [None]:
            return
        assert graph.runs.recent(10) == [], "a run of a request that nobody accepted"
    raise AssertionError("a client could not submit")


def answer_all(world: FaultyWorld, graph: GraphStores) -> None:
    """Let a person say yes to all that waits."""
    region = world.regions[HOME]
    stores = region.ports.graph
    auditor = Auditor(stores, "alice", world.clock, world.chance)
    for run in graph.runs.unended():
        for task in graph.tasks.of_run(run.id, [TaskState.AWAITING]):
            settler = region.services.settler
            say_yes = partial(give_answer, stores, settler, auditor, world.clock, task)
            world.insist(region, partial(say_yes, is_yes=True, outputs={}))


def is_over(graph: GraphStores) -> bool:
    """Say whether all is at rest: runs ended, nothing held, nothing half admitted."""
    runs = graph.runs.recent(10)
    return (
        bool(runs)
        and all(run.state in RUN_ENDED for run in runs)
        and graph.slots.taken() == []
        and graph.admissions.unfinished() == []
    )


def violations(world: FaultyWorld, scenario: Scenario, graph: GraphStores) -> list[str]:
    """Return, in words, what of the promise does not hold at the end of a run."""
    (admission,) = graph.admissions.read([admission_key("client", scenario.plan.tenant, KEY)])
    runs = graph.runs.recent(10)
    if admission is None or admission.state is not AdmissionState.DONE or len(runs) != 1:
        return [f"admission {admission.state if admission else 'missing'}, {len(runs)} runs"]
    (run,) = runs
    tasks = {task.spec.name: task for task in graph.tasks.of_run(run.id)}
    found = [
        *_of_run(scenario, run, graph),
        *_of_ends(scenario, tasks),
        *_of_effects(world, scenario.plan, tasks),
        *_of_conflicts(graph.conflicts.recent(100), tasks),
    ]
    found += [f"slot of {slot.resource} left held" for slot in graph.slots.taken()]
    report = world.report(is_at_rest=True)
    return [*found, *report.lines()] if report.violations else found


def _of_run(scenario: Scenario, run: Run, graph: GraphStores) -> list[str]:
    found = [] if run.state is scenario.end else [f"run is {run.state}"]
    counted = graph.tasks.counts(run.id)
    if counted != (len(scenario.plan.tasks), len(scenario.plan.edges)):
        found.append(f"{counted} tasks and edges")
    return found


def _of_ends(scenario: Scenario, tasks: dict[str, Task]) -> list[str]:
    found: list[str] = []
    for name, task in tasks.items():
        wanted = scenario.settled.get(name, TaskState.DONE)
        accepted = [e for e in task.history if _is_accepted(e.kind, e.state)]
        if task.state is not wanted:
            found.append(f"{name} is {task.state}: {task.reason}")
        if len(accepted) != (1 if wanted in FINAL else 0):
            found.append(f"{name} has {len(accepted)} accepted completions")
        if task.holder is not None and task.state in FINAL:
            found.append(f"{name} is {task.state} and still held")
    return found


def _is_accepted(kind: EventKind, state: TaskState) -> bool:
    return kind in {EventKind.ENDED, EventKind.ANSWERED} and state in FINAL


def _of_effects(world: World, plan: Plan, tasks: dict[str, Task]) -> list[str]:
    found: list[str] = []
    effects = world.log.effects
    if len({effect.receipt_id for effect in effects}) != len(effects):
        found.append("one receipt ran twice")
    counted = {EventKind.LOST: 1, EventKind.STARTED: 0}
    accepted_at: dict[str, int] = {}
    for name, task in tasks.items():
        ran = [n for n, effect in enumerate(effects) if effect.name == name]
        repeats = sum(counted.get(e.kind, e.detail == ExitKind.RETRYABLE) for e in task.history)
        if len(ran) > 1 + repeats:
            found.append(f"{name} ran {len(ran)} times, {repeats} ends allowed for one more")
        last = next((e.receipt_id for e in task.history if e.state is TaskState.DONE), None)
        accepted_at[name] = next((n for n in ran if effects[n].receipt_id == last), -1)
    for before, after in plan.edges:
        first = next((n for n, effect in enumerate(effects) if effect.name == after), None)
        if first is not None and first < accepted_at[before]:
            found.append(f"{after} ran before {before} was done")
    return found


def _of_conflicts(conflicts: Sequence[Conflict], tasks: dict[str, Task]) -> list[str]:
    locks = {need.resource for task in tasks.values() for need in task.spec.locks}
    ids = {task.id for task in tasks.values()}
    found: list[str] = []
    for conflict in conflicts:
        is_known = conflict.thing in (ids if conflict.kind == "claim" else locks)
        is_lost_to_task = conflict.kind == "claim" or conflict.winner in ids
        if not is_known or not is_lost_to_task or conflict.winner == conflict.loser:
            found.append(f"odd conflict: {replace(conflict, rev='')}")
    return found


def covering(faults: Sequence[Fault], every: int) -> list[Fault]:
    """Return the first call of each point with each kind, and each `every`th call after it."""
    sample = [fault for fault in faults if fault.number % every == 0]
    assert {(f.point, f.kind) for f in sample} == {(f.point, f.kind) for f in faults}
    return sample
