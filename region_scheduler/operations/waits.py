"""Why nothing of a run starts, where no task can tell: its zone is another's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from region_scheduler.domain.ids import RunId
from region_scheduler.domain.run import Run
from region_scheduler.domain.states import RUN_ENDED, TaskState
from region_scheduler.domain.task import Task
from region_scheduler.ports.records import GraphStores


@dataclass(frozen=True, slots=True)
class ZoneWait:
    """What a run waits for.

    Attributes:
        zone: The zone's name.
        holder: The run that holds it; empty if it is free and only has to be given.
        round: The holder's.
    """

    zone: str
    holder: RunId | None
    round: int

    def __str__(self) -> str:
        """Return it as a reason."""
        if self.holder is None:
            return f"waits for zone {self.zone}, which is free and given at the next look"
        return f"waits for zone {self.zone}, held by run {self.holder}, round {self.round}"


def zone_waits(graph: GraphStores, runs: Sequence[Run]) -> dict[RunId, ZoneWait]:
    """Return which of `runs` may not start a task, because they do not hold their zone.

    Raises:
        Unavailable: No answer.
    """
    waiting = [run for run in runs if run.needs_zone and run.state not in RUN_ENDED]
    zones = {zone.id: zone for zone in graph.zones.read([r.zone for r in waiting]) if zone}
    found = {}
    for run in waiting:
        zone = zones.get(run.zone)
        if zone is not None and (zone.active_run, zone.active_round) != (run.id, run.round):
            is_others = zone.active_run not in {"", run.id}
            holder = RunId(zone.active_run) if is_others else None
            found[run.id] = ZoneWait(zone.name, holder, zone.active_round)
    return found


def with_reasons(graph: GraphStores, run: Run, tasks: Sequence[Task]) -> list[Task]:
    """Return tasks of a run, each pending one with what the whole run waits for, if anything.

    Raises:
        Unavailable: No answer.
    """
    wait = zone_waits(graph, [run]).get(run.id)
    if wait is None:
        return list(tasks)
    return [
        replace(task, reason=str(wait)) if task.state is TaskState.PENDING else task
        for task in tasks
    ]
