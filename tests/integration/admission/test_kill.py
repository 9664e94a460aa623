"""Submitters that are killed or stopped, for real, at each write: admitted once or not at all.

The writes are those that an undisturbed admission is seen to make. All trials of a test run at once
on one real stack of two regions, whose serving processes finish what the dead ones left.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from region_scheduler.domain.admission import Admission, AdmissionState, Plan, admission_key
from region_scheduler.domain.ids import RunId
from region_scheduler.domain.lease import LOCAL_TIMINGS
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RunState
from region_scheduler.ports.records import GraphStores
from tests.integration.admission.submitter import Moment, Submission, launch
from tests.integration.local.running import RunningStack, all_done_once, eventually
from tests.simulation.scenarios import a_plan, spec

pytestmark = pytest.mark.timeout(300)
REGIONS = ("east", "west")
RECOVERY_S = LOCAL_TIMINGS.lease_s + 3
PATIENCE_S = 60.0
NAMES = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    folder = tmp_path_factory.mktemp("stack")
    stack = RunningStack(folder / "state", folder / "up.log", ("--regions", ",".join(REGIONS)))
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()
        stack.drop()


def the_plan() -> Plan:
    """Return a graph over both regions, the last task after all others."""
    tasks = [
        spec(name, REGIONS[n % 2], allowed_regions=REGIONS, inputs={"duration_s": 0})
        for n, name in enumerate(NAMES)
    ]
    return a_plan(tasks, "a>b", "a>c", "b>d", "c>d", home_region=REGIONS[0], regions=REGIONS)


def submission(running: RunningStack, key: str, moment: Moment | None = None) -> Submission:
    told = Submission(running.stack().settings(REGIONS[0]), the_plan(), key)
    return told if moment is None else Submission(told.settings, told.plan, key, moment)


def undisturbed(running: RunningStack, key: str) -> tuple[str, list[str]]:
    """Submit, and return the run and the writes that were made."""
    process, told = launch(submission(running, key))
    assert told.poll(PATIENCE_S)
    run, writes = told.recv()
    process.join(PATIENCE_S)
    return run, writes


def admission_of(graph: GraphStores, key: str) -> Admission | None:
    (found,) = graph.admissions.read([admission_key("client", the_plan().tenant, key)])
    return found


def run_of(graph: GraphStores, key: str) -> Run | None:
    """Return the published run of a key."""
    admission = admission_of(graph, key)
    if admission is None:
        return None
    (run,) = graph.runs.read([admission.run])
    return run


def is_whole_and_done(graph: GraphStores, key: str) -> bool:
    """Say whether a key has one run, closed, with its whole graph, each task done exactly once."""
    run, admission = run_of(graph, key), admission_of(graph, key)
    if run is None or admission is None or run.state is not RunState.DONE:
        return False
    tasks = graph.tasks.of_run(run.id)
    assert admission.state is AdmissionState.DONE
    assert sorted(task.spec.name for task in tasks) == sorted(NAMES)
    assert graph.tasks.counts(run.id) == (len(NAMES), 4)
    assert all_done_once(tasks)
    return True


def revisions(graph: GraphStores, keys: list[str]) -> dict[str, str]:
    """Return the revision of each document that belongs to `keys`."""
    found: dict[str, str] = {}
    for key in keys:
        admission, run = admission_of(graph, key), run_of(graph, key)
        assert admission is not None
        assert run is not None
        found |= {admission.id: admission.rev, run.id: run.rev}
        found |= {task.id: task.rev for task in graph.tasks.of_run(run.id)}
    return found


def moments(running: RunningStack, key: str, number: signal.Signals) -> list[Moment]:
    _, writes = undisturbed(running, key)
    kinds = {point for point in writes if point.startswith(("admissions.", "tasks.", "runs."))}
    assert {"admissions.insert", "tasks.insert", "tasks.insert_edges", "runs.insert"} <= kinds
    assert "metadata.record" in writes
    return [Moment(n, after, number) for n in range(len(writes)) for after in (False, True)]


def test_ADM_002_ADM_009_killed_at_any_write_it_is_admitted_once_or_not_at_all(
    running: RunningStack,
) -> None:
    with running.graph() as graph:
        dead: dict[str, float] = {}
        for moment in moments(running, "kill undisturbed", signal.SIGKILL):
            process, told = launch(submission(running, f"kill {moment}", moment))
            process.join(PATIENCE_S)
            assert process.exitcode == -signal.SIGKILL
            assert not answered(told), "a killed submitter has told no client that it is accepted"
            dead[f"kill {moment}"] = time.monotonic()

        assert admission_of(graph, "kill before write 0") is None, "never accepted: nothing exists"
        dead.pop("kill before write 0")
        took_s = {key: 0.0 for key in dead if run_of(graph, key)}
        deadline = time.monotonic() + PATIENCE_S
        while took_s.keys() != dead.keys():
            for key in dead.keys() - took_s.keys():
                if run_of(graph, key):
                    took_s[key] = time.monotonic() - dead[key]
            assert time.monotonic() < deadline, dead.keys() - took_s.keys()
            time.sleep(0.05)
        print(f"slowest recovery of {len(dead)}: {max(took_s.values()):.2f} s")  # noqa: T201
        assert max(took_s.values()) <= RECOVERY_S

        for key in dead:
            eventually(lambda: is_whole_and_done(graph, key), PATIENCE_S)  # noqa: B023
            again, _ = undisturbed(running, key)
            assert again == run_of_key(graph, key), "the client that asks again gets the same run"
        known = {run_of_key(graph, key) for key in (*dead, "kill undisturbed")}
        assert {run.id for run in graph.runs.recent(1_000)} == known
        assert graph.admissions.unfinished() == []


def answered(told: Connection) -> bool:
    """Say whether anything was told before the end."""
    try:
        return told.poll(0) and bool(told.recv())
    except EOFError:
        return False


def run_of_key(graph: GraphStores, key: str) -> RunId:
    run = run_of(graph, key)
    assert run is not None
    return run.id


def test_ADM_001_stopped_at_any_write_and_taken_over_its_late_writes_change_nothing(
    running: RunningStack,
) -> None:
    with running.graph() as graph:
        stopped = {}
        for moment in moments(running, "stop undisturbed", signal.SIGSTOP):
            key = f"stop {moment}"
            stopped[key] = launch(submission(running, key, moment))
        try:
            for process, _ in stopped.values():
                pid = process.pid
                assert pid is not None
                eventually(lambda: is_stopped(pid), PATIENCE_S)  # noqa: B023
            accepted = [key for key in stopped if key != "stop before write 0"]
            for key in accepted:
                eventually(lambda: is_whole_and_done(graph, key), PATIENCE_S)  # noqa: B023
            owners = {key: admission_of(graph, key) for key in accepted}
            before = revisions(graph, accepted)
        finally:
            for process, _ in stopped.values():
                os.kill(process.pid or 0, signal.SIGCONT)

        for key, (process, told) in stopped.items():
            assert told.poll(PATIENCE_S), key
            run, _ = told.recv()
            assert run == run_of_key(graph, key), "the late answer names the run that stands"
            process.join(PATIENCE_S)
        assert revisions(graph, accepted) == before
        taken_over = [a for a in owners.values() if a is not None and a.epoch > 1]
        assert len(taken_over) >= len(accepted) // 2, "most were stopped before they were closed"
        assert all(a.epoch == 2 and ".serve:" in a.instance for a in taken_over)


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"
