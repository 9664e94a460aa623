"""Measure the embedded engine: `python -m region_scheduler.bench.engine [--json]`.

Every figure stands beside its target and beside the primitive that limits it on this machine in the
same run: a slow machine shows in both.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from region_scheduler.assembly import tether
from region_scheduler.bench import primitives
from region_scheduler.bench.engine_client import RawClient, batch_updates, single_updates
from region_scheduler.bench.figures import Figure, document, lines
from region_scheduler.bench.rounds import in_processes, percentile, summary
from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.embedded.arango.http.message import Request
from region_scheduler.runtime.system import SystemClock

_CLIENTS = 2
_KEYS = 2_000
_BATCH = 100
_MANY = 100_000
_READY_QUERY = """
FOR t IN tasks
  FILTER t.run == @run AND t.state == "ready"
  SORT t.remaining_s DESC
  LIMIT 100
  RETURN t
"""


def task(number: int, worker: int = 0, state: str = "pending") -> dict[str, Any]:
    """Return a task document of about 1 kB."""
    return {
        "_key": f"task-{number:06d}",
        "worker": worker,
        "run": f"run-{number // 10_000}",
        "state": state,
        "region": "eu-west",
        "remaining_s": number % 997,
        "needs": 2,
        "token": {"number": number, "claim": f"claim-{number:032d}"},
        "spec": {"runner": "terraform", "module": "network/vpc", "inputs": {"cidr": "x" * 160}},
        "history": [
            {"event": "started", "who": "scheduler-eu-west-1", "at": "2026-01-01T00:00:00Z"},
            {"event": "completed", "who": "worker-eu-west-7", "at": "2026-01-01T00:05:00Z"},
        ],
        "log_tail": "y" * 240,
    }


def measure(seconds: float) -> list[Figure]:
    """Return all figures.

    Args:
        seconds: Of each measured round.
    """
    blob = orjson.dumps(task(0))
    with tempfile.TemporaryDirectory() as text:
        directory = Path(text)
        floor = primitives.echo(seconds, _CLIENTS)
        commit_us = primitives.commit_us(directory, blob)
        limits = {
            "http": f"echo server {floor['per_s']:,.0f}/s, p99 {floor['p99_ms']:.2f} ms",
            "commit": f"one document in the log {commit_us:.0f} us",
            "json": f"JSON in and out {primitives.json_us(task(0)):.1f} us",
            "sync": f"fsync {primitives.sync_ms(directory, blob):.1f} ms",
        }
        return [
            *_over_http(directory / "http", seconds, limits),
            *_in_process(seconds, limits),
            *_ready_query(seconds, limits),
            *_many_documents(directory / "many", limits),
        ]


def _over_http(directory: Path, seconds: float, limits: dict[str, str]) -> Iterator[Figure]:
    with server(directory) as (port, _):
        _fill(RawClient(port), _CLIENTS)
        arguments = [(port, worker, _KEYS, seconds) for worker in range(_CLIENTS)]
        single = summary(in_processes([(single_updates, one) for one in arguments]))
        batched = [(port, worker, _KEYS, _BATCH, seconds) for worker in range(_CLIENTS)]
        batch = summary(in_processes([(batch_updates, one) for one in batched]))
    yield Figure(
        "conditional PATCH over HTTP, 2 clients",
        single["per_s"],
        "requests/s",
        4000,
        limits["http"],
    )
    yield Figure("  its p99", single["p99_ms"], "ms", 2, limits["http"])
    yield Figure("  its median", single["p50_ms"], "ms", None, limits["commit"])
    yield Figure("  its longest", single["max_ms"], "ms", None, limits["sync"])
    yield Figure(
        f"batches of {_BATCH} over HTTP", batch["per_s"], "documents/s", 25_000, limits["commit"]
    )


def _fill(client: RawClient, workers: int) -> None:
    client("POST", "/_db/_system/_api/database", {"name": "bench"})
    client("POST", "/_db/bench/_api/collection", {"name": "tasks"})
    for fields in (["run", "state"], ["region", "state", "remaining_s"], ["worker"]):
        index = {"type": "persistent", "fields": fields}
        client("POST", "/_db/bench/_api/index?collection=tasks", index)
    tasks = [task(w * _KEYS + n, w) for w in range(workers) for n in range(_KEYS)]
    client("POST", "/_db/bench/_api/document/tasks?silent=true", tasks)


@contextmanager
def server(directory: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Run the engine over HTTP on its data in `directory`; yield its port and its process."""
    tied = [sys.executable, "-I", "-S", tether.__file__, str(os.getpid())]
    command = [sys.executable, "-m", "region_scheduler.embedded.arango", "--port", "0"]
    process = subprocess.Popen(
        [*tied, *command, "--data", str(directory), "--cluster-rules"], stdout=subprocess.PIPE
    )
    try:
        line = process.stdout.readline() if process.stdout is not None else b""
        yield int(line.split()[1].rpartition(b":")[2]), process
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _in_process(seconds: float, limits: dict[str, str]) -> Iterator[Figure]:
    engine = _engine(_KEYS, ready=0)
    call = _caller(engine)
    known = dict(_rows(call, "FOR t IN tasks RETURN [t._key, t._rev]"))
    names = list(known)
    done = 0

    def one() -> int:
        nonlocal done
        done += 1
        key = names[done % _KEYS]
        body = {"_rev": known[key], "seq": done, "state": "claimed" if done % 3 else "ready"}
        known[key] = call("PATCH", f"/_api/document/tasks/{key}", body, ignoreRevs="false")["_rev"]
        return 1

    def batch() -> int:
        nonlocal done
        done += _BATCH
        keys = [names[(done + place) % _KEYS] for place in range(_BATCH)]
        body = [{"_key": key, "_rev": known[key], "seq": done} for key in keys]
        for result in call("PATCH", "/_api/document/tasks", body, ignoreRevs="false"):
            known[result["_key"]] = result["_rev"]
        return _BATCH

    json = limits["json"]
    yield Figure("conditional updates in process", _per_s(one, seconds), "updates/s", 10_000, json)
    yield Figure(f"  in batches of {_BATCH}", _per_s(batch, seconds), "documents/s", None, json)


