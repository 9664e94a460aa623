"""What a local stack leaves behind besides its stores: steps logs and terraform's own states."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from region_scheduler.assembly.operator import Operator
from region_scheduler.assembly.working import REFUSED, STEPS_LOG
from region_scheduler.domain.ids import digest_of
from region_scheduler.local.stack import Stack
from region_scheduler.scheduling.reconcile import FOREIGN_EVERY
from region_scheduler.verify.verifier import Source
from region_scheduler.worker import steplog
from region_scheduler.worker.processes import started_at
from region_scheduler.worker.runners.terraform_workspace import Workspace, terraform_states
from region_scheduler.worker.steplog import StepRecord


def source_of(
    operator: Operator, stack: Stack | None, say: Callable[[str], None] = lambda _: None
) -> Source:
    """Return what `verify` can look at: the graph store, and the steps logs on this machine.

    Args:
        operator: Whose settings name the store.
        stack: The local stack that it belongs to; with another store this machine's own log counts.
        say: Told in one line what is waited for.
    """
    lease = operator.settings.lease
    wait_s = lease.left_over_within_s(FOREIGN_EVERY) + lease.lease_s

    def wait() -> None:
        say(f"something may be on its way still: looking again in {wait_s:.0f} s")
        operator.clock.pause(wait_s)

    records = step_records(stack) if stack is not None else _own_records(operator)
    return Source(
        history=operator.graph.history,
        steps=records,
        alive=living(records or ()),
        wait=wait,
    )


def _own_records(operator: Operator) -> Sequence[StepRecord] | None:
    """Return what the step processes of this machine wrote; None if none ever did."""
    path = Path(operator.settings.paths.log_dir) / STEPS_LOG
    return steplog.read([path]) if path.exists() else None


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
