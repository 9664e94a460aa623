"""What each runner is given for a step: the inputs of a task, by the step's kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from region_scheduler.catalog.model import StepDefinition, StepKind
from region_scheduler.domain.task import Json, OnLoss

RUNNERS: Final[Mapping[StepKind, str]] = {
    StepKind.TERRAFORM: "terraform",
    StepKind.API_ASYNC: "command",
    StepKind.TASK: "command",
    StepKind.EVIDENCE: "command",
    StepKind.VERIFY: "verify",
    StepKind.CHECK: "check",
    StepKind.SCAN: "check",
    StepKind.GUARDRAIL: "check",
    StepKind.APPROVAL: "approval",
    StepKind.EXTERNAL_WAIT: "external-wait",
}
PYTHON = "{python}"
"""Stands for the interpreter in an argv list; the command and verify runners replace it."""
POLL_EVERY_S = 1.0
# Of a stand-in: the second poll succeeds, so that polling is seen to happen and costs a second.
_POLLS_UNTIL_TRUE = 2


def on_loss(step: StepDefinition) -> OnLoss:
    """Return what follows a lost holder of the step.

    A step that can be looked at is looked at: terraform by its plan, an asynchronous call by its
    poll. Programs, checks and polls may be repeated, unless they cannot be undone: then a person
    decides.
    """
    if step.kind in (StepKind.TERRAFORM, StepKind.API_ASYNC):
        return OnLoss.INSPECT
    return OnLoss.HOLD if step.is_irreversible else OnLoss.RETRY


def runner_inputs(
    step: StepDefinition, facts: Mapping[str, Json], before: Sequence[str], cap_s: float
) -> dict[str, Json]:
    """Return the inputs of one task.

    Args:
        step: Whose task it is.
        facts: `tenant`, `zone`, `step`, `region`, `regions`, `parameters`, `controls`.
        before: Names of the task's direct predecessors.
        cap_s: Longest time of one attempt, seconds; a poll gives up with it.
    """
    inputs = _by_kind(step, facts, before, cap_s)
    if step.needs_approval and step.kind is not StepKind.APPROVAL:
        inputs["approval"] = {"question": _question(step, facts)}
    return inputs


def _by_kind(
    step: StepDefinition, facts: Mapping[str, Json], before: Sequence[str], cap_s: float
) -> dict[str, Json]:
    match step.kind:
        case StepKind.TERRAFORM:
            variables = {"step": step.id, "inputs": dict(facts)}
            return {"module": f"catalog:{step.module}", "variables": variables}
        case StepKind.APPROVAL:
            return {"question": _question(step, facts), **facts}
        case StepKind.EXTERNAL_WAIT:
            return {"event": step.id, **facts}
        case StepKind.CHECK | StepKind.SCAN | StepKind.GUARDRAIL:
            return {"assertions": _assertions(step, facts, before), **facts}
        case StepKind.VERIFY:
            poll = _poll(_argv("settled"), cap_s)
            return {**poll, "polls_until_true": _POLLS_UNTIL_TRUE, **facts}
        case StepKind.API_ASYNC:
            verify = _poll(_argv("request", "--poll"), cap_s)
            return {"argv": _argv("request"), "verify": verify, **facts}
        case StepKind.TASK | StepKind.EVIDENCE:
            return {"argv": _argv(step.program or "evidence"), **facts}


def _argv(program: str, *arguments: str) -> list[str]:
    return [PYTHON, "-m", f"region_scheduler.catalog.steps.{program}", *arguments]


def _poll(argv: list[str], timeout_s: float) -> dict[str, Json]:
    return {"argv": argv, "every_s": POLL_EVERY_S, "timeout_s": timeout_s}


def _question(step: StepDefinition, facts: Mapping[str, Json]) -> str:
    return f"{step.purpose} (zone {facts['zone']})"


def _assertions(
    step: StepDefinition, facts: Mapping[str, Json], before: Sequence[str]
) -> list[Json]:
    """Return the step's own assertions, and that every predecessor delivered."""
    own = [
        {**said, "value": _value(said["value"], facts)} if "value" in said else dict(said)
        for said in step.assertions
    ]
    return own + [{"path": f"/upstream/{_escaped(name)}", "op": "present"} for name in before]


def _value(value: Json, facts: Mapping[str, Json]) -> Json:
    if isinstance(value, str) and value.startswith("$"):
        return facts["parameters"][value.removeprefix("$")]
    return value


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