def _ready_query(seconds: float, limits: dict[str, str]) -> Iterator[Figure]:
    call = _caller(_engine(10_000, ready=20))
    clock = SystemClock()
    latencies: list[float] = []
    body = {"query": _READY_QUERY, "bindVars": {"run": "run-0"}}
    ends_at = clock.monotonic() + seconds
    while (asked_at := clock.monotonic()) < ends_at:
        answer = call("POST", "/_api/cursor", body)
        latencies.append(clock.monotonic() - asked_at)
    if len(answer["result"]) != 20:
        raise RuntimeError(f"{len(answer['result'])} ready tasks found, not 20")
    median = percentile(sorted(latencies), 0.5) * 1e3
    yield Figure("20 ready of 10,000 tasks, median", median, "ms", 2, limits["json"])
    stats = answer["extra"]["stats"]
    scanned = stats["scannedFull"] + stats["scannedIndex"]
    yield Figure("  documents it looks at", scanned, "documents", None, "20 ready")


def _many_documents(directory: Path, limits: dict[str, str]) -> Iterator[Figure]:
    engine = Engine(directory, is_cluster=True, is_authenticating=False)
    _prepare(_caller(engine), _MANY, ready=200)
    engine.close()
    clock = SystemClock()
    began_at = clock.monotonic()
    with server(directory) as (_, process):
        started_s = clock.monotonic() - began_at
        place = Path(f"/proc/{process.pid}")
        lines = (place / "status").read_text(encoding="ascii").splitlines()
        resident = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
        ticks = (place / "stat").read_text(encoding="ascii").rpartition(")")[2].split()[11:13]
    processor_s = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    yield Figure(f"start with {_MANY:,} tasks", started_s, "s", 3, limits["json"])
    yield Figure("  its processor time", processor_s, "s", None, limits["json"])
    yield Figure("  resident memory", resident / 1e3, "MB", 500, f"{_MANY / 1e3:,.0f} MB of JSON")


Call = Callable[..., Any]


def _engine(count: int, ready: int) -> Engine:
    engine = Engine(is_cluster=True, seed=1)
    _prepare(_caller(engine), count, ready)
    return engine


def _prepare(call: Call, count: int, ready: int) -> None:
    call("POST", "/_api/collection", {"name": "tasks"})
    for fields in (["run", "state"], ["region", "state", "remaining_s"]):
        call("POST", "/_api/index", {"type": "persistent", "fields": fields}, collection="tasks")
    for first in range(0, count, 1000):
        tasks = [
            task(n, state="ready" if n < ready else "pending")
            for n in range(first, min(first + 1000, count))
        ]
        call("POST", "/_api/document/tasks", tasks, silent="true")


def _caller(engine: Engine) -> Call:
    headers = {"authorization": "Basic cm9vdDo="}

    def call(method: str, path: str, body: Any = None, **query: str) -> Any:
        response = engine.handle(Request(method, path, query, headers, orjson.dumps(body)))
        if response.status >= 400:
            raise RuntimeError(f"{method} {path}: {response.status} {response.body[:200]!r}")
        return orjson.loads(response.body)

    return call


def _rows(call: Call, query: str) -> list[Any]:
    rows: list[Any] = call("POST", "/_api/cursor", {"query": query, "batchSize": 1_000_000})[
        "result"
    ]
    return rows


def _per_s(act: Callable[[], int], seconds: float) -> float:
    clock = SystemClock()
    count = 0
    began_at = clock.monotonic()
    while clock.monotonic() - began_at < seconds:
        count += act()
    return count / (clock.monotonic() - began_at)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if `--check` is given and a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m region_scheduler.bench.engine")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each round")
    parser.add_argument("--json", action="store_true", help="one object on one line")
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed")
    options = parser.parse_args(arguments)
    figures = measure(options.seconds)
    if options.json:
        sys.stdout.write(orjson.dumps(document(figures)).decode() + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in lines(figures))
    return 1 if options.check and not all(figure.is_met for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
