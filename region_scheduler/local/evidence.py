"""What a local stack leaves behind besides its stores: steps logs and terraform's own states."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from region_scheduler.assembly.working import REFUSED, STEPS_LOG
from region_scheduler.domain.ids import digest_of
from region_scheduler.local.stack import Stack
from region_scheduler.worker import steplog
from region_scheduler.worker.processes import started_at
from region_scheduler.worker.runners.terraform_workspace import Workspace, terraform_states
from region_scheduler.worker.steplog import StepRecord


def step_records(stack: Stack) -> list[StepRecord]:
    """Return what the step processes of all regions wrote, oldest first."""
    return steplog.read(_paths(stack, region)[1] / STEPS_LOG for region in stack.regions)


def living(records: Iterable[StepRecord]) -> set[int]:
    """Return those of the records' `shim_pid` that live, and lived when the record was written."""
    ticks = os.sysconf("SC_CLK_TCK")
    return {
        record.shim_pid
        for record in records
        if 0 < started_at(record.shim_pid) <= record.boot * ticks
    }


def late_completions(stack: Stack) -> int:
    """Return how often a worker told that a completion of its was refused: its token had moved."""
    said = json.dumps(REFUSED).encode()
    logs = (stack.logs / f"worker-{region}.log" for region in stack.regions)
    return sum(log.read_bytes().count(said) for log in logs if log.exists())


def states(stack: Stack) -> dict[str, Any]:
    """Return terraform's own states of all regions, as they stand in their files, by key."""
    found: dict[str, Any] = {}
    for region in stack.regions:
        state_dir = _paths(stack, region)[0]
        for state in terraform_states(state_dir):
            workspace = Workspace(state_dir / digest_of(state.state_key), state.state_key)
            found[state.state_key] = json.loads(workspace.state_file.read_bytes())
    return found


def _paths(stack: Stack, region: str) -> tuple[Path, Path]:
    paths = stack.settings(region)["paths"]
    return Path(paths["state_dir"]), Path(paths["log_dir"])
