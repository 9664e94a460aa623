"""Garbage collection: remove what is old, and what nothing can need any more.

What may go is decided by states at the store's leader, and each document is removed on the revision
read. A run is closed first (`closed_for_good`): from then on nobody can open it again, so that what
dies in the middle leaves a run of which nothing can start, and the next look goes on with it. Its
document goes last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from region_scheduler.commit.gate import Change, commit
from region_scheduler.commit.remove import remove
from region_scheduler.domain.pause import Scope, ScopeKind
from region_scheduler.domain.retention import RecordKind, Retention, ended_long_ago
from region_scheduler.domain.run import Run, closed_for_good
from region_scheduler.lifecycle.leftover import emptied
from region_scheduler.ports.documents import Identified
from region_scheduler.ports.records import GraphStores

_REST: Final = timedelta(days=2)
"""A run that is one too many stays at least this long after its end."""

Removable = Mapping[RecordKind, Sequence[Identified]]


@dataclass(frozen=True, slots=True)
class Policy:
    """What is to go now.

    Attributes:
        now: The collector's wall time.
        limit: Most records of a kind in one look.
    """

    retention: Retention
    now: datetime
    limit: int


def removable(graph: GraphStores, policy: Policy) -> Removable:
    """Return what may go, oldest first, by kind; nothing is written.

    Raises:
        Unavailable: No answer.
    """
    return {
        RecordKind.RUNS: _runs(graph, policy),
        RecordKind.ADMISSIONS: _admissions(graph, policy),
        RecordKind.INSTANCES: _instances(graph, policy),
        RecordKind.CONFLICTS: graph.leftovers.conflicts(*_bounds(policy, RecordKind.CONFLICTS)),
        RecordKind.AUDIT: graph.leftovers.audit(*_bounds(policy, RecordKind.AUDIT)),
    }


def collect(graph: GraphStores, found: Removable) -> dict[RecordKind, int]:
    """Remove what `removable` found, as it was read; return how much of each kind is gone.

    Raises:
        Unavailable, OutcomeUnknown: Part of it is done; call again, or the next look goes on.
    """
    runs = [run for run in found[RecordKind.RUNS] if isinstance(run, Run)]
    return {
        RecordKind.RUNS: _collect_runs(graph, runs),
        RecordKind.ADMISSIONS: remove(graph.admissions.remove, found[RecordKind.ADMISSIONS]),
        RecordKind.INSTANCES: remove(graph.instances.remove, found[RecordKind.INSTANCES]),
        RecordKind.CONFLICTS: remove(graph.conflicts.remove, found[RecordKind.CONFLICTS]),
        RecordKind.AUDIT: remove(graph.audit.remove, found[RecordKind.AUDIT]),
    }


def _bounds(policy: Policy, kind: RecordKind) -> tuple[datetime, int, int]:
    retention = policy.retention
    return retention.before(kind, policy.now), retention.most(kind), policy.limit


def _runs(graph: GraphStores, policy: Policy) -> list[Run]:
    before, most, limit = _bounds(policy, RecordKind.RUNS)
    found = graph.leftovers.runs(before, most, policy.now - _REST, limit)
    unfinished = {admission.run for admission in graph.admissions.unfinished()}
    return [run for run in found if run.id not in unfinished]


def _admissions(graph: GraphStores, policy: Policy) -> Sequence[Identified]:
    before, _, limit = _bounds(policy, RecordKind.ADMISSIONS)
    return graph.leftovers.admissions(before, limit)


def _instances(graph: GraphStores, policy: Policy) -> Sequence[Identified]:
    before, most, limit = _bounds(policy, RecordKind.INSTANCES)
    submitters = [admission.instance for admission in graph.admissions.unfinished()]
    old = ended_long_ago(graph.instances.fenced(), before, most, submitters)[:limit]
    if not old:
        return []
    holders = [task.holder for task in graph.tasks.held_by([one.id for one in old])]
    needed = {holder.incarnation for holder in holders if holder is not None}
    return [one for one in old if one.id not in needed]


def _collect_runs(graph: GraphStores, runs: Sequence[Run]) -> int:
    """Close each run, remove all that is only its, then itself; return how many are gone."""
    changes = [Change(run.id, partial(closed_for_good, seen=run), known=run) for run in runs]
    closed = [o.value for o in commit(graph.runs, changes) if o.is_ours and o.value is not None]
    return remove(graph.runs.remove, [run for run in closed if _is_emptied(graph, run)])


def _is_emptied(graph: GraphStores, run: Run) -> bool:
    """Remove what is only the run's; say whether that is done, or the next look has to go on."""
    _, is_all = emptied(graph, run.id)
    if not is_all:
        return False
    (pause,) = graph.pauses.read([Scope(ScopeKind.RUN, run.id).key])
    if pause is not None:
        remove(graph.pauses.remove, [pause])
    return True
