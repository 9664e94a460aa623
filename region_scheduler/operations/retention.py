"""Remove what nothing needs any more, by hand, or only tell what that would be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from region_scheduler.domain.retention import RecordKind, Retention
from region_scheduler.domain.run import Run
from region_scheduler.domain.skew import ahead_s
from region_scheduler.errors import InvalidInput
from region_scheduler.lifecycle.collect import Policy, collect, removable
from region_scheduler.operations.audit import Auditor
from region_scheduler.ports.documents import Identified
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock

_SHOWN: Final = 10_000
_PART: Final = 100


@dataclass(frozen=True, slots=True)
class Finding:
    """What may go of one kind.

    Attributes:
        rule: What is given up.
        ids: Oldest first; at most ten thousand.
        tasks: Of runs: how many tasks go with them.
    """

    kind: RecordKind
    rule: str
    ids: Sequence[str]
    tasks: int = 0


def preview(graph: GraphStores, retention: Retention, clock: Clock) -> list[Finding]:
    """Return what a collection would remove now; nothing is written.

    Raises:
        Unavailable: No answer.
    """
    found = removable(graph, Policy(retention, clock.now(), _SHOWN))
    return [
        Finding(kind, retention.told(kind), [one.id for one in records], _tasks(records))
        for kind, records in found.items()
    ]


def collect_all(
    graph: GraphStores, auditor: Auditor, retention: Retention, clock: Clock, skew_max_s: float
) -> dict[RecordKind, int]:
    """Remove all that may go now; return how many of each kind are gone.

    Raises:
        InvalidInput: This machine's clock is too far ahead to call anything old.
        Unavailable, OutcomeUnknown: Part of it is done; call again, or leave it to the collector.
    """
    now = clock.now()
    ahead = ahead_s(now, graph.instances.unfenced())
    if ahead > skew_max_s:
        told = "this machine is ahead of the others: set its clock"
        raise InvalidInput(field="clock", value=f"{ahead:.0f} s", expected=told)
    auditor.record("records.collect", "everything", "; ".join(map(retention.told, RecordKind)))
    total = dict.fromkeys(RecordKind, 0)
    while True:
        gone = collect(graph, removable(graph, Policy(retention, now, _PART)))
        for kind, count in gone.items():
            total[kind] += count
        if not any(gone.values()):
            return total


def _tasks(records: Sequence[Identified]) -> int:
    return sum(one.task_count for one in records if isinstance(one, Run))
