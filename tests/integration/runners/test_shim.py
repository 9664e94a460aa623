"""What the shim promises, on real processes: every step ends with its whole tree, in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from region_scheduler.domain.lease import LOCAL_TIMINGS
from region_scheduler.worker.execute import How
from region_scheduler.worker.processes import started_at
from region_scheduler.worker.steplog import Act, StepEvent
from tests.integration.runners.eventually import eventually
from tests.integration.runners.stage import Stage, never, python

T = TypeVar("T")

REPOSITORY = Path(__file__).parents[3]
KILL_S = LOCAL_TIMINGS.kill_s

# A step that will not end by itself or by SIGINT, with a grandchild in a session of its own whose
# parent is dead: it writes the ids of both, then sleeps.
STUBBORN_TREE = """
import os, signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
if not os.fork():
    os.setsid()
    if not os.fork():
        with open("grandchild.new", "w") as file: file.write(str(os.getpid()))
        os.rename("grandchild.new", "grandchild")
        time.sleep(60)
    os._exit(0)
os.wait()
with open("step.new", "w") as file: file.write(str(os.getpid()))
os.rename("step.new", "step")
time.sleep(60)
"""
POLITE = """
import signal, sys, time
def end(*_):
    print("tidied up", flush=True)
    sys.exit(7)
signal.signal(signal.SIGINT, end)
print("ready", flush=True)
time.sleep(60)
"""


def pid_in(path: Path) -> int:
    return eventually(lambda: int(path.read_text()) if path.exists() else 0)


def is_dead(pid: int) -> bool:
    return started_at(pid) == 0


def run_in_thread(run: Callable[[], T]) -> tuple[threading.Thread, list[T]]:
    ended: list[T] = []
    thread = threading.Thread(target=lambda: ended.append(run()))
    thread.start()
    return thread, ended


@contextmanager
def worker(root: Path, lease_s: float, code: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-m", "tests.integration.runners.worker_process"]
    process = subprocess.Popen(
        [*argv, str(root), str(lease_s), code, *words], stdout=subprocess.PIPE, cwd=REPOSITORY
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_a_step_runs_to_its_end_and_is_noted_from_start_to_end(stage: Stage) -> None:
    job = stage.job()

    ended = stage.executor.execute(job, python("print('hello'); raise SystemExit(3)"), never)

    assert (ended.how, ended.code, ended.is_killed) == (How.EXITED, 3, False)
    assert 0 < ended.started_at < ended.ended_at <= stage.clock.monotonic()
    assert stage.log(job) == "hello\n"
    start, end = stage.records()
    assert (start.event, end.event) == (StepEvent.START, StepEvent.END)
    for record in (start, end):
        assert (record.task, record.token, record.receipt_id) == (
            job.task,
            job.token,
            job.receipt_id,
        )
        assert (record.attempt, record.region, record.act) == (1, "eu-west", Act.RUN)
        assert record.worker_pid == os.getpid()
    assert start.shim_pid == end.shim_pid not in {0, os.getpid()}
    assert (end.exit, end.code) == ("exited", 3)
    assert ended.started_at <= start.boot < end.boot


def test_a_killed_worker_takes_its_shim_its_step_and_every_grandchild_with_it(
    tmp_path: Path,
) -> None:
    with worker(tmp_path, 30, STUBBORN_TREE) as process:
        step = pid_in(tmp_path / "work/r1/step")
        grandchild = pid_in(tmp_path / "work/r1/grandchild")
        stage = Stage(tmp_path)
        shim = stage.records()[0].shim_pid
        assert not any(map(is_dead, (step, grandchild, shim)))

        process.send_signal(signal.SIGKILL)

        eventually(lambda: all(map(is_dead, (step, grandchild, shim))), within_s=2)
    assert stage.records()[-1].exit == "parent"
    assert eventually(lambda: not stage.receipts.live())


def test_a_fork_that_holds_the_leash_cannot_keep_a_dead_workers_step_alive(
    tmp_path: Path,
) -> None:
    with worker(tmp_path, 30, STUBBORN_TREE, "forks") as process:
        step = pid_in(tmp_path / "work/r1/step")
        grandchild = pid_in(tmp_path / "work/r1/grandchild")
        fork = pid_in(tmp_path / "fork")
        process.send_signal(signal.SIGKILL)
        try:
            eventually(lambda: is_dead(step) and is_dead(grandchild), within_s=2)
            assert not is_dead(fork)
        finally:
            os.kill(fork, signal.SIGKILL)


def test_a_stopped_worker_cannot_keep_its_step_past_the_deadline(tmp_path: Path) -> None:
    with worker(tmp_path, 2.0, STUBBORN_TREE) as process:
        step = pid_in(tmp_path / "work/r1/step")
        grandchild = pid_in(tmp_path / "work/r1/grandchild")
        process.send_signal(signal.SIGSTOP)
        try:
            eventually(lambda: is_dead(step) and is_dead(grandchild), within_s=3)
        finally:
            process.send_signal(signal.SIGCONT)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"lease"


@pytest.mark.parametrize("end", ["lease", "cap", "stop"])
def test_a_step_that_will_not_end_is_killed_with_its_tree(tmp_path: Path, end: str) -> None:
    stage = Stage(tmp_path, lease_s=1.5 if end == "lease" else 30.0)
    job = stage.job(cap_s=0.8 if end == "cap" else 20)
    work = Path(job.work_dir)
    deadline = stage.lease.deadline()
    is_asked = threading.Event()
    thread, ends = run_in_thread(
        lambda: stage.executor.execute(
            job, python(STUBBORN_TREE), lambda: "cancel" if is_asked.is_set() else ""
        )
    )
    step, grandchild = pid_in(work / "step"), pid_in(work / "grandchild")
    if end == "stop":
        is_asked.set()
    thread.join(5)

    (ended,) = ends
    assert (ended.how, ended.is_killed, ended.code) == (How(end), True, -signal.SIGKILL)
    assert is_dead(step)
    assert is_dead(grandchild)
    if end == "lease":
        assert deadline <= ended.ended_at <= deadline + KILL_S
    if end == "cap":  # SIGINT at 0.8 s, then a grace of 0.5 s
        assert 1.3 <= ended.ended_at - ended.started_at <= 1.3 + KILL_S
    if end == "stop":
        assert ended.stop_reason == "cancel"
    assert stage.records()[-1].exit == end


@pytest.mark.parametrize("end", ["lease", "cap", "stop"])
def test_a_step_that_ends_when_asked_is_not_killed(tmp_path: Path, end: str) -> None:
    stage = Stage(tmp_path, lease_s=1.5 if end == "lease" else 30.0)
    job = stage.job(cap_s=0.8 if end == "cap" else 20)

    def wish() -> str:
        is_ready = Path(job.log_path).exists() and "ready" in stage.log(job)
        return "cancel" if end == "stop" and is_ready else ""

    ended = stage.executor.execute(job, python(POLITE), wish)

    assert (ended.how, ended.code, ended.is_killed) == (How(end), 7, False)
    assert stage.log(job) == "ready\ntidied up\n"


# Two processes of 80 MiB each, which end well if they are interrupted; one that only grows.
HUNGRY_TREE = """
import os, signal, sys, time
signal.signal(signal.SIGINT, lambda *_: sys.exit(7))
os.fork()
held = bytearray(b"x") * (80 << 20)  # at once: built from parts it would be twice as much
print("ready", flush=True)
time.sleep(60)
"""
RUNAWAY = """
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
held = []
while True:
    held.append(bytearray(b"x") * (8 << 20))
    time.sleep(0.02)
