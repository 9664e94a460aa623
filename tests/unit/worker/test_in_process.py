"""Steps that run inside the worker: simulate, check, and those that only wait."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.domain.ids import ClaimId, ReceiptId, RunId, TaskId
from region_scheduler.domain.step import Runner, StepJob
from region_scheduler.domain.task import ExitKind, TaskSpec, Token, Verdict
from region_scheduler.worker.lease_file import LeaseFile
from region_scheduler.worker.receipts import Receipts
from region_scheduler.worker.runners.registry import RUNNERS, RunnerSettings, runners
from region_scheduler.worker.steplog import read


class HandClock:
    """A clock that moves when somebody waits."""

    def __init__(self) -> None:
        self.reading = 1000.0

    def monotonic(self) -> float:
        return self.reading

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.reading, UTC)

    def wait(self, seconds: float) -> None:
        assert seconds > 0, "a wait of nothing would be a busy one"
        self.reading += seconds


class Scene:
    """A lease until 2000 on a clock at 1000, and the runners under it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = HandClock()
        self.lease = LeaseFile(root / "lease")
        self.lease.extend(2000.0)

    def runners(self, **more: Any) -> Mapping[str, Runner]:
        settings = RunnerSettings(
            clock=self.clock,
            environ={"PATH": str(self.root)},
            receipts=Receipts(self.root / "receipts"),
            stop_s=5.0,
            **{"wait": self.clock.wait, **more},
        )
        return runners(settings)

    def job(self, inputs: Mapping[str, Any], **more: Any) -> StepJob:
        spec = TaskSpec(
            name="a",
            purpose="Ask the finance team",
            runner="simulate",
            inputs=inputs,
            region="eu",
            allowed_regions=("eu",),
            expected_s=30.0,
            cap_s=100.0,
        )
        return StepJob(
            task=TaskId("tasks/run.a"),
            run=RunId("run"),
            tenant="acme",
            zone="",
            spec=spec,
            token=Token(1, ClaimId("c")),
            receipt_id=ReceiptId("r"),
            attempt=more.pop("attempt", 1),
            region="eu",
            work_dir=str(self.root),
            state_dir=str(self.root),
            log_path=str(self.root / "log"),
            steps_log=str(self.root / "steps"),
            lease_path=str(self.lease.path),
            **more,
        )


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def never() -> str:
    return ""


@pytest.mark.parametrize(
    ("inputs", "time_scale", "seconds"),
    [({"duration_s": 12}, 1.0, 12.0), ({}, 0.5, 15.0), ({"duration_s": 12}, 0.0, 0.0)],
)
def test_simulate_takes_its_time_to_scale(
    scene: Scene, inputs: Mapping[str, Any], time_scale: float, seconds: float
) -> None:
    job = scene.job({**inputs, "outputs": {"id": 1}}, time_scale=time_scale)

    ended = scene.runners()["simulate"].run(job, never)

    assert (ended.kind, ended.outputs) == (ExitKind.OK, {"id": 1})
    start, end = read([scene.root / "steps"])
    assert end.boot - start.boot == pytest.approx(seconds)
    assert (end.exit, end.code) == ("exited", 0)


def test_simulate_fails_as_told_by_attempt(scene: Scene) -> None:
    simulate = scene.runners()["simulate"]
    inputs = {"failures": ["retryable", "permanent"]}

    kinds = [simulate.run(scene.job(inputs, attempt=n), never).kind for n in (1, 2, 3)]

    assert kinds == [ExitKind.RETRYABLE, ExitKind.PERMANENT, ExitKind.OK]


def test_a_failure_rate_hits_its_share_and_the_same_attempts_every_time(scene: Scene) -> None:
    simulate = scene.runners()["simulate"]

    def kinds() -> list[ExitKind]:
        jobs = [scene.job({"failure_rate": 0.3, "duration_s": 0}, attempt=n) for n in range(1, 301)]
        return [simulate.run(job, never).kind for job in jobs]

    first = kinds()
    assert first == kinds()
    assert 60 <= first.count(ExitKind.RETRYABLE) <= 120


