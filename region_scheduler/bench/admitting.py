"""Submitters as processes of their own, admitting into an engine over HTTP."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

import orjson

from region_scheduler.admission.importers.graph import GraphOptions, parsed, plan_of_graph
from region_scheduler.admission.intake import Intake
from region_scheduler.admission.saga import AdmissionSaga
from region_scheduler.assembly.production import open_graph
from region_scheduler.assembly.relational import relational
from region_scheduler.bench.engine_client import RawClient, Round
from region_scheduler.config.load import load
from region_scheduler.domain.admission import body_digest
from region_scheduler.domain.ids import Incarnation
from region_scheduler.domain.limits import Limits
from region_scheduler.domain.tenant import Quota
from region_scheduler.identity.quotas import Quotas
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.runtime.lanes import side_by_side
from region_scheduler.runtime.system import SystemClock, UuidIds, collect_seldom

REGION = "eu-west"
_BATCH = 1_000
_CLIENTS = 4
"""Whom one submitter serves at once, as a serving process does."""


class _Silent:
    """Wakes nobody: no scheduler is there."""

    def wake(self, region: str) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where a submitter works.

    Attributes:
        port: Of the engine.
        directory: Of its relational store.
    """

    port: int
    directory: Path


@dataclass(frozen=True, slots=True)
class BigAdmission:
    """What one submitter needed for a big graph.

    Attributes:
        seconds: From the bytes of the submission to its published run.
        rss_mb: The most memory that its process had, in MB.
    """

    seconds: float
    rss_mb: float


@contextmanager
def _submitter(site: Site, limits: Limits) -> Iterator[Intake]:
    collect_seldom()
    with ExitStack() as closing:
        url = f"http://127.0.0.1:{site.port}"
        settings = load({"region": REGION, "arango": {"url": url}}).settings
        graph = open_graph(settings, closing)
        store = closing.enter_context(relational(f"sqlite:///{site.directory}/{REGION}.db"))
        store.backlog.prepare()
        clock, ids = SystemClock(), UuidIds()
        settler = Settler(graph, _Silent(), clock, "bench")
        saga = AdmissionSaga(REGION, graph, store.metadata, settler, side_by_side)
        quotas = Quotas(graph, Quota(), clock)
        yield Intake(graph, saga, Incarnation("bench:1"), clock, ids, quotas, limits)


def options(limits: Limits) -> GraphOptions:
    """Return how the graphs of a benchmark become plans."""
    return GraphOptions(
        tenant="acme", home_region=REGION, regions=(REGION,), serves={}, limits=limits
    )


def admit_big(site: Site, body_path: Path, limits: Limits) -> BigAdmission:
    """Admit the graph in a file, in a process that does nothing else."""
    with _submitter(site, limits) as intake:
        clock = SystemClock()
        began_at = clock.monotonic()
        body = body_path.read_bytes()
        plan = plan_of_graph(parsed(body, "bench", limits), options(limits))
        intake.admit(plan, "big", body_digest(body))
        seconds = clock.monotonic() - began_at
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return BigAdmission(seconds, peak_kb / 1e3)


def admit_small(site: Site, name: str, seconds: float) -> Round:
    """Admit runs of a few tasks, each under a key of its own, for several clients at once."""
    clock = SystemClock()
    with _submitter(site, Limits()) as intake, ThreadPoolExecutor(_CLIENTS) as clients:
        began_at = clock.monotonic()

        def client(number: int) -> list[float]:
            latencies: list[float] = []
            while (asked_at := clock.monotonic()) - began_at < seconds:
                _admit_small(intake, f"{name} {number} {len(latencies)}")
                latencies.append(clock.monotonic() - asked_at)
            return latencies

        latencies = list(chain.from_iterable(clients.map(client, range(_CLIENTS))))
        return Round(len(latencies), clock.monotonic() - began_at, latencies)


def _admit_small(intake: Intake, key: str) -> None:
    body = _small_graph()
    plan = plan_of_graph(parsed(body, "bench"), options(Limits()))
    intake.admit(plan, key, body_digest(body))


@cache
def _small_graph() -> bytes:
    nodes = [{"id": name, "runner": "simulate", "runtime_s": 1} for name in "abcde"]
    edges = [["a", "b"], ["a", "c"], ["b", "d"], ["c", "d"], ["d", "e"]]
    return orjson.dumps({"name": "small", "nodes": nodes, "edges": edges})


def insert_bare(port: int, tasks: int, edges: int) -> float:
    """Return the seconds that the engine needs for so many bare documents, in batches.

    Less no admission can need: they are documents of a few bytes, sent by a client that does
    nothing else, into collections with the indexes that the product needs.
    """
    client = RawClient(port)
    path = "/_db/bare/_api"
    client("POST", "/_db/_system/_api/database", {"name": "bare"})
    client("POST", f"{path}/collection", {"name": "tasks"})
    client("POST", f"{path}/collection", {"name": "dependencies", "type": 3})
    for collection, fields in (("tasks", ["run", "state"]), ("dependencies", ["run"])):
        index = {"type": "persistent", "fields": fields}
        client("POST", f"{path}/index?collection={collection}", index)
    clock = SystemClock()
    began_at = clock.monotonic()
    for begin in range(0, tasks, _BATCH):
        batch = [
            {"_key": f"{n}", "run": "r", "state": "pending"} for n in range(begin, begin + _BATCH)
        ]
        client("POST", f"{path}/document/tasks", batch)
    for begin in range(0, edges, _BATCH):
        batch = [
            {
                "_key": f"{n}",
                "_from": f"tasks/{n % tasks}",
                "_to": f"tasks/{n * 7 % tasks}",
                "run": "r",
            }
            for n in range(begin, begin + _BATCH)
        ]
        client("POST", f"{path}/document/dependencies", batch)
    return clock.monotonic() - began_at


def insert_single(port: int, seconds: float) -> float:
    """Return how many documents a second one bare client inserts one by one, each synced."""
    client = RawClient(port)
    client("POST", "/_db/_system/_api/database", {"name": "single"})
    client("POST", "/_db/single/_api/collection", {"name": "tasks", "waitForSync": True})
    clock = SystemClock()
    count = 0
    began_at = clock.monotonic()
    while clock.monotonic() - began_at < seconds:
        client("POST", "/_db/single/_api/document/tasks", {"_key": f"{count}"})
        count += 1
    return count / (clock.monotonic() - began_at)
