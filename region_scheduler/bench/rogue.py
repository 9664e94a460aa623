"""Steps that run although no scheduler let them: a judge that sees nothing wrong must be shown it.

What they do is real to the world, and so in its log; no store knows of it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from region_scheduler.assembly.working import STEPS_LOG
from region_scheduler.domain.ids import TaskId
from region_scheduler.errors import InvalidInput
from region_scheduler.local.stack import Stack
from region_scheduler.runtime.system import SystemClock, UuidIds
from region_scheduler.worker import steplog
from region_scheduler.worker.steplog import Act, StepEvent


class Planted(StrEnum):
    """What a rogue does."""

    DONE_TWICE = "done-twice"
    OVERRUN = "overrun"


def planted_in(text: str) -> frozenset[Planted]:
    """Return what `a,b` names; nothing if it is empty.

    Raises:
        InvalidInput: It names something else.
    """
    try:
        return frozenset(Planted(word.strip()) for word in text.split(",") if text)
    except ValueError as refused:
        expected = f"{' or '.join(Planted)}, or both with a comma"
        raise InvalidInput(field="--plant", value=text, expected=expected) from refused


def misbehave(
    stack: Stack,
    planted: Collection[Planted],
    needs: Mapping[TaskId, Sequence[str]],
    capacities: Mapping[str, int],
) -> None:
    """Run steps of tasks that are done, beside the product.

    Args:
        stack: Where it runs.
        planted: `done-twice` brings the step of one task to its end again; `overrun` holds a
            resource once more than it has units, and fails.
        needs: What each task needs.
        capacities: Units of each resource.
    """
    if Planted.DONE_TWICE in planted:
        _run(stack, [next(task for task, names in needs.items() if not names)], code=0)
    if Planted.OVERRUN in planted:
        taker, resource = next((task, names[0]) for task, names in needs.items() if names)
        _run(stack, [taker] * (capacities[resource] + 1), code=1)


def _run(stack: Stack, tasks: Sequence[TaskId], code: int) -> None:
    """Let steps of `tasks` begin one after the other, and end when all have begun."""
    clock, ids = SystemClock(), UuidIds()
    region = next(iter(stack.regions))
    path = Path(stack.settings(region)["paths"]["log_dir"]) / STEPS_LOG
    mine = [{"task": task, "receipt_id": ids.new(), "region": region} for task in tasks]
    rogue = {"act": Act.RUN, "token": 0, "claim_id": "", "attempt": 0, "worker_pid": os.getpid()}
    for event, more in ((StepEvent.START, {}), (StepEvent.END, {"exit": "exited", "code": code})):
        for who in mine:
            when = {"at": clock.now().timestamp(), "boot": clock.monotonic()}
            record = {**rogue, **who, **when, **more, "event": event, "shim_pid": os.getpid()}
            steplog.append(str(path), record)
