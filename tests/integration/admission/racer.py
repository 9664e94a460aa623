"""A submitter process that admits the same keys as another one, each key at the same moment."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from threading import Barrier, BrokenBarrierError

from region_scheduler.assembly.production import open_graph
from region_scheduler.assembly.relational import relational
from region_scheduler.assembly.services import Ports, intake
from region_scheduler.assembly.tether import tie
from region_scheduler.config.load import load
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.ids import Incarnation
from region_scheduler.domain.instance import Instance, Role
from region_scheduler.errors import RegionSchedulerError
from region_scheduler.runtime.system import SystemChance, SystemClock, UuidIds
from region_scheduler.simulation.broker import SimulatedBroker

BARRIER_S = 60.0


@dataclass(frozen=True)
class Racer:
    """One of two submitters.

    Attributes:
        url: Of its region's coordinator.
        relational_url: Of its region's relational store.
        plans: What it admits, by key, in order.
    """

    region: str
    url: str
    relational_url: str
    plans: dict[str, Plan]


def race(racer: Racer, start: Barrier) -> dict[str, tuple[str, bool]]:
    """Admit each key when the other one does; return its run and whether it was a repeat, or the
    refusal's name.
    """
    tie(os.getppid())
    found: dict[str, tuple[str, bool]] = {}
    with ExitStack() as closing:
        submits = intake(_ports(racer, closing), _instance(racer.region))
        for key, plan in racer.plans.items():
            with suppress(BrokenBarrierError):  # the other one failed, and says why
                start.wait(BARRIER_S)
            try:
                admitted = submits.admit(plan, key)
                found[key] = (admitted.run.id, admitted.is_repeat)
            except RegionSchedulerError as error:
                found[key] = (type(error).__name__, False)
    return found


def _ports(racer: Racer, closing: ExitStack) -> Ports:
    settings = load({"region": racer.region, "arango": {"url": racer.url}}).settings
    store = closing.enter_context(relational(racer.relational_url))
    store.backlog.prepare()
    broker = SimulatedBroker(racer.region, lambda _: None)
    return Ports(
        graph=open_graph(settings, closing),
        backlog=store.backlog,
        metadata=store.metadata,
        queue=broker,
        wake_ups=broker,
        clock=SystemClock(),
        ids=UuidIds(),
        chance=SystemChance(),
    )


def _instance(region: str) -> Instance:
    now = SystemClock().now()
    name = Incarnation(f"{region}.racer:{os.getpid()}")
    return Instance(id=name, roles=(Role.SUBMITTER,), region=region, ttl_s=60.0, stamped_at=now)