"""


def test_a_step_whose_processes_together_take_too_much_memory_is_interrupted(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path, stop_grace_s=60)
    job = stage.job(memory_mib_max=120)

    ended = stage.executor.execute(job, python(HUNGRY_TREE), never)

    assert (ended.how, ended.code, ended.detail) == (How.MEMORY, 7, "120 MiB")
    assert stage.log(job).startswith("ready")
    assert [record.exit for record in stage.records()] == ["", "memory"]


def test_a_step_that_keeps_to_its_memory_is_left_alone(stage: Stage) -> None:
    code = "held = bytearray(b'x') * (80 << 20); import time; time.sleep(2.5)"

    ended = stage.executor.execute(stage.job(memory_mib_max=120), python(code), never)

    assert (ended.how, ended.code) == (How.EXITED, 0)


def test_what_a_fork_shares_is_counted_once(stage: Stage) -> None:
    code = (
        "import os, time\n"
        "held = bytearray(b'x') * (80 << 20)\n"
        "children = [os.fork() for _ in range(2)]\n"  # four processes of 80 MiB, all shared
        "time.sleep(2.5)"
    )

    ended = stage.executor.execute(stage.job(memory_mib_max=150), python(code), never)

    assert (ended.how, ended.code) == (How.EXITED, 0)


def test_a_step_whose_memory_runs_away_is_not_waited_for(tmp_path: Path) -> None:
    stage = Stage(tmp_path, stop_grace_s=60)
    job = stage.job(memory_mib_max=64, cap_s=50)

    ended = stage.executor.execute(job, python(RUNAWAY), never)

    assert (ended.how, ended.is_killed) == (How.MEMORY, True)


def test_a_grace_never_outlasts_the_lease(tmp_path: Path) -> None:
    stage = Stage(tmp_path, lease_s=1.0, stop_grace_s=60)
    deadline = stage.lease.deadline()

    ended = stage.executor.execute(stage.job(cap_s=0.3), python(STUBBORN_TREE), never)

    assert (ended.how, ended.is_killed) == (How.LEASE, True)
    assert deadline <= ended.ended_at <= deadline + KILL_S


def test_renewals_keep_a_step_alive_and_a_fence_ends_it_at_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path, lease_s=1.5)
    job = stage.job()
    thread, ends = run_in_thread(lambda: stage.executor.execute(job, python(STUBBORN_TREE), never))
    step = pid_in(Path(job.work_dir) / "step")
    outlived = stage.lease.deadline()
    while stage.clock.monotonic() < outlived + 0.3:
        stage.extend(0.8)
        time.sleep(0.05)
    assert not is_dead(step)
    stage.extend(30)

    stage.lease.revoke()

    eventually(lambda: is_dead(step), within_s=1)
    thread.join(5)
    assert ends[0].how is How.LEASE


@pytest.mark.parametrize("state", ["near", "revoked", "missing"])
def test_nothing_runs_under_a_lease_that_is_about_to_end(tmp_path: Path, state: str) -> None:
    stage = Stage(tmp_path, lease_s=0.1 if state == "near" else 30.0)
    if state == "revoked":
        stage.lease.revoke()
    if state == "missing":
        stage.lease.path.unlink()
    job = stage.job()

    ended = stage.executor.execute(job, python("open('ran', 'w')"), never)

    assert ended.how is How.HAND_BACK
    assert not (Path(job.work_dir) / "ran").exists()
    assert stage.records() == []


def test_a_killed_shim_leaves_nothing_alive(stage: Stage) -> None:
    job = stage.job()
    thread, ends = run_in_thread(lambda: stage.executor.execute(job, python(STUBBORN_TREE), never))
    step = pid_in(Path(job.work_dir) / "step")
    grandchild = pid_in(Path(job.work_dir) / "grandchild")

    os.kill(stage.records()[0].shim_pid, signal.SIGKILL)
    thread.join(5)

    assert ends[0].how is How.LOST
    assert is_dead(step)
    assert is_dead(grandchild)
    assert [record.exit for record in stage.records()] == ["", "lost"]


def test_what_a_step_leaves_running_is_killed_when_it_ends(stage: Stage) -> None:
    job = stage.job()
    leaves = STUBBORN_TREE.rpartition("time.sleep(60)")[0]

    ended = stage.executor.execute(job, python(leaves), never)

    assert (ended.how, ended.code, ended.is_killed) == (How.EXITED, 0, False)
    assert is_dead(pid_in(Path(job.work_dir) / "grandchild"))


def test_a_program_that_is_not_there_is_an_end_like_any_other(stage: Stage) -> None:
    ended = stage.executor.execute(stage.job(), ["no-such-program"], never)

    assert (ended.how, ended.code) == (How.NOT_STARTED, None)
    assert ended.detail == "No such file or directory"
    assert [record.exit for record in stage.records()] == ["", "not-started"]


def test_a_wish_that_came_before_the_start_starts_nothing(stage: Stage) -> None:
    ended = stage.executor.execute(stage.job(), python("pass"), lambda: "cancel")

    assert (ended.how, ended.stop_reason) == (How.STOP, "cancel")
    assert stage.records() == []


def test_a_step_sees_nothing_of_the_workers_environment_but_what_is_allowed(stage: Stage) -> None:
    job = stage.job()
    show = "import os; print(sorted(os.environ))"

    stage.executor.execute(job, python(show), never, env={"GIVEN": "yes"})

    seen = stage.log(job)
    assert "AWS_SECRET_ACCESS_KEY" not in seen
    assert all(name in seen for name in ("PATH", "GIVEN", "REGION_SCHEDULER_RECEIPT"))


def test_a_log_beyond_its_limit_keeps_its_head_and_its_last_lines(stage: Stage) -> None:
    job = stage.job()

    code = "for n in range(100_000): print(n)"
    stage.executor.execute(job, python(code), never)

    log = stage.log(job)
    assert log.startswith("0\n1\n2\n")
    assert log.endswith("99998\n99999\n")
    assert "bytes of output left out" in log
    assert len(log) < 20_100


def test_a_step_that_closes_its_output_costs_no_processor_time(stage: Stage) -> None:
    job = stage.job()
    code = "import os, time; os.close(1); os.close(2); time.sleep(1)"
    thread, ends = run_in_thread(lambda: stage.executor.execute(job, python(code), never))
    shim = eventually(stage.records)[0].shim_pid
    spent = 0

    def has_ended() -> bool:
        nonlocal spent
        try:
            stat = Path(f"/proc/{shim}/stat").read_text()
        except OSError:
            return True
        spent = max(spent, sum(map(int, stat.rpartition(")")[2].split()[11:13])))
        return not thread.is_alive()

    eventually(has_ended)
    thread.join(5)
    assert ends[0].code == 0
    assert spent <= 0.3 * os.sysconf("SC_CLK_TCK")


def test_a_start_costs_little(stage: Stage) -> None:
    spent_s = []
    for number in range(9):
        job = stage.job(name=f"r{number}")
        began = time.monotonic()
        ended = stage.executor.execute(job, ["true"], never)
        spent_s.append(time.monotonic() - began)
        assert ended.code == 0

    median_s = sorted(spent_s)[len(spent_s) // 2]
    sys.stdout.write(f"a step in a shim, from call to answer: {median_s * 1000:.0f} ms\n")
    assert median_s < 0.25  # some 25 ms on an idle machine; this one may be busy
