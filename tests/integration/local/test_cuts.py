"""Regions are cut off in three ways at once; what their steps wrote into files says who ran when.

The files are the steps' own: neither a worker nor its shim writes them. One step of each region
also ignores the interrupt that comes before its deadline.
"""

from __future__ import annotations

import http.client
import json
import time
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from region_scheduler.assembly.operator import Operator
from region_scheduler.config.load import load
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.ids import ReceiptId, task_id
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import EventKind, Task, TaskSpec
from region_scheduler.local.evidence import living, step_records
from region_scheduler.local.links import Links
from region_scheduler.local.stack import Stack
from region_scheduler.local.up import LocalStack, Wish
from region_scheduler.runtime.system import SystemClock, UuidIds
from region_scheduler.verify.counters import count
from region_scheduler.worker.processes import RECEIPT_VARIABLE
from tests.integration.local.running import all_done_once, eventually

BOTH_WAYS, ONE_WAY, FLAPPING, WHOLE = "both-ways", "one-way", "flapping", "whole"
REGIONS = (BOTH_WAYS, ONE_WAY, FLAPPING, WHOLE)
CUT = REGIONS[:3]
STEPS = 2
FLAPS = 3
PATIENCE_S = 90.0
WRITES = f"""
import os, signal, sys, time
folder, stubborn, seconds = sys.argv[1:]
if stubborn == "1":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
file = os.open(os.path.join(folder, os.environ["{RECEIPT_VARIABLE}"]), os.O_CREAT | os.O_WRONLY)
end = time.monotonic() + float(seconds)
while time.monotonic() < end:
    os.write(file, b"%.6f\\n" % time.clock_gettime(time.CLOCK_BOOTTIME))
    time.sleep(0.02)
"""


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalStack]:
    wish = Wish(
        state_dir=tmp_path / "state", regions=REGIONS, concurrency=2 * STEPS, distant_ms=100.0
    )
    stack = LocalStack(wish, SystemClock(), UuidIds(), print)
    stack.start()
    yield stack
    stack.stop()
    assert stack.join(60.0)


@pytest.fixture
def operator(local: LocalStack) -> Iterator[Operator]:
    with ExitStack() as closing:
        yield Operator(load(local.stack.settings(WHOLE)).settings, closing)


def plan(folder: Path) -> Plan:
    """Return steps of all regions that are cut off; each may run anywhere."""
    tasks = tuple(
        TaskSpec(
            name=f"{region}-{n}",
            runner="command",
            inputs={"argv": ["{python}", "-I", "-S", "-c", WRITES, str(folder), str(n), "8"]},
            region=region,
            allowed_regions=REGIONS,
        )
        for region in CUT
        for n in range(STEPS)
    )
    return Plan(
        name="cut", tenant="acme", home_region=WHOLE, regions=REGIONS, tasks=tasks, edges=()
    )


def tasks_of(operator: Operator, run: Run, plan: Plan) -> list[Task]:
    read = operator.graph.tasks.read([task_id(run.id, spec.name) for spec in plan.tasks])
    return [task for task in read if task is not None]


def ask(stack: Stack, method: str, path: str, body: Any = None) -> Any:
    link = http.client.HTTPConnection(urlsplit(stack.engine_url(WHOLE)).netloc, timeout=10)
    headers = {"authorization": f"Basic {b64encode(b'root:').decode()}"}
    link.request(method, f"/_admin/faults{path}", json.dumps(body), headers)
    answer = link.getresponse()
    said = json.loads(answer.read())
    link.close()
    assert answer.status < 400, said
    return said


def written(folder: Path) -> dict[ReceiptId, tuple[float, float]]:
    """Return when the step of each attempt wrote first and last."""
    found = {}
    for file in folder.iterdir():
        lines = [line for line in file.read_text().splitlines(keepends=True) if line[-1] == "\n"]
        if lines:
            found[ReceiptId(file.name)] = (float(lines[0]), float(lines[-1]))
    return found


def regions_of(task: Task) -> dict[ReceiptId, str]:
    """Return where each attempt was started."""
    return {e.receipt_id: e.region for e in task.history if e.kind is EventKind.STARTED}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_whatever_the_cut_the_steps_of_a_region_end_before_others_begin_theirs(
    local: LocalStack, operator: Operator, tmp_path: Path
) -> None:
    folder = tmp_path / "written"
    folder.mkdir()
    wanted, links = plan(folder), Links(local.stack)
    with operator.submitter() as intake:
        run = intake.admit(wanted, "cut").run

    def all_run() -> bool:
        tasks = tasks_of(operator, run, wanted)
        return all(t.state is TaskState.RUNNING and t.region == t.spec.region for t in tasks)

    eventually(all_run, PATIENCE_S)
    eventually(lambda: len(written(folder)) == len(wanted.tasks), PATIENCE_S)

    links.cut(BOTH_WAYS)
    rule = ask(local.stack, "POST", "", {"kind": "answer_dropped", "region": ONE_WAY})["number"]
    for _ in range(FLAPS):
        links.cut(FLAPPING)
        time.sleep(2.5)
        links.heal(FLAPPING)
        time.sleep(1.0)
    links.heal(BOTH_WAYS)
    ask(local.stack, "DELETE", f"/{rule}")
    eventually(
        lambda: all(t.state is TaskState.DONE for t in tasks_of(operator, run, wanted)), PATIENCE_S
    )

    tasks = tasks_of(operator, run, wanted)
    assert all_done_once(tasks)
    facts = step_records(local.stack)
    counters = count(facts, tasks, {}, living(facts))
    assert counters.total == 0, counters
    wrote, attempts = written(folder), {task.id: regions_of(task) for task in tasks}
    told: dict[str, list[str]] = defaultdict(list)
    for task in tasks:
        spans = sorted(wrote[receipt] for receipt in attempts[task.id] if receipt in wrote)
        assert all(before[1] < after[0] for before, after in pairwise(spans)), (task.id, spans)
        gaps = [f"{after[0] - before[1]:.2f}" for before, after in pairwise(spans)]
        told[task.spec.region].append(
            f"{len(spans)} attempts, {' and '.join(gaps) or 'no'} s apart"
        )
    for region, lines in told.items():
        print(f"{region}: {'; '.join(lines)}")  # noqa: T201
    assert set(wrote) <= {receipt for of_one in attempts.values() for receipt in of_one}
    # Where nothing was heard for longer than a lease lasts, each step was begun again.
    for region in (BOTH_WAYS, ONE_WAY):
        again = [len(attempts[task.id]) for task in tasks if task.spec.region == region]
        assert min(again) > 1, region
