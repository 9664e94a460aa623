"""Signals and exit codes are only real in a process of their own."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

import pytest

from region_scheduler.runtime.service import Part, Service
from tests.ties import tied

SCRIPT = """
import sys, threading
from region_scheduler.errors import BrokenInvariant
from region_scheduler.runtime.logs import set_up_logging
from region_scheduler.runtime.loop import Loop
from region_scheduler.runtime.service import Service

set_up_logging()

def say(*words):
    print(*words, flush=True)

def break_it():
    raise BrokenInvariant("planted")

class Slow:
    name = "slow"
    def start(self): say("ready")
    def stop(self): say("stopping")
    def join(self, timeout_s):
        threading.Event().wait({slow_s})
        return True

loops = [Loop("one", lambda: 0.01), Loop("two", {tick})]
Service([*loops, Slow()]).run()
say("ended")
"""


class Recorded:
    """A part that writes down what is done to it."""

    def __init__(self, name: str, log: list[str], fails: bool = False) -> None:
        self.name = name
        self._log = log
        self._fails = fails

    def start(self) -> None:
        self._log.append(f"start {self.name}")
        if self._fails:
            raise OSError("port in use")

    def stop(self) -> None:
        self._log.append(f"stop {self.name}")

    def join(self, timeout_s: float) -> bool:
        self._log.append(f"join {self.name}")
        return True


def run(slow_s: float = 0, tick: str = "lambda: None") -> subprocess.Popen[str]:
    script = SCRIPT.replace("{slow_s}", str(slow_s)).replace("{tick}", tick)
    return subprocess.Popen(
        tied([sys.executable, "-c", script]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_every_part_and_the_process_ends_well(number: signal.Signals) -> None:
    with run() as process:
        assert read_line(process) == "ready"
        process.send_signal(number)
        out, _ = process.communicate(timeout=20)

    assert out.split() == ["stopping", "ended"]
    assert process.returncode == 0


def test_a_second_sigint_ends_the_process_at_once() -> None:
    with run(slow_s=60) as process:
        assert read_line(process) == "ready"
        process.send_signal(signal.SIGINT)
        assert read_line(process) == "stopping"
        process.send_signal(signal.SIGINT)

        assert process.wait(timeout=20) == 130


def test_a_broken_invariant_in_a_thread_ends_the_process_with_its_own_code() -> None:
    with run(tick="break_it") as process:
        _, err = process.communicate(timeout=20)

    assert process.returncode == 70
    assert "planted" in err


def run_in_thread(service: Service) -> threading.Thread:
    thread = threading.Thread(target=service.run)
    thread.start()
    return thread


def test_parts_start_in_order_and_each_is_ended_before_the_one_it_rests_on() -> None:
    log: list[str] = []
    parts: Sequence[Part] = [Recorded("store", log), Recorded("loop", log)]
    service = Service(parts)
    service_thread = run_in_thread(service)
    service.stop()
    service_thread.join(5)

    started = [line for line in log if line.startswith("start")]
    assert started == ["start store", "start loop"][: len(started)]
    stopped = [line for line in log if not line.startswith("start")]
    assert stopped == ["stop loop", "join loop", "stop store", "join store"][-len(stopped) :]
    assert not service_thread.is_alive()


def test_a_part_that_cannot_start_stops_those_before_it() -> None:
    log: list[str] = []
    parts = [Recorded("store", log), Recorded("api", log, fails=True), Recorded("loop", log)]

    with pytest.raises(OSError, match="port in use"):
        Service(parts).run()

    assert log == ["start store", "start api", "stop api", "join api", "stop store", "join store"]
