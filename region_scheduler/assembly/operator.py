"""What someone who acts on the stores has open: as a local operator, audited."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from region_scheduler.config.settings import Settings
from region_scheduler.identity.actors import Actor, ActorKind
from region_scheduler.runtime.system import SystemClock, UuidIds, collect_seldom

if TYPE_CHECKING:
    from region_scheduler.admission.intake import Admitted, Intake
    from region_scheduler.assembly.services import Ports
    from region_scheduler.domain.admission import Admission, Plan
    from region_scheduler.domain.region import Region
    from region_scheduler.identity.quotas import Quotas
    from region_scheduler.lifecycle.settle import Settler
    from region_scheduler.operations.audit import Auditor
    from region_scheduler.ports.records import GraphStores
    from region_scheduler.scheduling.mend import Mender

_PATIENCE_S = 3.0


class Operator:
    """Opens what is asked for, once.

    Args:
        settings: Say where the stores are.
        closing: Closes what was opened.
        actor: Named in the audit; by default whoever is logged in.
        patience_s: How long to wait for a store that does not answer, e.g. one that is on its way
            back, when it is first asked for; seconds.
    """

    def __init__(
        self,
        settings: Settings,
        closing: ExitStack,
        actor: Actor | None = None,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self.settings = settings
        self.actor = actor or Actor(ActorKind.OPERATOR, _user(), f"cli on {socket.gethostname()}")
        self.clock = SystemClock()
        self.ids = UuidIds()
        self._closing = closing
        self._patience_s = patience_s

    @cached_property
    def graph(self) -> GraphStores:
        """The graph store, through the region's coordinator."""
        from region_scheduler.assembly.production import open_graph

        return open_graph(self.settings, self._closing, self._patience_s)

    def known_regions(self) -> list[Region]:
        """Return the regions there are, this one first: what names none belongs here.

        Raises:
            Unavailable: The graph store does not answer.
        """
        here = self.settings.region
        return sorted(self.graph.regions.all(), key=lambda region: region.id != here)

    @cached_property
    def ports(self) -> Ports:
        """Everything that a submitter reaches."""
        from region_scheduler.assembly.production import open_ports

        return open_ports(self.settings, self._closing, self._patience_s)

    @cached_property
    def settler(self) -> Settler:
        """Does what follows an operator's act, and wakes schedulers."""
        from region_scheduler.assembly.production import open_broker, open_wake_ups
        from region_scheduler.lifecycle.settle import Settler

        wake_ups = open_wake_ups(self.settings, open_broker(self.settings), self._closing)
        return Settler(self.graph, wake_ups, self.clock, self.actor.id)

    @cached_property
    def mender(self) -> Mender:
        """Holds the region's relational store against the graph."""
        from region_scheduler.assembly.relational import relational
        from region_scheduler.scheduling.mend import Mender

        store = self._closing.enter_context(
            relational(self.settings.relational_url, self.settings.scheduler.ownership)
        )
        region = self.settings.region
        return Mender(region, self.graph, store.backlog, store.metadata, self.clock)

    @cached_property
    def auditor(self) -> Auditor:
        """Writes down what the operator does."""
        from region_scheduler.operations.audit import Auditor

        return Auditor(self.graph, self.actor.id, self.clock, self.ids, self.actor.source)

    @cached_property
    def quotas(self) -> Quotas:
        """How much each tenant may have."""
        from region_scheduler.domain.tenant import QUOTAS
        from region_scheduler.identity.quotas import Quotas

        default = QUOTAS[self.settings.tenants.level_default]
        return Quotas(self.graph, default, self.clock)

    def admit(
        self, expand: Callable[[], Plan], tenant: str, key: str, body_digest: str
    ) -> Admitted:
        """Admit a request once per key; one that came before is not expanded again.

        Args:
            expand: Makes the plan of it, before anything is written.
            tenant: Whose it is.
            key: The idempotency key.
            body_digest: Of the request.

        Raises:
            Rejected, Throttled, LostRace, Unavailable, OutcomeUnknown: As `Intake.admit`, and what
                `expand` raises.
        """
        from region_scheduler.domain.admission import admission_key

        if self.graph.admissions.read([admission_key("client", tenant, key)]) != [None]:
            with self.submitter() as intake:
                if admitted := intake.earlier(tenant, key, body_digest):
                    return admitted
        plan = expand()
        with self.submitter() as intake:
            return intake.admit(plan, key, body_digest, self._note)

    def _note(self, admission: Admission) -> None:
        self.auditor.record(
            "runs.submit",
            admission.run,
            f"{admission.plan.name}, {len(admission.plan.tasks)} tasks, key {admission.key}",
            tenant=admission.tenant,
        )

    @contextmanager
    def submitter(self) -> Iterator[Intake]:
        """Yield the submitter role under a lease, so that others finish what we accept and leave.

        Raises:
            Unavailable, OutcomeUnknown: The graph store does not answer.
        """
        from region_scheduler.assembly.member import Membership, new_instance
        from region_scheduler.assembly.services import intake, lease_keeper
        from region_scheduler.domain.instance import Role

        collect_seldom()
        ports = self.ports
        instance = new_instance(self.settings, "cli", [Role.SUBMITTER], self.clock, self.ids)
        membership = Membership(lease_keeper(ports, instance, self.settings.lease))
        membership.start()
        try:
            yield intake(ports, instance, self.quotas, self.settings.limits)
        finally:
            membership.stop()
            membership.join(self.settings.lease.ttl_s)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
