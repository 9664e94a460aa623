"""What the demo has to do, and who answers what waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from region_scheduler.assembly.environment import inherited
from region_scheduler.assembly.operator import Operator
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.ids import TaskId
from region_scheduler.domain.region import Region
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import LockNeed, Task, TaskSpec
from region_scheduler.operations.plans import checked_zone, plan_of, simulated
from region_scheduler.operations.runs import give_answer
from region_scheduler.operations.zones import create_zone
from region_scheduler.worker.runners.terraform_tool import find_terraform

TENANT: Final = "acme"
ZONES: Final = {"payments": "aws-pci_dss", "reporting": "azure-soc2", "archive": "gcp-iso27001"}
"""Each is at home in another region."""
CONCURRENCY: Final = 3
STALE_MS: Final = 200.0
"""How old what the regions see of the graph is, where they do not ask its leader."""
TIME_SCALE: Final = 1 / 600
"""A step that is only simulated takes a tenth of a second for a minute."""
_CONTENDERS: Final = 90
_LOCKS: Final = 3
_CONTENDER_S: Final = 0.1
_SOON, _URGENT = 1, 100
_SLEEP: Final = "import sys, time; time.sleep(float(sys.argv[1]))"

Submitted = tuple[Run, Plan]


def terraform_name() -> str:
    """Return which terraform steps are run with; `absent` if there is none to be had."""
    tool = find_terraform(inherited())
    return tool.name if tool is not None else "absent"


def submit(operator: Operator, plans: Iterable[Plan]) -> list[Submitted]:
    """Submit plans one right after the other.

    Raises:
        Unavailable, OutcomeUnknown: The graph store does not answer.
    """
    with operator.submitter() as intake:
        return [(intake.admit(plan, operator.ids.new()).run, plan) for plan in plans]


def plans(operator: Operator, known: Sequence[Region], terraform: str) -> list[Plan]:
    """Create the demo's zones over all regions; return their plans, and the contention's.

    Args:
        operator: In whose name.
        known: The regions.
        terraform: From `terraform_name`; without one its steps are simulated.

    Raises:
        Unavailable, OutcomeUnknown: The graph store does not answer.
    """
    names = [region.id for region in known]
    zones = [
        _zone_plan(operator, known, zone, [*names[n:], *names[:n]], terraform)
        for n, zone in enumerate(ZONES)
    ]
    return [*zones, _contention(names)]


def long_steps(name: str, regions: Sequence[str], count: int, duration_s: float) -> Plan:
    """Return steps that begin at once and take long, each a process of its own.

    Args:
        name: Of the run.
        regions: Where they may run; they begin in the first.
        count: How many.
        duration_s: How long each takes, in seconds.
    """
    return _plan(
        name, regions, [_long_step(f"long-{n}", regions, duration_s) for n in range(count)]
    )


def bound_steps(name: str, regions: Sequence[str], count: int, duration_s: float) -> Plan:
    """Return `long_steps`, and behind the first of them as many that must stay in its region."""
    long = long_steps(name, regions, count, duration_s)
    bound = [_long_step(f"bound-{n}", regions[:1], 0.0) for n in range(count)]
    edges = [(long.tasks[0].name, spec.name) for spec in bound]
    return _plan(name, regions, [*long.tasks, *bound], edges)


class AutoAnswer:
    """Says yes, as a person would, to whatever waits; tells of each.

    Args:
        operator: In whose name.
        say: Told in one line.
    """

    def __init__(self, operator: Operator, say: Callable[[str], None]) -> None:
        self._operator = operator
        self._say = say
        self._answered: set[TaskId] = set()

    @property
    def count(self) -> int:
        """How many were answered."""
        return len(self._answered)

    def __call__(self, tasks: Iterable[Task]) -> None:
        """Answer those of `tasks` that wait.

        Raises:
            Unavailable, OutcomeUnknown: Call again.
        """
        operator = self._operator
        for task in tasks:
            if task.state is TaskState.AWAITING and task.id not in self._answered:
                give_answer(
                    operator.graph,
                    operator.settler,
                    operator.auditor,
                    operator.clock,
                    task,
                    is_yes=True,
                    outputs={},
                    comment="auto-answered by the demo",
                )
                self._answered.add(task.id)
                verb = "approved" if task.spec.runner == "approval" else "answered"
                self._say(f"auto-{verb}: {task.spec.name} ({task.reason})")


def _zone_plan(
    operator: Operator, known: Sequence[Region], name: str, regions: Sequence[str], terraform: str
) -> Plan:
    zone = checked_zone(known, name, ZONES[name], regions, [], TENANT, operator.clock.now())
    plan = plan_of(create_zone(operator.graph, operator.auditor, operator.quotas, zone), known)
    is_absent = terraform == "absent"
    return simulated(plan, TIME_SCALE, lambda spec: is_absent and spec.runner == "terraform")


def _contention(regions: Sequence[str]) -> Plan:
    """Return short tasks of all regions that want the same few locks, all at the same time."""
    locks = [LockNeed(f"{TENANT}/demo:lock-{n}") for n in range(_LOCKS)]
    tasks = [
        TaskSpec(
            name=f"contender-{n}",
            runner="simulate",
            inputs={"duration_s": _CONTENDER_S},
            region=regions[n % len(regions)],
            allowed_regions=tuple(regions),
            is_pinned=True,
            # Neither the region nor the lock follows from the other.
            locks=(locks[n // len(regions) % _LOCKS],),
            priority=_SOON,
        )
        for n in range(_CONTENDERS)
    ]
    return _plan("contention", regions, tasks)


def _long_step(name: str, regions: Sequence[str], duration_s: float) -> TaskSpec:
    return TaskSpec(
        name=name,
        runner="command",
        inputs={"argv": ["{python}", "-I", "-S", "-c", _SLEEP, f"{duration_s:g}"]},
        region=regions[0],
        allowed_regions=tuple(regions),
        is_pinned=True,
        expected_s=duration_s,
        priority=_URGENT,
    )


def _plan(
    name: str,
    regions: Sequence[str],
    tasks: Sequence[TaskSpec],
    edges: Sequence[tuple[str, str]] = (),
) -> Plan:
    return Plan(
        name=name,
        tenant=TENANT,
        home_region=regions[0],
        regions=tuple(regions),
        tasks=tuple(tasks),
        edges=tuple(edges),
    )
