"""The supervisor with small programs in the places of the stack's parts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.errors import Misconfigured, Unavailable
from region_scheduler.local.supervisor import Program, Supervisor, last_line
from region_scheduler.runtime.system import SystemClock
from region_scheduler.worker.processes import started_at

SLEEP = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + SLEEP
FERTILE = (
    "import subprocess, sys;"
    " subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);" + SLEEP
)


def eventually(holds: Callable[[], bool], within_s: float = 10.0) -> None:
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def program(folder: Path, name: str, script: str, **more: Any) -> Program:
    log_path = folder / f"{name}.log"
    given: dict[str, Any] = {
        "name": name,
        "argv": [sys.executable, "-c", script],
        "environ": dict(os.environ),
        "log_path": log_path,
        "is_ready": lambda _pid: log_path.exists() and "up" in log_path.read_text(),
        "ready_s": 10.0,
        "stop_s": 5.0,
    }
    return Program(**(given | more))


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def run(said: list[str]) -> Iterator[Callable[..., Supervisor]]:
    started: list[Supervisor] = []

    def start(*programs: Program) -> Supervisor:
        supervisor = Supervisor(programs, SystemClock(), said.append)
        started.append(supervisor)
        supervisor.start()
        return supervisor

    yield start
    for supervisor in started:
        supervisor.stop()
        assert supervisor.join(20)


def test_all_are_ready_when_it_has_started_and_gone_when_it_has_ended(
    tmp_path: Path, run: Callable[..., Supervisor]
) -> None:
    supervisor = run(program(tmp_path, "one", SLEEP), program(tmp_path, "two", SLEEP))
    pids = supervisor.pids()

    assert set(pids) == {"one", "two"}
    assert all(started_at(pid) for pid in pids.values())
    supervisor.stop()
    assert supervisor.join(20)
    assert not any(started_at(pid) for pid in pids.values())


def test_a_dead_one_comes_back_with_a_line(
    tmp_path: Path, run: Callable[..., Supervisor], said: list[str]
) -> None:
    supervisor = run(program(tmp_path, "one", SLEEP))
    before = supervisor.pids()["one"]

    os.kill(before, signal.SIGKILL)

    eventually(lambda: any("one came back" in line for line in said))
    assert said[0] == "one was killed by signal 9; starting it again"
    assert supervisor.pids()["one"] != before


def test_one_that_is_held_is_killed_and_stays_down_until_it_is_let_go(
    tmp_path: Path, run: Callable[..., Supervisor], said: list[str]
) -> None:
    supervisor = run(program(tmp_path, "one", SLEEP), program(tmp_path, "two", FERTILE))
    pids = supervisor.pids()
    children = Path(f"/proc/{pids['two']}/task/{pids['two']}/children").read_text().split()

    supervisor.hold(["two"])

    eventually(lambda: said == ["two was killed by signal 9; it stays down"])
    assert supervisor.pids() == {"one": pids["one"]}
    eventually(lambda: not any(started_at(int(child)) for child in children))
    time.sleep(0.3)  # a few looks
    assert supervisor.pids() == {"one": pids["one"]}

    supervisor.let_go(["two"])

    eventually(lambda: any("two came back" in line for line in said))
    assert supervisor.pids().keys() == pids.keys()


def test_one_that_dies_again_and_again_is_started_with_growing_pauses(
    tmp_path: Path, run: Callable[..., Supervisor], said: list[str]
) -> None:
    brief = "import sys, time; print('up', flush=True); time.sleep(0.3); sys.exit(3)"
    run(program(tmp_path, "one", brief))

    eventually(lambda: len([line for line in said if "ended with" in line]) >= 4)

    ends = [line for line in said if "ended with" in line]
    assert ends[0] == "one ended with exit code 3; starting it again"
    assert ends[1].endswith("starting it again in 0.4 s")
    assert ends[2].endswith("starting it again in 0.8 s")


def test_what_a_dead_one_left_behind_is_killed(
    tmp_path: Path, run: Callable[..., Supervisor], said: list[str]
) -> None:
    supervisor = run(program(tmp_path, "one", FERTILE))
    before = supervisor.pids()["one"]
    children = Path(f"/proc/{before}/task/{before}/children").read_text().split()
    assert children

    os.kill(before, signal.SIGKILL)

    eventually(lambda: not any(started_at(int(child)) for child in children))


def test_one_that_refuses_to_start_ends_all_with_what_it_said(
    tmp_path: Path, said: list[str]
) -> None:
    sleeper = program(tmp_path, "two", SLEEP)
    refusal = "import sys; sys.exit('port 1 is taken')"
    supervisor = Supervisor(
        [program(tmp_path, "one", refusal), sleeper], SystemClock(), said.append
    )

    with pytest.raises(Misconfigured, match="one ended with exit code 1: port 1 is taken"):
        supervisor.start()

    assert supervisor.pids() == {}


def test_one_whose_log_cannot_be_written_ends_all_and_names_it(
    tmp_path: Path, said: list[str]
) -> None:
    broken = program(tmp_path, "one", SLEEP, log_path=tmp_path / "none" / "one.log")
    supervisor = Supervisor([program(tmp_path, "two", SLEEP), broken], SystemClock(), said.append)

    with pytest.raises(Misconfigured, match=r"one: \S+/none/one\.log no such file"):
        supervisor.start()

    assert supervisor.pids() == {}


def test_one_that_cannot_be_started_again_leaves_the_others_alone(
    tmp_path: Path, run: Callable[..., Supervisor], said: list[str]
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    gone = program(tmp_path, "one", SLEEP, log_path=folder / "one.log", is_ready=lambda _pid: True)
    supervisor = run(gone, program(tmp_path, "two", SLEEP))
    pids = supervisor.pids()
    folder.rename(tmp_path / "elsewhere")

    os.kill(pids["one"], signal.SIGKILL)

    eventually(lambda: any("trying again in" in line for line in said))
    assert supervisor.pids() == {"two": pids["two"]}


def test_one_that_is_not_ready_in_time_ends_all(tmp_path: Path, said: list[str]) -> None:
    slow = program(tmp_path, "one", SLEEP, is_ready=lambda _pid: False, ready_s=0.2)
    supervisor = Supervisor([slow], SystemClock(), said.append)

    with pytest.raises(Unavailable, match=r"not ready after 0\.2 s"):
        supervisor.start()

    assert supervisor.pids() == {}


def test_one_that_does_not_end_is_killed(
    tmp_path: Path, run: Callable[..., Supervisor], said: list[str]
) -> None:
    supervisor = run(program(tmp_path, "one", STUBBORN, stop_s=0.3))
    pid = supervisor.pids()["one"]

    supervisor.stop()

    assert supervisor.join(10)
    assert not started_at(pid)
    assert said == ["one did not end in time and is killed"]


def test_a_higher_stage_ends_before_a_lower_one(
    tmp_path: Path, run: Callable[..., Supervisor]
) -> None:
    note = (
        "import signal, sys, time\n"
        "def end(*_):\n"
        "    time.sleep(0.2)\n"
        "    open({log!r}, 'a').write({name!r} + '\\n')\n"
        "    sys.exit()\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print('up', flush=True)\n"
        "time.sleep(60)\n"
    )
    log = str(tmp_path / "ends")
    programs = [
        program(tmp_path, name, note.format(log=log, name=name), stage=stage)
        for name, stage in (("store", 0), ("scheduler", 1), ("worker", 2))
    ]
    supervisor = run(*programs)

    supervisor.stop()
    assert supervisor.join(20)

    assert Path(log).read_text().split() == ["worker", "scheduler", "store"]


def test_programs_die_with_a_killed_supervisor(tmp_path: Path) -> None:
    """The kernel ends them; nobody is left who could."""
    script = f"""
import os, sys
from pathlib import Path
from typing import Any
from region_scheduler.local.supervisor import Program, Supervisor
from region_scheduler.runtime.system import SystemClock
folder = Path({str(tmp_path)!r})
one = Program(name="one", argv=[sys.executable, "-c", "import time; time.sleep(60)"],
              environ=dict(os.environ), log_path=folder / "log", is_ready=lambda pid: True)
supervisor = Supervisor([one], SystemClock(), print)
supervisor.start()
print(supervisor.pids()["one"], flush=True)
supervisor.join(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert started_at(pid)

    parent.kill()
    parent.wait()
    parent.stdout.close()

    eventually(lambda: not started_at(pid))


def test_the_last_line_is_what_counts(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("first\nsecond \n\n")

    assert last_line(tmp_path / "log") == "second"
    assert last_line(tmp_path / "none") == "it said nothing"
