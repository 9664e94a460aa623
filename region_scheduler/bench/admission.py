"""Measure admission: `region-scheduler bench admission`.

How long the checks of a big graph take and how long, and with how much memory, one submitter needs
to admit it; how many small runs two submitters admit a second.
"""

from __future__ import annotations

import gc
import itertools
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import orjson

from region_scheduler.admission.importers.graph import parsed, plan_of_graph
from region_scheduler.admission.rules import checked
from region_scheduler.bench.admitting import (
    REGION,
    Site,
    admit_big,
    admit_small,
    insert_bare,
    insert_single,
    options,
)
from region_scheduler.bench.engine import server
from region_scheduler.bench.figures import Figure
from region_scheduler.bench.rounds import in_processes, summary
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.dag import Dag, Edge
from region_scheduler.domain.limits import Limits
from region_scheduler.domain.task import TaskSpec
from region_scheduler.errors import Rejected
from region_scheduler.runtime.system import SystemClock

TASKS = 100_000
EDGES = 200_000
CHECKED_S = 1.0
ADMITTED_S = 20.0
ADMITTED_MB = 400.0
SMALL_RUNS_S = 200.0
_WIDE = Limits(tasks_max=TASKS, edges_max=EDGES)
_STRIDE = 7_919
"""A prime: predecessors lie all over the graph, as they do in real ones."""
_ROUNDS = 5
_SUBMITTERS = 2


def measure(seconds: float) -> list[Figure]:
    """Return the figures of admission.

    Args:
        seconds: Of each measured round.
    """
    return [*_checking(), *_admitting_big(), *_admitting_small(seconds)]


def _checking() -> Iterator[Figure]:
    names, edges = _graph()
    sent = orjson.dumps(_document(names, edges))
    plan = _plan(names, edges)
    limit = f"a bare walk of the edges {_best(lambda: _floor(names, edges)):.2f} s"
    title = f"{TASKS:,} tasks, {EDGES:,} edges"
    rules_s = _best(lambda: checked(plan, _WIDE))
    yield Figure(f"{title}: checked", rules_s, "s", CHECKED_S, limit)
    graph_s = _best(lambda: Dag.checked(names, edges))
    yield Figure("  of it, closed and acyclic", graph_s, "s", None, limit)
    json = f"JSON read {_best(lambda: orjson.loads(sent)):.2f} s"
    document_s = _best(lambda: _from_body(sent, _WIDE))
    yield Figure("  from its bytes to a checked plan", document_s, "s", None, json)
    for name, body in _too_big().items():
        refused_s = _best(partial(_refused, body), 1)
        yield Figure(f"  refused: {name}", refused_s, "s", CHECKED_S, limit)


def _admitting_big() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as text:
        directory = Path(text)
        body = directory / "body.json"
        body.write_bytes(orjson.dumps(_document(*_graph())))
        with server(directory / "engine") as (port, _):
            # In a process of its own: its memory is what the submitter needs, and nothing else.
            site = Site(port, directory)
            (admitted,) = in_processes([(admit_big, (site, body, _WIDE))])
        with server(directory / "bare") as (port, _):
            bare_s = insert_bare(port, TASKS, EDGES)
    limit = f"as many bare documents {bare_s:.1f} s"
    yield Figure("  admitted", admitted.seconds, "s", ADMITTED_S, limit)
    sent = f"{len(orjson.dumps(_document(*_graph()))) / 1e6:.0f} MB of JSON"
    yield Figure("  memory of its submitter", admitted.rss_mb, "MB", ADMITTED_MB, sent)


def _admitting_small(seconds: float) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as text:
        directory = Path(text)
        with server(directory / "engine") as (port, _):
            bare = insert_single(port, min(seconds, 1.0))
            site = Site(port, directory)
            calls = [(admit_small, (site, f"s{n}", seconds)) for n in range(_SUBMITTERS)]
            rounds = summary(in_processes(calls))
    limit = f"a bare client's synced inserts, one by one, {bare:,.0f}/s"
    title = f"small runs through {_SUBMITTERS} submitters"
    yield Figure(title, rounds["per_s"], "runs/s", SMALL_RUNS_S, limit)
    yield Figure("  their median", rounds["p50_ms"], "ms", None, limit)
    yield Figure("  their p99", rounds["p99_ms"], "ms", None, limit)


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
    where = (REGION,)
    tasks = tuple(
        TaskSpec(
            name=name,
            runner="simulate",
            inputs={"duration_s": 1},
            region=REGION,
            allowed_regions=where,
        )
        for name in names
    )
    return Plan(
        name="bench",
        tenant="acme",
        home_region=REGION,
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
    checked(plan_of_graph(parsed(body, "bench", limits), options(limits)), limits)


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