@pytest.mark.parametrize(
    ("lease_until", "duration_s", "wish_at", "kind", "noted", "ended_at"),
    [
        (2000.0, 50.0, 1010.0, ExitKind.CANCELLED, "stop", 1010.0),
        (2000.0, 500.0, 9999.0, ExitKind.CAPPED, "cap", 1100.0),
        (1040.0, 50.0, 9999.0, ExitKind.FENCED, "lease", 1035.0),
    ],
)
def test_simulate_ends_early_for_a_wish_its_cap_and_the_lease(
    tmp_path: Path,
    lease_until: float,
    duration_s: float,
    wish_at: float,
    kind: ExitKind,
    noted: str,
    ended_at: float,
) -> None:
    scene = Scene(tmp_path)
    scene.lease = LeaseFile(tmp_path / "lease")
    scene.lease.extend(lease_until)
    job = scene.job({"duration_s": duration_s})

    ended = scene.runners()["simulate"].run(
        job, lambda: "cancel" if scene.clock.reading >= wish_at else ""
    )

    assert ended.kind is kind
    end = read([tmp_path / "steps"])[-1]
    assert end.exit == noted
    assert end.boot == pytest.approx(ended_at, abs=0.3)


def test_a_simulated_step_whose_worker_was_paused_ended_at_the_deadline(scene: Scene) -> None:
    def pause(_: float) -> None:
        scene.clock.reading = 5000.0

    paused = scene.runners(wait=pause)["simulate"]

    result = paused.run(scene.job({"duration_s": 1}), never)

    assert result.kind is ExitKind.FENCED
    assert read([scene.root / "steps"])[-1].boot == 2000.0


def test_nothing_begins_under_a_lease_about_to_end(scene: Scene) -> None:
    scene.clock.reading = 1995.0

    for name in ("simulate", "check"):
        assert scene.runners()[name].run(scene.job({}), never).kind is ExitKind.HAND_BACK

    assert read([scene.root / "steps"]) == []


@pytest.mark.parametrize(
    ("assertion", "kind"),
    [
        ({"path": "/upstream/net@eu/open", "op": "eq", "value": []}, ExitKind.OK),
        ({"path": "/upstream/net@eu/open", "op": "present"}, ExitKind.OK),
        ({"path": "/inputs/level", "op": "ge", "value": 3}, ExitKind.PERMANENT),
        ({"path": "/inputs/nothing", "op": "present"}, ExitKind.PERMANENT),
        ({"op": "eq"}, ExitKind.PERMANENT),
        ({"path": "/inputs/name", "op": "matches", "value": "("}, ExitKind.PERMANENT),
        ("nonsense", ExitKind.PERMANENT),
    ],
)
def test_check_holds_assertions_against_what_it_was_given(
    scene: Scene, assertion: Any, kind: ExitKind
) -> None:
    inputs = {"assertions": [assertion], "level": 2, "name": "x"}
    job = scene.job(inputs, upstream={"net@eu": {"open": []}})

    assert scene.runners()["check"].run(job, never).kind is kind


def test_a_failed_check_names_what_does_not_hold(scene: Scene) -> None:
    assertions = [
        {"path": "/inputs/level", "op": "ge", "value": 1},
        {"path": "/inputs/level", "op": "ge", "value": 3},
    ]
    job = scene.job({"assertions": assertions, "level": 2})

    ended = scene.runners()["check"].run(job, never)

    assert ended.message == "1 of 2: /inputs/level is 2, expected ge 3"


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("approval", {}, "waits for approval: Ask the finance team"),
        ("external-wait", {"event": "dns-delegated"}, "waits for event: dns-delegated"),
        ("approval", {"question": "Go?"}, "waits for approval: Go?"),
    ],
)
def test_steps_that_wait_run_nothing(
    scene: Scene, name: str, inputs: Mapping[str, Any], message: str
) -> None:
    ended = scene.runners()[name].run(scene.job(inputs), never)

    assert (ended.kind, ended.message) == (ExitKind.AWAIT, message)
    assert read([scene.root / "steps"]) == []


def test_any_runner_can_be_simulated(scene: Scene) -> None:
    simulated = scene.runners(simulated=frozenset(RUNNERS))
    inputs = {"argv": ["false"], "duration_s": 7, "simulated_outputs": {"id": 3}}
    assert sorted(simulated) == sorted(RUNNERS)

    for name in RUNNERS:
        if name != "simulate":
            before = scene.clock.reading
            ended = simulated[name].run(scene.job(inputs), never)
            assert (ended.kind, ended.outputs) == (ExitKind.OK, {"id": 3})
            assert scene.clock.reading - before == pytest.approx(30.0)  # what is expected of it


def test_runners_that_change_nothing_have_nothing_to_be_found(scene: Scene) -> None:
    for name in ("simulate", "check", "approval", "external-wait", "verify"):
        assert scene.runners()[name].inspect(scene.job({}), never).verdict is Verdict.NOT_DONE


def test_a_runner_that_does_not_exist_is_missing(scene: Scene) -> None:
    assert "ansible" not in scene.runners()
    assert len(scene.runners(terraform="none-such")) == len(RUNNERS) - 1
