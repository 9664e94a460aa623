"""The demo's parts: what it provisions, who answers what waits, and what is told at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from region_scheduler.assembly.environment import inherited
from region_scheduler.assembly.operator import Operator
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.ids import TaskId, task_id
from region_scheduler.domain.region import Region
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import SATISFYING, RunState, TaskState
from region_scheduler.domain.task import Json, Task
from region_scheduler.local.evidence import living, states, step_records
from region_scheduler.local.stack import Stack
from region_scheduler.operations.plans import checked_zone, plan_of, simulated
from region_scheduler.operations.runs import give_answer
from region_scheduler.operations.zones import create_zone
from region_scheduler.ports.records import GraphStores
from region_scheduler.verify.counters import count
from region_scheduler.verify.terraform import applied
from region_scheduler.worker.processes import started_at
from region_scheduler.worker.runners.terraform_tool import find_terraform

TENANT = "acme"
ZONES = {"payments": "aws-pci_dss", "reporting": "azure-soc2", "archive": "gcp-iso27001"}
"""Each is at home in another region."""
CONCURRENCY = 3
TIME_SCALE = 1 / 600
"""A step that is only simulated takes a tenth of a second for a minute."""
_CONFLICTS_MAX = 100_000
_EVERY_CLAIM = 2  # a token rises with a claim, and again when its holder is left


def terraform_name() -> str:
    """Return which terraform steps are run with; `absent` if there is none to be had."""
    tool = find_terraform(inherited())
    return tool.name if tool is not None else "absent"


def submit_zones(
    operator: Operator, known: Sequence[Region], terraform: str
) -> list[tuple[Run, Plan]]:
    """Create the demo's zones over all regions and submit them, one right after the other.

    Args:
        operator: In whose name.
        known: The regions.
        terraform: From `terraform_name`; without one its steps are simulated.

    Raises:
        Unavailable, OutcomeUnknown: The graph store does not answer.
    """
    names = [region.id for region in known]
    plans = [
        _plan(operator, known, zone, [*names[n:], *names[:n]], terraform)
        for n, zone in enumerate(ZONES)
    ]
    with operator.submitter() as intake:
        return [(intake.admit(plan, operator.ids.new()).run, plan) for plan in plans]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Readings of this machine's monotonic clock, seconds."""

    began_at: float
    up_at: float
    ended_at: float


def report(
    operator: Operator,
    stack: Stack,
    submitted: Sequence[tuple[Run, Plan]],
    timing: Timing,
    terraform: str,
) -> dict[str, Json]:
    """Return the demo's result; what it says of order and routing was not computed by a scheduler.

    Raises:
        Unavailable: The graph store does not answer.
    """
    graph = operator.graph
    runs = [run for run in graph.runs.read([run.id for run, _ in submitted]) if run is not None]
    tasks = [task for run in runs for task in graph.tasks.of_run(run.id)]
    before = predecessors(submitted)
    facts = step_records(stack)
    counters = count(facts, tasks, before, living(facts))
    done = sum(task.state in SATISFYING for task in tasks)
    applies = len(applied(states(stack), tasks, before))
    first_end = min((fact.boot for fact in facts if fact.event == "end"), default=timing.ended_at)
    conflicts = Counter(conflict.kind for conflict in graph.conflicts.recent(_CONFLICTS_MAX))
    is_done = all(run.state is RunState.DONE for run in runs) and done == len(tasks)
    return {
        "regions": list(stack.regions),
        "runs": len(runs),
        "tasks": len(tasks),
        "done": done,
        "terraform": terraform,
        "terraform_applies": applies,
        "attempts": sum(task.attempt for task in tasks),
        "conflicts": {
            "claims": conflicts["claim"],
            "assignments": conflicts["assignment"],
            "requeued": sum(claims_without_start(task) for task in tasks),
        },
        "workers": {name: _living_workers(graph, name) for name in stack.regions},
        "misrouted": counters.misrouted,
        "order_violations": counters.order_violations,
        "overlaps": counters.overlaps,
        "done_twice": counters.done_twice,
        "strays": counters.strays,
        "capacity_overruns": counters.capacity_overruns,
        "first_step_s": round(first_end - timing.up_at, 1),
        "seconds_to_up": round(timing.up_at - timing.began_at, 1),
        "seconds": round(timing.ended_at - timing.began_at, 1),
        "ok": is_done and counters.total == 0,
    }


def predecessors(submitted: Sequence[tuple[Run, Plan]]) -> dict[TaskId, list[TaskId]]:
    """Return the direct predecessors of every task, from the plans as they were submitted."""
    before: dict[TaskId, list[TaskId]] = {}
    for run, plan in submitted:
        for first, then in plan.edges:
            before.setdefault(task_id(run.id, then), []).append(task_id(run.id, first))
    return before


def claims_without_start(task: Task) -> int:
    """Return how often the task was claimed, and given back before it was started."""
    claims = -(-task.token.number // _EVERY_CLAIM)
    return max(0, claims - task.attempt)


def _living_workers(graph: GraphStores, region: str) -> int:
    """Count those whose process lives; one that was killed keeps its lease for a while."""
    return sum(started_at(worker.pid) > 0 for worker in graph.instances.workers(region))


def report_lines(found: dict[str, Json]) -> list[str]:
    """Return the result for people."""
    conflicts = found["conflicts"]
    applies = (
        "no terraform was to be had: its steps were simulated"
        if found["terraform"] == "absent"
        else f"{found['terraform_applies']} terraform applies whose outputs a later step has read"
    )
    workers = ", ".join(f"{region} {n}" for region, n in found["workers"].items())
    return [
        f"{found['done']} of {found['tasks']} tasks done in {found['runs']} runs over"
        f" {', '.join(found['regions'])}, {found['attempts']} attempts",
        applies,
        f"conflicts: {conflicts['claims']} claims, {conflicts['assignments']} assignments,"
        f" {conflicts['requeued']} requeued; workers: {workers}",
        f"from the step processes' own log: {found['misrouted']} misrouted,"
        f" {found['order_violations']} order violations, {found['overlaps']} overlaps,"
        f" {found['done_twice']} done twice, {found['strays']} strays,"
        f" {found['capacity_overruns']} capacity overruns",
        f"up after {found['seconds_to_up']:g} s, first step done {found['first_step_s']:g} s later,"
        f" {found['seconds']:g} s in all: {'ok' if found['ok'] else 'NOT ok'}",
    ]


def _plan(
    operator: Operator, known: Sequence[Region], name: str, regions: Sequence[str], terraform: str
) -> Plan:
    zone = checked_zone(known, name, ZONES[name], regions, [], TENANT, operator.clock.now())
    plan = plan_of(create_zone(operator.graph, operator.auditor, operator.quotas, zone), known)
    is_absent = terraform == "absent"
    return simulated(plan, TIME_SCALE, lambda spec: is_absent and spec.runner == "terraform")
