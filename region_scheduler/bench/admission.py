"""How long the checks of admission take, beside what the interpreter needs for the bare walk."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import orjson

from region_scheduler.admission.importers.graph import GraphOptions, parsed, plan_of_graph
from region_scheduler.admission.rules import checked
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.dag import Dag, Edge
from region_scheduler.domain.limits import Limits
from region_scheduler.domain.task import TaskSpec
from region_scheduler.errors import Rejected
from region_scheduler.runtime.system import SystemClock

TASKS = 100_000
EDGES = 200_000
_WIDE = Limits(tasks_max=TASKS, edges_max=EDGES)
_STRIDE = 7_919
"""A prime: predecessors lie all over the graph, as they do in real ones."""
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Checked:
    """Seconds, each the best of a few rounds.

    Attributes:
        floor_s: Two dictionaries of lists filled from the edges: less nobody can do.
        dag_s: The graph alone: closed, acyclic, in order.
        rules_s: All rules of admission over an expanded plan, the graph among them.
        document_s: From the bytes of a submission to a checked plan.
        refusals_s: Until a graph that is too big, too deep, too wide or has a big label is refused.
    """

    floor_s: float
    dag_s: float
    rules_s: float
    document_s: float
    refusals_s: dict[str, float]


def check_times() -> Checked:
    """Return how long a graph of 100,000 tasks and 200,000 edges is checked."""
    names, edges = _graph()
    sent = orjson.dumps(_document(names, edges))
    plan = _plan(names, edges)
    return Checked(
        floor_s=_best(lambda: _floor(names, edges)),
        dag_s=_best(lambda: Dag.checked(names, edges)),
        rules_s=_best(lambda: checked(plan, _WIDE)),
        document_s=_best(lambda: _from_body(sent, _WIDE)),
        refusals_s={name: _best(partial(_refused, body), 1) for name, body in _too_big().items()},
    )


def table(found: Checked) -> list[str]:
    """Return the figures as lines for people."""
    title = f"{TASKS:,} tasks, {EDGES:,} edges"
    return [
        f"{title}: bare walk of the edges     {found.floor_s:6.3f} s  (primitive limit)",
        f"{title}: graph closed and acyclic   {found.dag_s:6.3f} s",
        f"{title}: all rules of admission     {found.rules_s:6.3f} s",
        f"{title}: from bytes to a checked plan {found.document_s:4.3f} s",
        *(f"refused: {name:38} {seconds:6.3f} s" for name, seconds in found.refusals_s.items()),
    ]


def _graph() -> tuple[list[str], list[Edge]]:
    names = [f"task-{n}" for n in range(TASKS)]
    edges = []
    for n in range(1, TASKS):
        edges.append((names[n - 1 - n * _STRIDE % min(n, 1_000)], names[n]))
        edges.append((names[n * _STRIDE % n // 2], names[n]))
    distinct = list(dict.fromkeys(edges))
    spare = ((names[a], names[a + 2_000]) for a in range(TASKS - 2_000))
    distinct = list(dict.fromkeys(itertools.chain(distinct, spare)))
    return names, distinct[:EDGES]


def _document(names: list[str], edges: list[Edge]) -> dict[str, object]:
    nodes = [{"id": name, "runner": "simulate", "runtime_s": 1} for name in names]
    return {"name": "bench", "nodes": nodes, "edges": edges}


def _plan(names: list[str], edges: list[Edge]) -> Plan:
    where = ("eu-west",)
    tasks = tuple(
        TaskSpec(
            name=name,
            runner="simulate",
            inputs={"duration_s": 1},
            region="eu-west",
            allowed_regions=where,
        )
        for name in names
    )
    return Plan(
        name="bench",
        tenant="acme",
        home_region="eu-west",
        regions=where,
        tasks=tasks,
        edges=tuple(edges),
    )


def _too_big() -> dict[str, bytes]:
    chain = [f"n{n}" for n in range(20_000)]
    fan = chain[:10_002]
    label = {"id": "a", "runner": "simulate", "labels": {"x": "y" * 1_000_000}}
    many = [{"id": f"n{n}", "runner": "simulate"} for n in range(100_001)]
    return {
        "100,001 nodes": orjson.dumps({"name": "x", "nodes": many, "edges": []}),
        "a chain of 20,000": orjson.dumps(_document(chain, list(itertools.pairwise(chain)))),
        "10,001 predecessors": orjson.dumps(_document(fan, [(n, fan[0]) for n in fan[1:]])),
        "a label of 1 MB": orjson.dumps({"name": "x", "nodes": [label], "edges": []}),
    }


def _floor(names: list[str], edges: list[Edge]) -> None:
    before: dict[str, list[str]] = {name: [] for name in names}
    after: dict[str, list[str]] = {name: [] for name in names}
    for first, then in edges:
        before[then].append(first)
        after[first].append(then)


def _from_body(body: bytes, limits: Limits) -> None:
    options = GraphOptions(
        tenant="acme", home_region="eu-west", regions=("eu-west",), serves={}, limits=limits
    )
    checked(plan_of_graph(parsed(body, "bench", limits), options), limits)


def _refused(body: bytes) -> None:
    try:
        _from_body(body, Limits())
    except Rejected:
        return
    raise AssertionError("a graph beyond the limits was taken")


def _best(act: Callable[[], object], rounds: int = _ROUNDS) -> float:
    clock = SystemClock()
    times = []
    for _ in range(rounds):
        gc.collect()
        began_at = clock.monotonic()
        act()
        times.append(clock.monotonic() - began_at)
    return min(times)


if __name__ == "__main__":
    for line in table(check_times()):
        print(line)  # noqa: T201 -- a report for whoever runs it
