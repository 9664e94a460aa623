"""Command and verify steps: what goes in, what comes out, and how each end is judged."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.domain.step import Runner, StepJob
from region_scheduler.domain.task import Exit, ExitKind, Verdict
from region_scheduler.worker.runners.registry import RunnerSettings, runners
from region_scheduler.worker.steplog import Act
from tests.integration.runners.stage import Stage, never

HAND_ON = """
import json, os
given = json.load(open(os.environ["REGION_SCHEDULER_INPUTS"]))
out = {"cidr": given["inputs"]["cidr"], "vpc": given["upstream"]["net@eu"]["vpc"]}
json.dump(out, open(os.environ["REGION_SCHEDULER_OUTPUTS"], "w"))
print("handed on")
"""
# True at the third look: each leaves one more mark in the scratch directory.
THIRD_TIME = """
import os, sys
marks = len([n for n in os.listdir(".") if n.startswith("mark")])
open(f"mark{marks}", "w").close()
sys.exit(0 if marks >= 2 else 1)
"""
SAY_OUTPUTS = "import os; open(os.environ['REGION_SCHEDULER_OUTPUTS'], 'w').write({!r})"


def python(code: str) -> list[str]:
    return ["{python}", "-I", "-S", "-c", code]


@pytest.fixture
def command(stage: Stage) -> Runner:
    return runner(stage, "command")


@pytest.fixture
def verify(stage: Stage) -> Runner:
    return runner(stage, "verify")


def runner(stage: Stage, name: str) -> Runner:
    settings = RunnerSettings(
        clock=stage.clock,
        environ=stage.environ,
        receipts=stage.receipts,
        stop_s=0.2,
        stop_grace_s=0.5,
    )
    return runners(settings)[name]


def test_inputs_and_upstream_go_in_and_outputs_come_out(stage: Stage, command: Runner) -> None:
    inputs = {"argv": python(HAND_ON), "cidr": "10.0.0.0/16"}
    job = stage.job(inputs=inputs, upstream={"net@eu": {"vpc": "v1"}})

    ended = command.run(job, never)

    assert (ended.kind, ended.outputs) == (ExitKind.OK, {"cidr": "10.0.0.0/16", "vpc": "v1"})
    assert (ended.log_tail, ended.log_ref) == ("handed on\n", job.log_path)


@pytest.mark.parametrize(
    ("code", "retry_on", "kind"),
    [
        (1, None, ExitKind.PERMANENT),
        (75, None, ExitKind.RETRYABLE),
        (75, [3], ExitKind.PERMANENT),
        (3, [3], ExitKind.RETRYABLE),
        (1, "any", ExitKind.RETRYABLE),
    ],
)
def test_exit_codes_are_judged(
    stage: Stage, command: Runner, code: int, retry_on: object, kind: ExitKind
) -> None:
    inputs: dict[str, Any] = {"argv": python(f"raise SystemExit({code})")}
    if retry_on is not None:
        inputs["retry_on"] = retry_on

    ended = command.run(stage.job(inputs=inputs), never)

    assert (ended.kind, ended.message) == (kind, f"it ended with {code}")


def test_a_step_that_something_else_killed_may_be_tried_again(
    stage: Stage, command: Runner
) -> None:
    code = f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})"

    ended = command.run(stage.job(inputs={"argv": python(code)}), never)

    assert (ended.kind, ended.message) == (
        ExitKind.RETRYABLE,
        "something killed it with SIGKILL",
    )


def test_no_shell_reads_an_argv(stage: Stage, command: Runner) -> None:
    job = stage.job(inputs={"argv": ["echo", "$HOME; touch ran", "`id`"]})

    ended = command.run(job, never)

    assert ended.log_tail == "$HOME; touch ran `id`\n"
    assert not (Path(job.work_dir) / "ran").exists()


@pytest.mark.parametrize(
    ("inputs", "complaint"),
    [
        ({}, "argv"),
        ({"argv": "rm -rf x"}, "argv"),
        ({"argv": []}, "argv"),
        ({"argv": ["a\0b"]}, "argv"),
        ({"argv": ["true"], "retry_on": "sometimes"}, "retry_on"),
        ({"argv": ["true"], "verify": {"argv": ["true"], "every_s": "soon"}}, "verify.every_s"),
        ({"argv": ["no-such-program"]}, "No such file or directory"),
        ({"argv": python(SAY_OUTPUTS.format("{"))}, "not JSON"),
        ({"argv": python(SAY_OUTPUTS.format("[1]"))}, "not a JSON object"),
        ({"argv": python(SAY_OUTPUTS.format('{"a": "' + 70_000 * "x" + '"}'))}, "65536"),
    ],
)
def test_what_can_never_work_is_permanent_and_says_why(
    stage: Stage, command: Runner, inputs: Mapping[str, Any], complaint: str
) -> None:
    ended = command.run(stage.job(inputs=inputs), never)

    assert ended.kind is ExitKind.PERMANENT
    assert complaint in ended.message
    assert ended.outputs == {}


@pytest.mark.parametrize(
    ("end", "kind", "message"),
    [
        ("stop", ExitKind.CANCELLED, "stopped: cancelled by anna; it had to be killed"),
        ("cap", ExitKind.CAPPED, "it took longer than its cap of 0.3 s; it had to be killed"),
        ("lease", ExitKind.FENCED, "the worker's lease ran out"),
        ("near", ExitKind.HAND_BACK, "the worker's lease was about to run out; nothing was run"),
    ],
)
def test_each_way_of_being_ended_has_its_kind(
    tmp_path: Path, end: str, kind: ExitKind, message: str
) -> None:
    stage = Stage(tmp_path, lease_s={"lease": 1.0, "near": 0.1}.get(end, 30.0), stop_grace_s=0.3)
    code = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)"
    if end == "lease":
        code = "import time; time.sleep(60)"
    job = stage.job(inputs={"argv": python(code)}, cap_s=0.3 if end == "cap" else 20)

    def wish() -> str:
        return "cancelled by anna" if end == "stop" and stage.records() else ""

    ended = runner(stage, "command").run(job, wish)

    assert (ended.kind, ended.message) == (kind, message)


def polled(stage: Stage, first: str, look: str, timeout_s: float) -> StepJob:
    verify = {"argv": python(look), "every_s": 0.02, "timeout_s": timeout_s}
    return stage.job(inputs={"argv": python(first), "verify": verify})


def test_a_commands_condition_is_polled_under_one_start(stage: Stage, command: Runner) -> None:
    job = polled(stage, SAY_OUTPUTS.format('{"id": 7}'), THIRD_TIME, 10)

    ended = command.run(job, never)

    assert (ended.kind, ended.outputs) == (ExitKind.OK, {"id": 7})
    assert (Path(job.work_dir) / "mark2").exists()
    assert [record.exit for record in stage.records()] == ["", "exited"]


def test_a_condition_that_stays_false_is_retryable(stage: Stage, command: Runner) -> None:
    ended = command.run(polled(stage, "pass", "raise SystemExit(9)", 0.2), never)

    assert ended.kind is ExitKind.RETRYABLE
    assert ended.message.startswith("its condition was not true in ")
    assert ended.message.endswith("the last ended 9")


def test_a_failed_command_is_not_polled(stage: Stage, command: Runner) -> None:
    job = polled(stage, "raise SystemExit(4)", THIRD_TIME, 10)

    ended = command.run(job, never)

    assert (ended.kind, ended.message) == (ExitKind.PERMANENT, "it ended with 4")
    assert not (Path(job.work_dir) / "mark0").exists()


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("pass", Verdict.DONE),
        ("raise SystemExit(1)", Verdict.NOT_DONE),
        ("raise SystemExit(127)", Verdict.UNDECIDED),
    ],
)
def test_a_lost_command_is_looked_at_with_its_condition(
    stage: Stage, command: Runner, code: str, verdict: Verdict
) -> None:
    job = polled(stage, "open('ran', 'w')", code, 60)

    found = command.inspect(job, never)

    assert found.verdict is verdict
    assert not (Path(job.work_dir) / "ran").exists()
    assert {record.act for record in stage.records()} == {Act.INSPECT}


def test_a_lost_command_without_a_condition_is_for_a_person(stage: Stage, command: Runner) -> None:
    assert command.inspect(stage.job(inputs={"argv": ["true"]}), never).verdict is (
        Verdict.UNDECIDED
    )


def test_verify_polls_until_true(stage: Stage, verify: Runner) -> None:
    job = stage.job("verify", {"argv": python(THIRD_TIME), "every_s": 0.02, "timeout_s": 10})

    assert verify.run(job, never).kind is ExitKind.OK
    assert (Path(job.work_dir) / "mark2").exists()


def test_verify_bounds_a_look_that_hangs(stage: Stage, verify: Runner) -> None:
    look = python("import time; time.sleep(60)")
    inputs = {"argv": look, "every_s": 0.02, "timeout_s": 0.5, "try_timeout_s": 0.2}

    ended = verify.run(stage.job("verify", inputs), never)

    assert ended.kind is ExitKind.RETRYABLE
    assert ended.message.endswith("the last ended 124")


def test_verify_stops_between_two_looks(stage: Stage, verify: Runner) -> None:
    inputs = {"argv": python("raise SystemExit(1)"), "every_s": 60, "timeout_s": 600}

    ended = verify.run(stage.job("verify", inputs), lambda: "enough" if stage.records() else "")

    assert (ended.kind, ended.message) == (ExitKind.CANCELLED, "stopped: enough")


def test_assertions_are_held_against_what_the_step_was_given(stage: Stage, verify: Runner) -> None:
    assertions = [{"path": "/upstream/db/open", "op": "eq", "value": False}]
    for name, is_open, kind in (("a", False, ExitKind.OK), ("b", True, ExitKind.RETRYABLE)):
        job = stage.job(
            "verify", {"assertions": assertions}, name=name, upstream={"db": {"open": is_open}}
        )
        assert verify.run(job, never).kind is kind


def test_the_workers_own_failures_are_ends_too(stage: Stage, command: Runner) -> None:
    job = stage.job(inputs={"argv": ["true"]})
    os.rmdir(job.work_dir)

    ended: Exit = command.run(job, never)

    assert ended.kind is ExitKind.RETRYABLE
    assert "FileNotFoundError" in ended.message
