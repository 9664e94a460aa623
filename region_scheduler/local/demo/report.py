"""What came of a demo, held against what it is to show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

from region_scheduler.assembly.operator import Operator
from region_scheduler.domain.ids import TaskId, task_id
from region_scheduler.domain.states import SATISFYING, RunState
from region_scheduler.domain.task import EventKind, Json, Task
from region_scheduler.local.demo.drill import CutOff, Lost, Seen
from region_scheduler.local.demo.work import Submitted
from region_scheduler.local.evidence import (
    late_completions,
    living,
    source_of,
    states,
    step_records,
)
from region_scheduler.local.stack import Stack
from region_scheduler.ports.records import GraphStores
from region_scheduler.verify.counters import Counters, count
from region_scheduler.verify.report import Status
from region_scheduler.verify.terraform import applied
from region_scheduler.verify.verifier import verify
from region_scheduler.worker.processes import started_at

_CONFLICTS_MAX = 100_000
_COUNTERS = [field.name for field in fields(Counters)]
_EVERY_CLAIM = 2  # a token rises with a claim, and again when its holder is left


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Readings of this machine's monotonic clock, seconds."""

    began_at: float
    up_at: float
    ended_at: float


def report(
    operator: Operator,
    stack: Stack,
    submitted: Sequence[Submitted],
    seen: Seen | None,
    timing: Timing,
    terraform: str,
    say: Callable[[str], None],
) -> dict[str, Json]:
    """Return the demo's result; what it says of order and routing was not computed by a scheduler.

    Args:
        operator: In whose name.
        stack: Where it was.
        submitted: Every run.
        seen: What went wrong meanwhile; None if nothing was to.
        timing: When.
        terraform: What its steps were run with.
        say: Told what is wrong with a promise that was broken, line by line.

    Raises:
        Unavailable: The graph store does not answer.
    """
    graph = operator.graph
    runs = [run for run in graph.runs.read([run.id for run, _ in submitted]) if run is not None]
    tasks = [task for task in graph.tasks.read(_ids(submitted)) if task is not None]
    before = predecessors(submitted)
    facts = step_records(stack)
    counters = count(facts, tasks, before, living(facts))
    verified = verify(source_of(operator, stack, say))
    for verdict in verified.verdicts:
        if verdict.status is Status.BROKEN:
            for line in verdict.lines():
                say(line)
    first_end = min((fact.boot for fact in facts if fact.event == "end"), default=timing.ended_at)
    conflicts = Counter(conflict.kind for conflict in graph.conflicts.recent(_CONFLICTS_MAX))
    found: dict[str, Json] = {
        "regions": list(stack.regions),
        "runs": len(runs),
        "tasks": sum(len(plan.tasks) for _, plan in submitted),
        "done": sum(task.state in SATISFYING for task in tasks),
        "terraform": terraform,
        "terraform_applies": len(applied(states(stack), tasks, before)),
        "attempts": sum(task.attempt for task in tasks),
        "conflicts": {
            "claims": conflicts["claim"],
            "assignments": conflicts["assignment"],
            "requeued": sum(claims_without_start(task) for task in tasks),
        },
        "fenced_writes": late_completions(stack),
        "failover": _failover(seen.lost, tasks) if seen and seen.lost else None,
        "cut_off": _cut_off(seen.cut_off) if seen and seen.cut_off else None,
        "invariants": {"checked": verified.checked, "violations": verified.violations},
        "workers": {name: _living_workers(graph, name) for name in stack.regions},
        **{name: getattr(counters, name) for name in _COUNTERS},
        "first_step_s": round(first_end - timing.up_at, 1),
        "seconds_to_up": round(timing.up_at - timing.began_at, 1),
        "seconds": round(timing.ended_at - timing.began_at, 1),
    }
    is_done = all(run.state is RunState.DONE for run in runs)
    missing = unmet(found, seen, is_done=is_done)
    return found | {"unmet": missing, "ok": not missing}


def unmet(found: dict[str, Json], seen: Seen | None, *, is_done: bool) -> list[str]:
    """Return what a demo was to show and did not, each in one line.

    Args:
        found: Its result.
        seen: What went wrong meanwhile; None if nothing was to.
        is_done: Whether every run is.
    """
    return [*_unmet(found, is_done=is_done), *(_unmet_drill(found, seen) if seen else ())]


def predecessors(submitted: Sequence[Submitted]) -> dict[TaskId, list[TaskId]]:
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


