"""A program of the user's: an argv list, never a shell."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from region_scheduler.domain.step import Found, StepJob, StopWish
from region_scheduler.domain.task import Exit, ExitKind, Json, Verdict
from region_scheduler.errors import InvalidInput
from region_scheduler.worker.execute import Ended, Executor, program_of
from region_scheduler.worker.runners import poll_until
from region_scheduler.worker.runners.exits import describe, failed, interrupted, logged
from region_scheduler.worker.steplog import Act

PYTHON: Final = "{python}"
"""In an argv: this interpreter."""

INPUTS_VARIABLE: Final = "REGION_SCHEDULER_INPUTS"
OUTPUTS_VARIABLE: Final = "REGION_SCHEDULER_OUTPUTS"
RETRY_CODES: Final = (75,)
"""EX_TEMPFAIL of sysexits.h."""


@dataclass(slots=True)
class CommandRunner:
    """Runs `argv`, hands it the inputs in a file, reads the outputs from another.

    Inputs:
        argv: Program and arguments; `{python}` stands for this interpreter.
        env: Added to the program's environment.
        retry_on: Exit codes that end retryable, or `any`; [75] unless given. Other failures are
            permanent, but for a death by signal, which is retryable.
        verify: Polled after success: `argv`, `every_s` (5), `timeout_s` (600), `try_timeout_s`
            (60), in seconds; a condition that does not become true ends retryable.
    """

    executor: Executor
    name: str = "command"

    def run(self, job: StepJob, should_stop: StopWish) -> Exit:
        """Run it to its end; what it wrote is in the job's log."""
        inputs = job.spec.inputs
        try:
            argv = argv_of(inputs.get("argv"), "argv")
            verify = inputs.get("verify")
            if verify is not None:
                argv = poll_argv(job, argv, verify)
            codes = _retry_codes(inputs)
        except InvalidInput as error:
            return Exit(kind=ExitKind.PERMANENT, message=str(error))
        ended = self.executor.execute(job, argv, should_stop, env=step_environment(job))
        if early := interrupted(job, ended):
            return early
        if verify is not None:
            said = poll_result(job)
            if said.get("first_code") == 0 and not said.get("is_true"):
                return failed(job, ExitKind.RETRYABLE, not_true(said))
        return _judged(job, ended, codes)

    def inspect(self, job: StepJob, should_stop: StopWish) -> Found:
        """Try the `verify` condition once; without one nobody can tell."""
        verify = job.spec.inputs.get("verify")
        if verify is None:
            return Found(verdict=Verdict.UNDECIDED, detail="the step has nothing to look with")
        once = dict(verify) | {"timeout_s": 0, "every_s": 0}
        try:
            argv = poll_argv(job, None, once)
        except InvalidInput as error:
            return Found(verdict=Verdict.UNDECIDED, detail=str(error))
        env = step_environment(job)
        ended = self.executor.execute(job, argv, should_stop, env=env, act=Act.INSPECT)
        if interrupted(job, ended):
            return Found(verdict=Verdict.UNDECIDED, detail=describe(job, ended))
        if ended.code == 0:
            outputs, _ = step_outputs(job)
            return Found(verdict=Verdict.DONE, outputs=outputs, detail="its condition is true")
        code = poll_result(job).get("last_code")
        if code in (poll_until.TOO_LONG, poll_until.NOT_THERE, None):
            detail = f"its condition could not be looked at: {code}"
            return Found(verdict=Verdict.UNDECIDED, detail=detail)
        return Found(verdict=Verdict.NOT_DONE, detail="its condition is not true")


def argv_of(value: Json, field: str) -> list[str]:
    """Return an argv with its placeholders filled in.

    Raises:
        InvalidInput: It is not a list of texts, or empty.
    """
    is_list = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    if not is_list or not all(isinstance(word, str) and "\0" not in word for word in value):
        expected = "a list of texts: a program and its arguments; no shell reads it"
        raise InvalidInput(field=field, value=str(value), expected=expected)
    return [sys.executable if word == PYTHON else word for word in value]


