"""Audit entries: who did what to which thing."""

from __future__ import annotations

from dataclasses import dataclass

from region_scheduler.commit.create import create
from region_scheduler.ports.records import AuditEntry, GraphStores
from region_scheduler.ports.time import Clock, Ids


@dataclass(frozen=True, slots=True)
class Auditor:
    """Writes entries in the name of one actor."""

    graph: GraphStores
    actor: str
    clock: Clock
    ids: Ids

    def record(self, action: str, thing: str, detail: str = "") -> None:
        """Append an entry; written before the act, so that an act without entry cannot be.

        Raises:
            Unavailable, OutcomeUnknown: Perhaps nothing was written; the act must not follow.
        """
        entry = AuditEntry(
            id=self.ids.new(),
            actor=self.actor,
            action=action,
            thing=thing,
            detail=detail,
            at=self.clock.now(),
        )
        create(self.graph.audit, [entry])
