"""Real Celery workers, as processes of their own, on a real broker; ended in every way there is."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from region_scheduler.domain.ids import ClaimId, TaskId
from region_scheduler.domain.task import SCHEMA, Token
from region_scheduler.drivers.celery.app import build_app
from region_scheduler.drivers.celery.queue import CeleryQueue
from region_scheduler.ports.queue import AttemptMessage, queue_name
from tests.integration.celery.worker_program import KEY
from tests.services import BROKERS, Broker, Valkey, broker, eventually
from tests.ties import tied

ROOT = Path(__file__).parents[3]
# Celery looks after its children when one's end is signalled, and that signal may come before the
# end can be seen; then the next look is its timer's.
POOL_CHECK_S = 5.0
CHILD_START_S = 3.0
PROGRAM = Path(__file__).with_name("worker_program.py")


@pytest.fixture(params=BROKERS, scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Broker]:
    with broker(request.param, tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def queue(server: Broker) -> Iterator[CeleryQueue]:
    server.start()  # an earlier test may have left it stopped
    server.forget(*(queue_name("eu-west", pool) for pool in ("default", "big", "other")))
    made = CeleryQueue(build_app(server.url, visibility_timeout_s=60), "eu-west", KEY)
    yield made
    made.close()


class Workers:
    """Worker processes and what they wrote."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        self._file = folder / "events"
        self._processes: list[psutil.Popen] = []

    def start(
        self,
        kind: str = "prefork",
        concurrency: int = 1,
        pools: str = "default",
        visibility_timeout_s: float = 60,
    ) -> psutil.Popen:
        """Start one and wait until it takes messages."""
        ready = self.count("ready")
        arguments = [self._url, self._file, kind, concurrency, pools, visibility_timeout_s]
        with (self._folder / "log").open("ab") as log:
            process = psutil.Popen(
                tied([sys.executable, PROGRAM, *(str(value) for value in arguments)]),
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=log,
                stderr=log,
            )
        self._processes.append(process)
        eventually(lambda: self.count("ready") > ready, timeout_s=30)
        return process

    def events(self) -> list[dict[str, Any]]:
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        return [json.loads(line) for line in lines]

    def count(self, event: str, task: str = "") -> int:
        return sum(
            found["event"] == event and (not task or found.get("task") == f"tasks/{task}")
            for found in self.events()
        )

    def log(self) -> str:
        return (self._folder / "log").read_text()

    def kill_all(self) -> None:
        """Kill each with its children."""
        for process in self._processes:
            with suppress(psutil.NoSuchProcess):
                children = process.children(recursive=True)
                process.kill()
                process.wait(10)
                for child in children:
                    with suppress(psutil.NoSuchProcess):
                        child.kill()


@pytest.fixture
def workers(server: Broker, tmp_path: Path) -> Iterator[Workers]:
    made = Workers(server.url, tmp_path)
    yield made
    made.kill_all()


def message(name: str, pool: str = "default") -> AttemptMessage:
    return AttemptMessage(
        task=TaskId(f"tasks/{name}"), token=Token(1, ClaimId("c")), region="eu-west", pool=pool
    )


@pytest.mark.parametrize("kind", ["prefork", "threads"])
def test_a_worker_runs_what_its_pools_are_sent_and_nothing_else(
    workers: Workers, queue: CeleryQueue, kind: str
) -> None:
    workers.start(kind, concurrency=2, pools="default,big")
    names = [f"quick.{n}" for n in range(20)]

    queue.publish([message(name) for name in names])
    queue.publish([message("quick.big", pool="big"), message("quick.other", pool="other")])

    eventually(lambda: workers.count("end") == 21, timeout_s=20)
    assert all(workers.count("start", name) == 1 for name in [*names, "quick.big"])
    assert (queue.length("default"), queue.length("big"), queue.length("other")) == (0, 0, 1)
    children = {event["pid"] for event in workers.events() if event["event"] == "child"}
    assert {event["pid"] for event in workers.events() if event["event"] == "end"} <= children
    assert len(children) == (2 if kind == "prefork" else 1)


def test_fai_006_a_busy_worker_keeps_no_message_that_an_idle_one_could_run(
    workers: Workers, queue: CeleryQueue
) -> None:
    """One slot each; nothing is prefetched beyond what runs."""
    workers.start(concurrency=1)
    workers.start(concurrency=1)
    queue.publish([message("slow.1")])
    eventually(lambda: workers.count("start", "slow.1") == 1)

    queue.publish([message(f"quick.{n}") for n in range(6)])

    eventually(lambda: workers.count("end") == 7, timeout_s=20)
    events = [(found["event"], found["pid"], found.get("task", "")) for found in workers.events()]
    busy = next(pid for event, pid, task in events if (event, task) == ("start", "tasks/slow.1"))
    ends = [task for event, _, task in events if event == "end"]
    assert ends[-1] == "tasks/slow.1", "none of the six waited for it"
    assert sorted(ends[:-1]) == [f"tasks/quick.{n}" for n in range(6)]
    assert [task for event, pid, task in events if event == "start" and pid == busy] == [
        "tasks/slow.1"
    ]