def poll_argv(job: StepJob, first: list[str] | None, verify: Mapping[str, Json]) -> list[str]:
    """Return an argv that runs `first`, if any, and then polls `verify`.

    Raises:
        InvalidInput: `verify` has no proper argv or times.
    """
    orders: dict[str, Json] = {
        "first": first,
        "argv": argv_of(verify.get("argv"), "verify.argv"),
        "result": str(_poll_path(job)),
    }
    _poll_path(job).unlink(missing_ok=True)  # an inspection's, in the same scratch directory
    for name, default in (("every_s", 5.0), ("timeout_s", 600.0), ("try_timeout_s", 60.0)):
        value = verify.get(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
            expected = "a number of seconds, 0 or more"
            raise InvalidInput(field=f"verify.{name}", value=str(value), expected=expected)
        orders[name] = value
    path = Path(job.work_dir) / ".poll.json"
    path.write_bytes(orjson.dumps(orders))
    return [sys.executable, "-I", "-S", program_of(poll_until), str(path)]


def poll_result(job: StepJob) -> dict[str, Json]:
    """Return what the poll told at its end; empty if it did not come to one."""
    try:
        said: dict[str, Json] = orjson.loads(_poll_path(job).read_bytes())
    except FileNotFoundError:
        return {}
    return said


def not_true(said: Mapping[str, Json]) -> str:
    """Return one line about a condition that did not become true."""
    return (
        f"its condition was not true in {said['tries']} tries; the last ended {said['last_code']}"
    )


def step_environment(job: StepJob) -> dict[str, str]:
    """Write what the step is given, and return the environment that leads to it."""
    inputs_path = Path(job.work_dir) / ".inputs.json"
    given = {"inputs": dict(job.spec.inputs), "upstream": dict(job.upstream)}
    inputs_path.write_bytes(orjson.dumps(given))
    extra = {str(name): str(value) for name, value in job.spec.inputs.get("env", {}).items()}
    return extra | {INPUTS_VARIABLE: str(inputs_path), OUTPUTS_VARIABLE: str(_outputs_path(job))}


def delivered(job: StepJob) -> Exit:
    """Return the ok exit with what the step handed over; permanent if that cannot be read."""
    outputs, problem = step_outputs(job)
    if problem:
        return failed(job, ExitKind.PERMANENT, problem)
    return logged(job, ExitKind.OK, "", outputs)


def step_outputs(job: StepJob) -> tuple[dict[str, Json], str]:
    """Return what the step handed over, or why it cannot be read."""
    try:
        outputs = orjson.loads(_outputs_path(job).read_bytes())
    except FileNotFoundError:
        return {}, ""
    except orjson.JSONDecodeError as error:
        return {}, f"its outputs are not JSON: {error}"
    if not isinstance(outputs, dict):
        return {}, "its outputs are not a JSON object"
    return outputs, ""


def _judged(job: StepJob, ended: Ended, retry_codes: frozenset[int] | None) -> Exit:
    code = ended.code or 0
    if code == 0:
        return delivered(job)
    if code < 0:
        name = signal.Signals(-code).name
        return failed(job, ExitKind.RETRYABLE, f"something killed it with {name}")
    is_retryable = retry_codes is None or code in retry_codes
    kind = ExitKind.RETRYABLE if is_retryable else ExitKind.PERMANENT
    return failed(job, kind, f"it ended with {code}")


def _retry_codes(inputs: Mapping[str, Json]) -> frozenset[int] | None:
    """Return the codes that may be tried again; None means all."""
    value = inputs.get("retry_on", list(RETRY_CODES))
    if value == "any":
        return None
    if isinstance(value, list | tuple) and all(isinstance(code, int) for code in value):
        return frozenset(value)
    raise InvalidInput(field="retry_on", value=str(value), expected="a list of codes, or `any`")


def _outputs_path(job: StepJob) -> Path:
    return Path(job.work_dir) / ".outputs.json"


def _poll_path(job: StepJob) -> Path:
    return Path(job.work_dir) / ".poll-result.json"
