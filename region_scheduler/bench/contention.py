"""Let schedulers contend: `region-scheduler bench contention`.

Real processes: the engine, which shows each region's schedulers a view that is `stale_ms` old; a
Valkey and a Celery worker a region; serving processes with ownership switched off, so that all
those of a region want all of its tasks, and all of them the same locks. Everything is admitted
under a pause; the clock runs from its end to the last step's.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from typing import Any, Final

from region_scheduler.assembly.operator import Operator
from region_scheduler.assembly.working import STEPS_LOG
from region_scheduler.bench.effects import Verdict, judged
from region_scheduler.bench.rogue import Planted, misbehave
from region_scheduler.config.load import Values, load
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.ids import TaskId, task_id
from region_scheduler.domain.lease import LeaseTimings
from region_scheduler.domain.ownership import Ownership, bucket_of
from region_scheduler.domain.pause import EVERYTHING
from region_scheduler.domain.run import Run
from region_scheduler.domain.task import LockNeed, TaskSpec
from region_scheduler.errors import InvalidInput, Unavailable
from region_scheduler.local.addresses import free_ports
from region_scheduler.local.demo.report import claims_without_start
from region_scheduler.local.directories import prepare
from region_scheduler.local.evidence import step_records
from region_scheduler.local.parts import broker_of, engine, serving_of, worker_of
from region_scheduler.local.stack import Stack, new_stack
from region_scheduler.local.supervisor import Program, Supervisor
from region_scheduler.operations.pauses import pause, unpause
from region_scheduler.ports.records import GraphStores
from region_scheduler.runtime.system import SystemClock, UuidIds

_RUN_TASKS: Final = 1_000
_LOCKED_EVERY: Final = 5
"""One task in so many needs a lock."""
_WIDE_EVERY: Final = 4
"""One lock in so many has as many units as `_UNITS` says, the others have one."""
_UNITS: Final = 3
_STEP_S: Final = 0.005
_CONCURRENCY: Final = 16
_LOOK_AHEAD: Final = 2
_LOOK_S: Final = 0.5
_STILL_S: Final = 120.0
"""Without another step's end for so long, it is given up."""
_STOP_S: Final = 60.0
_MANY: Final = 10_000_000
_TENANT: Final = "acme"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """What contends for what.

    Attributes:
        schedulers: Serving processes, dealt out to the regions.
        regions: Each has at least one scheduler.
        locks: Of all regions together.
        stale_ms: Age of what schedulers see, where they see a follower's view.
    """

    schedulers: int
    regions: int
    tasks: int
    locks: int
    stale_ms: float

    def __post_init__(self) -> None:
        """Refuse what could not be run.

        Raises:
            InvalidInput: Names the option.
        """
        least = {"regions": 1, "schedulers": self.regions, "tasks": 1, "locks": 1, "stale_ms": 0}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                option = f"--{name.replace('_', '-')}"
                text = f"{getattr(self, name):g}"
                raise InvalidInput(field=option, value=text, expected=f"at least {bound}")

    @property
    def names(self) -> list[str]:
        """Names of the regions."""
        return [f"r{n}" for n in range(self.regions)]

    def capacities(self) -> dict[str, int]:
        """Return how many units each lock has."""
        return {f"{_TENANT}/lock-{n}": 1 if n % _WIDE_EVERY else _UNITS for n in range(self.locks)}

    def plans(self) -> Iterator[Plan]:
        """Yield runs that come to all the tasks, each over all regions; no task has to wait."""
        names, capacities = self.names, self.capacities()
        locks = [LockNeed(name, capacity=units) for name, units in capacities.items()]
        for first in range(0, self.tasks, _RUN_TASKS):
            numbers = range(first, min(first + _RUN_TASKS, self.tasks))
            tasks = tuple(
                TaskSpec(
                    name=f"t{n}",
                    runner="simulate",
                    inputs={"duration_s": _STEP_S},
                    # Neither the region nor the lock follows from the other.
                    region=names[bucket_of(f"t{n}") % len(names)],
                    allowed_regions=tuple(names),
                    is_pinned=True,
                    locks=(locks[n // _LOCKED_EVERY % len(locks)],)
                    if not n % _LOCKED_EVERY
                    else (),
                )
                for n in numbers
            )
            yield Plan(
                name=f"contend-{first}",
                tenant=_TENANT,
                home_region=names[first // _RUN_TASKS % len(names)],
                regions=tuple(names),
                tasks=tasks,
                edges=(),
            )


@dataclass(frozen=True, slots=True)
class Contended:
    """What came of it.

    Attributes:
        verdict: By the steps' own log.
        claims: Claims that another scheduler won.
        assignments: Locks that another task had.
        requeued: How often a claimed task was given back.
        seconds: From the end of the pause to the last step's end.
    """

    contest: Contest
    verdict: Verdict
    claims: int
    assignments: int
    requeued: int
    seconds: float

    @property
    def is_sound(self) -> bool:
        """Whether every task was done, once, within capacity."""
        found = self.verdict
        return found.done == self.contest.tasks and not found.done_twice and not found.overruns

    @property
    def conflict_fraction(self) -> float:
        """Conflicts for each claim that led to a step, as in Omega's figures: it may pass 1."""
        return (self.claims + self.assignments) / max(1, self.verdict.done)

    def lines(self) -> Iterator[str]:
        """Return it for people."""
        for name, value in self.document().items():
            yield f"{name.replace('_', ' '):18} {value}"

    def document(self) -> dict[str, Any]:
        """Return it for programs."""
        won = self.verdict.done + self.requeued
        return {
            **asdict(self.contest),
            "done": self.verdict.done,
            "done_twice": self.verdict.done_twice,
            "capacity_overruns": self.verdict.overruns,
            "conflicts": {
                "claims": self.claims,
                "assignments": self.assignments,
                "requeued": self.requeued,
            },
            "conflict_fraction": round(self.conflict_fraction, 4),
            "claims_per_s": round(won / self.seconds, 1),
            "seconds": round(self.seconds, 1),
        }


def contend(contest: Contest, planted: Collection[Planted] = ()) -> Contended:
    """Run a contest on a stack of its own, which is gone afterwards.

    Args:
        contest: Who contends for what.
        planted: What a step does that no scheduler let it do, to see that it is seen.

    Raises:
        Misconfigured: A part of the stack did not start.
        Unavailable: For two minutes no step ended, though tasks were left.
    """
    with tempfile.TemporaryDirectory() as text, ExitStack() as closing:
        stack = new_stack(Path(text), contest.names, UuidIds())
        prepare(stack)
        closing.enter_context(_running(_programs(stack, contest)))
        settings = load({**stack.settings(contest.names[0]), **_lease()}).settings
        operator = Operator(settings, closing, patience_s=30.0)
        needs = _admitted(operator, contest)
        began_at = operator.clock.monotonic()
        unpause(operator.graph, operator.settler, operator.auditor, EVERYTHING)
        _wait_for(stack, contest, operator.clock)
        last_at = max(record.boot for record in step_records(stack))
        misbehave(stack, planted, needs, contest.capacities())
        verdict = judged(step_records(stack), needs, contest.capacities())
        kinds = Counter(conflict.kind for conflict in operator.graph.conflicts.recent(_MANY))
        requeued = sum(_requeues(operator.graph, run) for run in operator.graph.runs.recent(_MANY))
    return Contended(
        contest,
        verdict,
        kinds["claim"],
        kinds["assignment"],
        requeued,
        last_at - began_at,
    )


def _lease() -> Values:
    """Return settings with the leases of production: nothing is to be lost here."""
    return {"lease": asdict(LeaseTimings())}


def _programs(stack: Stack, contest: Contest) -> list[Program]:
    names = contest.names
    shared = {"scheduler": {"ownership": Ownership.NONE, "look_ahead": _LOOK_AHEAD}, **_lease()}
    working = {"worker": {"kind": "threads", "concurrency": _CONCURRENCY}, **_lease()}
    first = [serving_of(stack, name, shared) for name in names]
    others = [
        serving_of(stack, names[n % len(names)], shared | {"http": {"port": port}}, n // len(names))
        for n, port in enumerate(free_ports(contest.schedulers - len(names)), 2 * len(names))
    ]
    return [
        engine(stack, contest.stale_ms),
        *(broker_of(stack, name) for name in names),
        *first,
        *others,
        *(worker_of(stack, name, working) for name in names),
    ]


@contextmanager
def _running(programs: list[Program]) -> Iterator[None]:
    supervisor = Supervisor(programs, SystemClock(), lambda _: None)
    supervisor.start()
    try:
        yield
    finally:
        supervisor.stop()
        supervisor.join(_STOP_S)


def _admitted(operator: Operator, contest: Contest) -> Mapping[TaskId, tuple[str, ...]]:
    """Admit everything, nothing of which starts yet; return what each task needs."""
    graph, clock = operator.graph, operator.clock
    pause(graph, operator.auditor, clock, EVERYTHING, "until all is admitted")
    needs: dict[TaskId, tuple[str, ...]] = {}
    with operator.submitter() as intake:
        for plan in contest.plans():
            run = intake.admit(plan, plan.name).run
            needs |= {
                task_id(run.id, spec.name): tuple(need.resource for need in spec.locks)
                for spec in plan.tasks
            }
    return needs


def _wait_for(stack: Stack, contest: Contest, clock: SystemClock) -> None:
    """Wait until as many steps have come to their end as there are tasks, or nothing moves."""
    done, moved_at = 0, clock.monotonic()
    while done < contest.tasks:
        Event().wait(_LOOK_S)
        ended = _ends(stack)
        if ended >= contest.tasks:  # now it is worth to read what they are
            ended = len({record.task for record in step_records(stack) if record.code == 0})
        now = clock.monotonic()
        if ended > done:
            done, moved_at = ended, now
        elif now - moved_at > _STILL_S:
            detail = f"{done} of {contest.tasks} tasks done, none for {_STILL_S:g} s"
            raise Unavailable(dependency="schedulers", detail=detail)


def _ends(stack: Stack) -> int:
    """Return how many steps came to their end so far, whosesoever they are."""
    logs = (stack.directory(region) / "logs" / STEPS_LOG for region in stack.regions)
    return sum(log.read_bytes().count(b'"code":0') for log in logs if log.exists())


def _requeues(graph: GraphStores, run: Run) -> int:
    """Return how often tasks of a run were given back by who had claimed them."""
    return sum(claims_without_start(task) for task in graph.tasks.of_run(run.id))
