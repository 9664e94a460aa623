"""Who holds a zone: one mutating run at a time, then the one that has waited longest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from region_scheduler.commit.gate import Change, Fate, commit
from region_scheduler.domain.run import Run, Zone, zone_freed, zone_taken
from region_scheduler.domain.task import Task
from region_scheduler.ports.records import GraphStores


def holds_zone(graph: GraphStores, run: Run) -> bool:
    """Say, by a leader read, whether the run may start: it holds its zone, or needs none.

    Raises:
        Unavailable: No answer.
    """
    if not run.needs_zone:
        return True
    (zone,) = graph.zones.read([run.zone])
    return zone is not None and (zone.active_run, zone.active_round) == (run.id, run.round)


def take_zone(graph: GraphStores, run: Run) -> bool:
    """Take the run's zone for its present round; say whether it holds it, or needs none.

    A run that has waited longer goes first.

    Raises:
        Unavailable: No answer; call again.
    """
    if not run.needs_zone:
        return True
    (zone,) = graph.zones.read([run.zone])
    if zone is not None:
        give_zone(graph, zone, graph.runs.of_zone(run.zone))
    return holds_zone(graph, run)


def give_zone(graph: GraphStores, zone: Zone, unended: Sequence[Run]) -> Run | None:
    """Give a zone to the next round of the run that holds it, or a free one to the oldest run.

    Args:
        graph: The graph store.
        zone: As read at the leader.
        unended: Its unended runs, oldest first, read after it.

    Returns:
        The run that holds the zone after this call, as far as it is known and unended.
    """
    waiting = [run for run in unended if run.needs_zone]
    heirs = [run for run in waiting if zone.active_run in {run.id, ""}]
    if not heirs:
        return None
    take = partial(zone_taken, run=heirs[0].id, round_=heirs[0].round)
    (outcome,) = commit(graph.zones, [Change(zone.id, take, known=zone)])
    return heirs[0] if outcome.is_ours else None


def free_zone(graph: GraphStores, run: Run) -> bool:
    """Free the zone of an ended round if it still holds it; say whether this call did."""
    if not run.needs_zone:
        return False
    marks = graph.tasks.state_marks(run.id)
    free = partial(zone_freed, run=run.id, round_=run.round, marks=marks)
    (outcome,) = commit(graph.zones, [Change(run.zone, free)])
    return outcome.fate is Fate.COMMITTED


def doubtful_states(graph: GraphStores, tasks: Sequence[Task]) -> frozenset[str]:
    """Return the keys of the states among those of `tasks` that an earlier run left in doubt.

    Raises:
        Unavailable: No answer.
    """
    zones = sorted({task.zone for task in tasks if task.zone and task.spec.state_key})
    found = graph.zones.read(zones) if zones else []
    return frozenset(key for zone in found if zone is not None for key in zone.doubts)
