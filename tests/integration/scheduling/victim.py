"""A scheduler process that kills or stops itself, for real, at one of its writes.

It holds a real lease and does what `serve` does, with its loops taking turns, so that its n-th
write is the same one in every trial.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from types import FrameType
from typing import Any

from region_scheduler.assembly.member import Membership, new_instance
from region_scheduler.assembly.production import open_ports
from region_scheduler.assembly.services import Ports, Services, lease_keeper, region_services
from region_scheduler.assembly.tether import tie
from region_scheduler.config.load import Values, load
from region_scheduler.domain.ids import RunId
from region_scheduler.domain.instance import Role
from region_scheduler.domain.ownership import Ownership
from region_scheduler.domain.states import ACTIVE, FINAL, TaskState
from region_scheduler.errors import RegionSchedulerError
from region_scheduler.ports.documents import WriteResult, Written
from region_scheduler.runtime.logs import set_up_logging
from region_scheduler.runtime.system import SystemClock
from region_scheduler.scheduling.settings import SchedulerSettings
from region_scheduler.simulation.faults import Kind, kinds_of
from tests.integration.admission.submitter import CONTEXT

CONTEXT.set_forkserver_preload(
    [
        "tests.integration.admission.submitter",
        __name__,
        "celery.app.amqp",
        "celery.worker.worker",
        "httpcore",
        "kombu.transport.redis",
        *(
            f"region_scheduler.{module}"
            for module in (
                "assembly.relational",
                "drivers.arango.graph",
                "drivers.celery.queue",
                "drivers.celery.wakeups",
                "drivers.http.wakeups",
                "drivers.sql.schema",
            )
        ),
    ]
)
ROLES = (Role.SCHEDULER, Role.RESOURCES)
_PATIENCE_S = 20.0
_LOOK_S = 0.02
_DECIDING = tuple(f"region_scheduler.{part}." for part in ("scheduling", "resources", "lifecycle"))


@dataclass(frozen=True)
class Moment:
    """When a scheduler signals itself: at the first write of a point.

    Attributes:
        point: A port's method, and the function of the product that calls it; empty for never.
    """

    point: str
    is_after: bool
    signal: signal.Signals


NEVER = Moment("", is_after=False, signal=signal.SIGKILL)


@dataclass(frozen=True)
class Order:
    """What a victim is told."""

    settings: Values
    run: RunId
    moment: Moment


@dataclass
class Writes:
    """A hook that signals its process at one write, and notes what became of the later ones.

    Attributes:
        points: Every write that was begun.
        late: Of each write that returned after the signal: its point, if it changed a document.
    """

    moment: Moment
    points: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)

    def __call__(self, point: str, call: partial[Any]) -> Any:
        # The lease's own writes come at any time, from a thread of their own.
        if Kind.CRASH_AFTER not in kinds_of(point) or point.startswith("instances."):
            return call()
        here = f"{point} by {_site()}"
        is_now = here == self.moment.point and here not in self.points
        self.points.append(here)
        if is_now and not self.moment.is_after:
            os.kill(os.getpid(), self.moment.signal)
        answer = call()
        if is_now and self.moment.is_after:
            os.kill(os.getpid(), self.moment.signal)
        if self.moment.point in self.points and _has_changed(answer):
            self.late.append(point)
        return answer


def _site() -> str:
    """Return the innermost function of the product's roles that is at work."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals["__name__"]
        if module.startswith(_DECIDING):
            return frame.f_code.co_qualname
        frame = frame.f_back
    return "?"


def _has_changed(answer: Any) -> bool:
    written = answer if isinstance(answer, list) else []
    return any(isinstance(w, Written) and w.result is WriteResult.APPLIED for w in written)


def services_on(ports: Ports, settings: Values, membership: list[Membership]) -> Services:
    """Return the roles of a serving process under a lease that is kept from now on."""
    loaded = load(settings).settings
    instance = new_instance(loaded, "serve", ROLES, ports.clock, ports.ids)
    keeper = lease_keeper(ports, instance, loaded.lease)
    membership.append(Membership(keeper))
    membership[-1].start()
    here = SchedulerSettings(loaded.region, ownership=Ownership.LEADER)
    return region_services(ports, here, loaded.lease, keeper)


def launch(order: Order) -> tuple[ForkServerProcess, Connection]:
    """Start a victim; it tells its incarnation, and unless it is killed what it wrote."""
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_schedule, args=(order, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _schedule(order: Order, told: Connection) -> None:
    tie(os.getppid())
    set_up_logging(level="critical")
    writes = Writes(order.moment)
    memberships: list[Membership] = []
    with ExitStack() as closing:
        ports = open_ports(load(order.settings).settings, closing).through(writes)
        services = services_on(ports, order.settings, memberships)
        told.send(services.keeper.instance.id)
        _carry_out(order.run, ports, services)
        told.send((writes.points, writes.late))
        memberships[0].stop()


def _carry_out(run: RunId, ports: Ports, services: Services) -> None:
    """Do all that schedulers do for a run, once its worker has done what can be done."""
    clock = SystemClock()
    give_up_at = clock.monotonic() + _PATIENCE_S

    def is_over() -> bool:
        return not services.keeper.may_act() or clock.monotonic() > give_up_at

    def until(holds: Callable[[], bool]) -> None:
        while not is_over() and not holds():
            clock.pause(_LOOK_S)

    def counts() -> dict[TaskState, int]:
        return dict(ports.graph.tasks.state_counts(run))

    def rests() -> bool:
        return not any(counts().get(s) for s in (TaskState.CLAIMED, TaskState.RUNNING))

    _tick(services.resource_manager.tick)
    while not is_over() and set(counts()) - FINAL:
        _tick(services.scheduler.tick)
        until(rests)
        _tick(services.reconciler.tick)
        _tick(services.resource_manager.tick)
        if not any(counts().get(state) for state in ACTIVE):
            break
        until(lambda: (ports.backlog.next_due_s(clock.now().timestamp()) or 0) == 0)
    _tick(services.mender.tick)


def _tick(act: Callable[[], object]) -> None:
    """Make one round of a loop; one that fails is made again by the next."""
    with suppress(RegionSchedulerError):
        act()
