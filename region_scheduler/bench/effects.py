"""What the steps themselves wrote down, judged without a look at what any scheduler believes.

The only facts are the steps logs (who ran which step, from when to when, and how it ended), and
which scarce things each task was submitted with: the tasks' histories, by which `verify` judges as
well, are the product's own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from region_scheduler.domain.ids import ReceiptId, TaskId
from region_scheduler.verify.counters import Execution, executions, overruns
from region_scheduler.worker.steplog import StepEvent, StepRecord


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the steps did.

    Attributes:
        done: Tasks whose step came to its end at least once.
        done_twice: Those of them whose step came to its end more than once.
        overruns: Starts of a step while as many others held one of its resources as it has units.
    """

    done: int
    done_twice: int
    overruns: int


def judged(
    records: Iterable[StepRecord],
    needs: Mapping[TaskId, Sequence[str]],
    capacities: Mapping[str, int],
) -> Verdict:
    """Return what the steps did.

    Args:
        records: Of all workers.
        needs: Resources that each task's step holds while it runs, a unit of each.
        capacities: Units of each resource.
    """
    facts = sorted(records, key=lambda record: record.boot)
    last: dict[ReceiptId, StepRecord] = {record.receipt_id: record for record in facts}
    ends = Counter(r.task for r in last.values() if r.event is StepEvent.END and r.code == 0)
    takers: dict[str, list[tuple[Execution, int]]] = defaultdict(list)
    # A step whose end nobody noted holds what it has for good.
    for run in executions(facts, {record.shim_pid for record in facts}):
        for name in needs.get(run.task, ()):
            # Nor does a task that runs twice at once share its units with itself.
            takers[name].append((replace(run, task=TaskId(run.receipt_id)), 1))
    return Verdict(
        done=len(ends),
        done_twice=sum(count > 1 for count in ends.values()),
        overruns=sum(len(overruns(runs, capacities[name])) for name, runs in takers.items()),
    )
