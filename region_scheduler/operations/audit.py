"""Audit entries: who wanted what of which thing, and why.

The entry is written before the act: there is no act without one (invariant I14). One without an act
is a wish that broke off; what came of it, the thing's own history says. An entry whose answer was
lost is inserted again under the same id, so it never doubles; whoever asks again wants it again,
and that is another entry. What is refused, or already so, is no act and has none.
"""

from __future__ import annotations

from dataclasses import dataclass

from region_scheduler.commit.create import create
from region_scheduler.domain.pause import Scope, ScopeKind
from region_scheduler.ports.records import AuditEntry, GraphStores
from region_scheduler.ports.time import Clock, Ids


@dataclass(frozen=True, slots=True)
class Auditor:
    """Writes entries in the name of one actor.

    Attributes:
        actor: Its id, e.g. `operator:anna`.
        source: From where it acts: the surface and the machine.
    """

    graph: GraphStores
    actor: str
    clock: Clock
    ids: Ids
    source: str = ""

    def record(
        self, action: str, thing: str, detail: str = "", why: str = "", *, tenant: str = ""
    ) -> None:
        """Append an entry, before the act.

        Args:
            action: What, e.g. `runs.cancel`.
            thing: To which: an id.
            detail: What of it changes.
            why: In the actor's own words.
            tenant: Whose thing it is; empty if it is nobody's.

        Raises:
            Unavailable, OutcomeUnknown: Perhaps nothing was written; the act must not follow.
        """
        entry = AuditEntry(
            id=self.ids.new(),
            actor=self.actor,
            action=action,
            thing=thing,
            tenant=tenant,
            detail=detail,
            why=why,
            source=self.source,
            at=self.clock.now(),
        )
        create(self.graph.audit, [entry])


def owner_of(graph: GraphStores, scope: Scope) -> str:
    """Return whose work a scope holds; empty if it is not one tenant's.

    Raises:
        Unavailable: No answer.
    """
    match scope.kind:
        case ScopeKind.TENANT:
            return scope.name
        case ScopeKind.RUN:
            (run,) = graph.runs.read([scope.name])
            return run.tenant if run is not None else ""
        case ScopeKind.ZONE:
            (zone,) = graph.zones.read([scope.name])
            return zone.tenant if zone is not None else ""
        case _:
            return ""