def report_lines(found: dict[str, Json]) -> Iterator[str]:
    """Return the result for people."""
    conflicts, invariants = found["conflicts"], found["invariants"]
    workers = ", ".join(f"{region} {n}" for region, n in found["workers"].items())
    yield (
        f"{found['done']} of {found['tasks']} tasks done in {found['runs']} runs over"
        f" {', '.join(found['regions'])}, {found['attempts']} attempts; workers: {workers}"
    )
    yield (
        "no terraform was to be had: its steps were simulated"
        if found["terraform"] == "absent"
        else f"{found['terraform_applies']} terraform applies whose outputs a later step has read"
    )
    yield (
        f"conflicts: {conflicts['claims']} claims, {conflicts['assignments']} assignments,"
        f" {conflicts['requeued']} requeued; late completions refused: {found['fenced_writes']}"
    )
    if lost := found["failover"]:
        yield (
            f"{lost['region']} was killed: given up after {lost['detected_s']:g} s, its work"
            f" went on elsewhere after {lost['recovered_s']:g} s; {lost['moved']} tasks moved,"
            f" {lost['waited']} waited for it"
        )
    if cut := found["cut_off"]:
        yield (
            f"{cut['region']} was cut off: its steps had stopped after {cut['stopped_s']:g} s,"
            f" others began them after {cut['taken_over_s']:g} s; it took work again after"
            f" {cut['returned_s']:g} s"
        )
    yield (
        f"from the step processes' own log: {found['misrouted']} misrouted,"
        f" {found['order_violations']} order violations, {found['overlaps']} overlaps,"
        f" {found['done_twice']} done twice, {found['strays']} strays,"
        f" {found['capacity_overruns']} capacity overruns"
    )
    yield f"invariants: {invariants['checked']} checked, {invariants['violations']} violations"
    yield from (f"NOT met: {what}" for what in found["unmet"])
    yield (
        f"up after {found['seconds_to_up']:g} s, first step done {found['first_step_s']:g} s later,"
        f" {found['seconds']:g} s in all: {'ok' if found['ok'] else 'NOT ok'}"
    )


def _ids(submitted: Sequence[Submitted]) -> list[TaskId]:
    return [task_id(run.id, spec.name) for run, plan in submitted for spec in plan.tasks]


def _failover(lost: Lost, tasks: Sequence[Task]) -> dict[str, Json]:
    return {
        "region": lost.region,
        "detected_s": round(lost.detected_s, 1),
        "recovered_s": round(lost.recovered_s, 1),
        "moved": sum(_left(task, lost) for task in tasks),
        "waited": lost.waited,
    }


def _left(task: Task, lost: Lost) -> bool:
    """Say whether a task went from a region to another while that was lost."""
    return any(
        entry.kind is EventKind.MOVED
        and entry.detail == f"from {lost.region}"
        and lost.since <= entry.at <= lost.until
        for entry in task.history
    )


def _cut_off(cut: CutOff) -> dict[str, Json]:
    return {
        "region": cut.region,
        "stopped_s": round(cut.stopped_s, 2),
        "taken_over_s": round(cut.taken_over_s, 2),
        "returned_s": round(cut.returned_s, 1),
    }


def _unmet(found: dict[str, Json], *, is_done: bool) -> Iterator[str]:
    """Yield what every demo is to show and this one does not."""
    if not is_done or found["done"] != found["tasks"]:
        yield f"every task is done: {found['done']} of {found['tasks']} are"
    if violations := found["invariants"]["violations"]:
        yield f"no invariant is violated: {violations} violations"
    for name in _COUNTERS:
        if found[name]:
            yield f"by the steps' own log nothing is wrong: {found[name]} {name.replace('_', ' ')}"
    for what in ("assignments", "requeued"):
        if not found["conflicts"][what]:
            yield f"contention is seen: 0 {what}"


def _unmet_drill(found: dict[str, Json], seen: Seen) -> Iterator[str]:
    """Yield what a demo is to show in which things go wrong."""
    if seen.problem:
        yield seen.problem
    if not found["fenced_writes"]:
        yield "a late write is refused: none was"
    lost, cut = found["failover"], found["cut_off"]
    for what in ("moved", "waited"):
        if lost and not lost[what]:
            yield f"tasks of {lost['region']} have {what}: 0 have"
    if cut and cut["taken_over_s"] <= cut["stopped_s"]:
        yield f"the steps in {cut['region']} stop before others begin them"
