"""Assertions over what the step was given: scans, gates, evidence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from region_scheduler.catalog.assertions import failures
from region_scheduler.domain.step import StepJob, StopWish
from region_scheduler.domain.task import Exit, ExitKind
from region_scheduler.worker.runners.in_process import InProcess
from region_scheduler.worker.runners.inspection import ChangesNothing

_SHOWN_MAX: Final = 5


@dataclass(slots=True)
class CheckRunner(ChangesNothing):
    """Holds assertions against the inputs and the outputs of the predecessors.

    Inputs:
        assertions: See `catalog.assertions.failures`; paths begin with `/inputs` or `/upstream`.
    """

    in_process: InProcess
    name: str = "check"

    def run(self, job: StepJob, should_stop: StopWish) -> Exit:
        """End ok if all hold, permanent with the first that does not."""
        if reason := should_stop():
            return Exit(kind=ExitKind.CANCELLED, message=f"stopped: {reason}")
        return self.in_process.run(job, lambda _: judged(job, ExitKind.PERMANENT))


def judged(job: StepJob, kind_if_false: ExitKind) -> Exit:
    """Hold the job's assertions against what it was given; one that says nothing is permanent."""
    assertions = job.spec.inputs.get("assertions", [])
    document = {"inputs": job.spec.inputs, "upstream": job.upstream}
    try:
        found = failures(assertions, document)
    except (AttributeError, KeyError, TypeError, re.error) as error:
        text = f"an assertion makes no sense: {type(error).__name__}: {error}"
        return Exit(kind=ExitKind.PERMANENT, message=text)
    if found:
        text = "; ".join(f"{failure.path} {failure.reason}" for failure in found[:_SHOWN_MAX])
        return Exit(kind=kind_if_false, message=f"{len(found)} of {len(assertions)}: {text}")
    count = len(assertions)
    text = f"{count} assertion{'' if count == 1 else 's'} held"
    return Exit(kind=ExitKind.OK, message=text, outputs={"assertions": count})
