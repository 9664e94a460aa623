"""What the steps themselves wrote down, judged without a look at what any scheduler believes.

The only facts are the steps logs (who ran which step, from when to when, and how it ended), and
which scarce things each task was submitted with.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from region_scheduler.domain.ids import ReceiptId, TaskId
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
    spans: dict[ReceiptId, list[StepRecord]] = defaultdict(list)
    for record in records:
        spans[record.receipt_id].append(record)
    ends: Counter[TaskId] = Counter()
    moments: dict[str, list[tuple[float, int]]] = {name: [] for name in capacities}
    for span in spans.values():
        task, last = span[0].task, max(span, key=lambda record: record.boot)
        has_ended = last.event is StepEvent.END
        ends[task] += has_ended and last.code == 0
        for name in needs.get(task, ()):
            # A step whose end nobody noted holds what it has for good.
            moments[name].append((min(record.boot for record in span), 1))
            moments[name] += [(last.boot, -1)] if has_ended else []
    overruns = sum(_overruns(marks, capacities[name]) for name, marks in moments.items())
    finished = +ends
    twice = sum(count > 1 for count in finished.values())
    return Verdict(len(finished), twice, overruns)


def _overruns(moments: Sequence[tuple[float, int]], capacity: int) -> int:
    """Count the starts beyond the capacity; of one instant, the ends come first."""
    held = found = 0
    for _, change in sorted(moments):
        held += change
        found += change > 0 and held > capacity
    return found