@pytest.mark.parametrize("kind", ["prefork", "threads"])
def test_stk_022_what_takes_messages_says_so_while_it_does_and_no_longer(
    workers: Workers, queue: CeleryQueue, kind: str
) -> None:
    """Idle, busy or freed again it goes round; frozen it says nothing, though its process lives."""
    worker = workers.start(kind)

    def goes_round() -> None:
        rounds = workers.count("progress")
        eventually(lambda: workers.count("progress") > rounds + 1, timeout_s=10)

    goes_round()
    queue.publish([message("slow.1")])
    eventually(lambda: workers.count("start", "slow.1") == 1)
    goes_round()
    assert workers.count("end", "slow.1") == 0
    worker.send_signal(signal.SIGUSR2)
    eventually(lambda: workers.count("end", "slow.1") == 1)
    rounds = workers.count("progress")
    queue.publish([message("quick.2")])

    time.sleep(3)  # longer than any round

    assert worker.is_running()
    assert workers.count("progress") == rounds
    assert workers.count("start", "quick.2") == 0


def test_a_killed_child_costs_a_redelivery_and_a_new_child(
    workers: Workers, queue: CeleryQueue
) -> None:
    workers.start(concurrency=1)

    queue.publish([message("die.1")])

    eventually(lambda: workers.count("end", "die.1") == 1, timeout_s=15)
    starts = [event for event in workers.events() if event["event"] == "start"]
    assert len(starts) == 2
    assert starts[0]["pid"] != starts[1]["pid"]
    assert starts[1]["at"] - starts[0]["at"] < POOL_CHECK_S + CHILD_START_S
    assert workers.count("child") == 2


def test_a_killed_worker_costs_a_redelivery_after_the_visibility_timeout_at_most(
    workers: Workers, queue: CeleryQueue
) -> None:
    worker = workers.start(concurrency=1, visibility_timeout_s=4)
    queue.publish([message("slow.1")])
    eventually(lambda: workers.count("start", "slow.1") == 1)
    children = worker.children()
    worker.kill()
    worker.wait(10)
    for child in children:
        with suppress(psutil.NoSuchProcess):
            child.kill()

    workers.start(concurrency=1, visibility_timeout_s=4)

    eventually(lambda: workers.count("end", "slow.1") == 1, timeout_s=30)
    assert workers.count("start", "slow.1") == 2


@pytest.mark.parametrize("kind", ["prefork", "threads"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_told_to_end_says_so_finishes_its_attempt_and_leaves_the_rest(
    workers: Workers, queue: CeleryQueue, number: signal.Signals, kind: str
) -> None:
    worker = workers.start(kind, concurrency=1)
    queue.publish([message("slow.1")])
    eventually(lambda: workers.count("start", "slow.1") == 1)

    worker.send_signal(number)
    queue.publish([message("quick.2")])

    eventually(lambda: workers.count("stop") == 1, timeout_s=5)
    worker.wait(20)
    assert workers.count("end", "slow.1") == 1
    assert workers.count("start", "quick.2") == 0
    workers.start(kind, concurrency=1)
    eventually(lambda: workers.count("end", "quick.2") == 1, timeout_s=15)
    assert workers.count("start", "slow.1") == 1


def test_a_worker_outlives_a_restart_of_its_broker(
    workers: Workers, queue: CeleryQueue, server: Broker
) -> None:
    workers.start(concurrency=1)
    queue.publish([message("slow.1")])
    eventually(lambda: workers.count("start", "slow.1") == 1)

    server.stop()
    server.start()
    queue.publish([message("quick.2")])

    eventually(lambda: workers.count("end", "quick.2") == 1, timeout_s=30)
    rounds = workers.count("progress")
    eventually(lambda: workers.count("progress") > rounds)
    # RabbitMQ delivers anew what a lost connection had not acknowledged; its start is refused then.
    assert workers.count("end", "slow.1") == (1 if isinstance(server, Valkey) else 2)


def test_what_cannot_be_handled_is_spent_and_the_worker_goes_on(
    workers: Workers, queue: CeleryQueue, server: Broker
) -> None:
    workers.start(concurrency=1)
    forger = CeleryQueue(build_app(server.url, visibility_timeout_s=60), "eu-west", b"other key")

    queue.publish([message("fail.1")])
    forger.publish([message("quick.forged")])
    queue.publish([message("quick.3")])

    eventually(lambda: workers.count("end", "quick.3") == 1, timeout_s=15)
    assert workers.count("start", "fail.1") == 1
    assert workers.count("start", "quick.forged") == 0
    assert queue.length("default") == 0
    assert "message dropped" in workers.log()
    assert "planted" in workers.log()
    forger.close()


def test_a_message_of_another_version_is_handed_back_slowly(
    workers: Workers, queue: CeleryQueue
) -> None:
    workers.start(concurrency=1)

    queue.publish([replace(message("quick.new"), schema=SCHEMA + 1)])

    eventually(lambda: workers.log().count("message handed back") >= 2, timeout_s=15)
    assert workers.log().count("message handed back") < 10
    assert workers.count("start") == 0
    queue.publish([message("quick.2")])
    eventually(lambda: workers.count("end", "quick.2") == 1, timeout_s=15)


def test_a_worker_is_small(workers: Workers) -> None:
    worker = workers.start(concurrency=2)
    eventually(lambda: workers.count("child") == 2)

    used = sum(one.memory_full_info().pss for one in [worker, *worker.children(recursive=True)])

    assert used < 150 * 2**20, f"{used / 2**20:.0f} MB"


def test_a_worker_that_ends_leaves_no_process(workers: Workers) -> None:
    worker = workers.start(concurrency=2)
    children = worker.children(recursive=True)
    assert len(children) >= 2

    worker.send_signal(signal.SIGTERM)

    assert worker.wait(20) == 0
    eventually(lambda: not any(child.is_running() for child in children))
