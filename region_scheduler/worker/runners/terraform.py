"""Steps that are a terraform module: planned, applied exactly as planned, and read back."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from region_scheduler.domain.run import RunMode
from region_scheduler.domain.step import Found, StepJob, StopWish
from region_scheduler.domain.task import Exit, ExitKind, Json, Verdict
from region_scheduler.errors import InvalidInput
from region_scheduler.worker.execute import Ended, Executor, log_tail, program_of
from region_scheduler.worker.runners import terraform_phases
from region_scheduler.worker.runners.exits import describe, failed, interrupted, logged
from region_scheduler.worker.runners.terraform_tool import TerraformTool
from region_scheduler.worker.runners.terraform_workspace import ModuleSources, Workspace
from region_scheduler.worker.steplog import Act

_ENVIRONMENT: Final[Mapping[str, str]] = {
    "CHECKPOINT_DISABLE": "1",
    "TF_IN_AUTOMATION": "1",
    "TF_INPUT": "0",
    "TF_CLI_CONFIG_FILE": "/dev/null",
}
_LOCK_TIMEOUT_S: Final = 2
_ERROR: Final = re.compile(r"^[\s│|]*Error: (.+)$", re.MULTILINE)

# Titles of diagnostics that blame the configuration, which the next attempt would meet again.
_CONFIGURATION: Final = re.compile(
    r"Argument or block definition required|Argument definition required"
    r"|Invalid (argument|block|expression|character|reference|value for|resource|function|index"
    r"|template|multi-line string|provider configuration)"
    r"|Unsupported (argument|block type|attribute)|Missing (required argument|resource|newline)"
    r"|Reference to undeclared|No value for required variable|Duplicate (resource|variable|output)"
    r"|Call to unknown function|Unclosed configuration block|Unterminated template"
    r"|Module not installed|Unreadable module directory|Unsupported Terraform Core version"
    r"|Unsupported OpenTofu Core version|Self-referential block|Cycle:|Incorrect attribute value"
)
_LOCKED: Final = "Error acquiring the state lock"


@dataclass(slots=True)
class TerraformRunner:
    """Takes a module through init, plan, apply of exactly that plan, and output.

    Inputs:
        module: `catalog:NAME`, or a path within an allowed root.
        variables: Values of the module's variables; those it does not declare are left out.

    A module that declares the variable `upstream` gets the predecessors' outputs in it, by task
    name. Its outputs are the step's; a sensitive one only as `{"sensitive": …}`, a reference.

    In mode `plan` nothing is applied, and the outputs are `{"plan": {action: count}}`.
    """

    executor: Executor
    tool: TerraformTool
    sources: ModuleSources = field(default_factory=ModuleSources)
    name: str = "terraform"

    def run(self, job: StepJob, should_stop: StopWish) -> Exit:
        """Run all phases; a failure is permanent only if the configuration is at fault."""
        try:
            ended, said = self._phases(job, should_stop, job.mode.value, Act.RUN)
        except InvalidInput as error:
            return Exit(kind=ExitKind.PERMANENT, message=str(error))
        if early := interrupted(job, ended):
            return early
        if ended.code != 0:
            return _failure(job, said)
        if job.mode is RunMode.PLAN:
            return logged(job, ExitKind.OK, "", {"plan": said["summary"]})
        # Later attempts may find done what an earlier one of the same submission did.
        is_unchanged = not said["has_changes"] and job.attempt == 1
        kind = ExitKind.UNCHANGED if is_unchanged else ExitKind.OK
        message = "no changes" if not said["has_changes"] else ""
        return logged(job, kind, message, _outputs(job, said))

    def inspect(self, job: StepJob, should_stop: StopWish) -> Found:
        """Plan without saving: no changes is done; else the state tells whether it is partly."""
        if job.mode is RunMode.PLAN:
            return Found(verdict=Verdict.NOT_DONE, detail="a plan changes nothing")
        try:
            ended, said = self._phases(job, should_stop, "inspect", Act.INSPECT)
        except InvalidInput as error:
            return Found(verdict=Verdict.UNDECIDED, detail=str(error))
        if interrupted(job, ended):
            return Found(verdict=Verdict.UNDECIDED, detail=describe(job, ended))
        if ended.code != 0:
            return Found(verdict=Verdict.UNDECIDED, detail=_failure(job, said).message)
        if not said["has_changes"]:
            detail = "terraform plans no changes"
            return Found(verdict=Verdict.DONE, outputs=_outputs(job, said), detail=detail)
        state = Workspace.of(job.state_dir, _state_key(job)).state()
        if state and state.resources:
            detail = f"the state holds {state.resources} resources, and changes are planned"
            return Found(verdict=Verdict.PARTLY, detail=detail)
        return Found(verdict=Verdict.NOT_DONE, detail="the state holds no resource")

    def _phases(
        self, job: StepJob, should_stop: StopWish, act: str, noted_as: Act
    ) -> tuple[Ended, Mapping[str, Json]]:
        """Run the phases in a shim; return how they ended and what they told."""
        source = self.sources.find(job.spec.inputs.get("module"))
        workspace = Workspace.of(job.state_dir, _state_key(job))
        initialised = workspace.prepare(source, self.tool.identity)
        work = Path(job.work_dir)
        result = work / f".{act}-result.json"
        (work / "inputs.tfvars.json").write_bytes(orjson.dumps(_variables(job, workspace)))
        orders = {
            "tool": self.tool.path or None,
            "chdir": str(workspace.module),
            "act": act,
            "is_destroy": job.mode is RunMode.DESTROY,
            "marker": str(workspace.marker),
            "initialised": initialised,
            "var_file": str(work / "inputs.tfvars.json"),
            "plan_file": str(work / "plan"),
            "lock_timeout_s": _LOCK_TIMEOUT_S,
            "result": str(result),
        }
        orders_path = work / f".{act}.json"
        orders_path.write_bytes(orjson.dumps(orders))
        flags = ["-I"] if self.tool.is_library else ["-I", "-S"]
        argv = [sys.executable, *flags, program_of(terraform_phases), str(orders_path)]
        env = {**_ENVIRONMENT, "TF_DATA_DIR": str(workspace.data)}
        ended = self.executor.execute(job, argv, should_stop, env=env, act=noted_as)
        said = orjson.loads(result.read_bytes()) if result.exists() else {}
        return ended, said


def _state_key(job: StepJob) -> str:
    if not job.spec.state_key:
        expected = "a key: tenant/zone/step@region"
        raise InvalidInput(field="state_key", value="", expected=expected)
    return job.spec.state_key


def _variables(job: StepJob, workspace: Workspace) -> dict[str, Json]:
    given = {"upstream": dict(job.upstream)} | dict(job.spec.inputs.get("variables", {}))
    declared = workspace.declared()
    return {name: value for name, value in given.items() if name in declared}


def _outputs(job: StepJob, said: Mapping[str, Json]) -> dict[str, Json]:
    kept_back = {name: {"sensitive": f"{_state_key(job)}#{name}"} for name in said["sensitive"]}
    return dict(said["outputs"]) | kept_back


def _failure(job: StepJob, said: Mapping[str, Json]) -> Exit:
    tail = log_tail(job)
    found = _ERROR.search(tail)
    title = found.group(1) if found else f"exit code {said.get('code', 'unknown')}"
    phase = said.get("phase") or "start"
    if _LOCKED in tail:
        return failed(job, ExitKind.RETRYABLE, f"{phase}: somebody else holds the state's lock")
    is_configuration = phase in {"init", "plan"} and _CONFIGURATION.search(tail) is not None
    kind = ExitKind.PERMANENT if is_configuration else ExitKind.RETRYABLE
    return failed(job, kind, f"{phase}: {title}")
