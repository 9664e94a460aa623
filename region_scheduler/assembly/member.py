"""A process's membership: its instance document, and the lease as a part of a service."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence

import structlog

from region_scheduler.assembly.production import patiently
from region_scheduler.config.settings import Settings
from region_scheduler.domain.content import content_digest
from region_scheduler.domain.ids import Incarnation, digest_of
from region_scheduler.domain.instance import Instance, Role
from region_scheduler.domain.task import SCHEMA
from region_scheduler.errors import Fenced
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.ports.time import Clock, Ids
from region_scheduler.runtime.loop import Loop, leave

log = structlog.get_logger()

_PATIENCE_S = 30.0


def new_instance(
    settings: Settings,
    name: str,
    roles: Sequence[Role],
    clock: Clock,
    ids: Ids,
    *,
    capacity: Mapping[str, int] | None = None,
    url: str = "",
) -> Instance:
    """Return a new incarnation of this process, not inserted yet.

    Args:
        settings: Of this process.
        name: What it is within its region, e.g. `serve`.
        roles: What it does.
        clock: For the first stamp.
        ids: For the incarnation.
        capacity: Attempts that it can run at once, by pool; workers only.
        url: Where its HTTP surface answers.
    """
    region = settings.region
    return Instance(
        id=Incarnation(f"{region}.{name}:{ids.new()}"),
        roles=tuple(roles),
        region=region,
        ttl_s=settings.lease.ttl_s,
        capacity=dict(capacity or {}),
        pid=os.getpid(),
        host=socket.gethostname(),
        url=url,
        stamped_at=clock.now(),
        settings_digest=settings_digest(settings),
    )


def settings_digest(settings: Settings) -> str:
    """Return a digest of what must be equal in a whole cluster; tells nothing of the key."""
    key = settings.signing_key.get_secret_value()
    return content_digest([SCHEMA, settings.lease, digest_of("signing key", key)])


def tell_set_back(reason: str) -> None:
    """Raise the alert that the store was set back, and that everything is paused."""
    log.critical("graph store set back: everything is paused", reason=reason)


class Membership:
    """Holds a lease from `start` to `join`; the first part of a service, so the last to end.

    A process that does not do its work any more has no lease: it is not renewed while it is stuck,
    and ends at once if that outlasts the lease, so that it can be started anew.

    Args:
        keeper: Of an incarnation that is not registered yet.
        is_stuck: Whether what this process is for stands still, though this thread does not.
        on_lapsed: Ends the process, whose main thread may not answer.
    """

    name = "lease"

    def __init__(
        self,
        keeper: LeaseKeeper,
        is_stuck: Callable[[], bool] = lambda: False,
        on_lapsed: Callable[[], None] = lambda: leave(Fenced.exit_code),
    ) -> None:
        self._keeper = keeper
        self._is_stuck = is_stuck
        self._on_lapsed = on_lapsed
        self._was_stuck = False
        # A longer pause could cost the lease though the store is back in time.
        self._loop = Loop(self.name, self._renew, pause_max_s=keeper.retry_s)

    def start(self) -> None:
        """Register, and renew from now on.

        Raises:
            Unavailable, OutcomeUnknown: The graph store did not answer for half a minute.
        """
        patiently(self._keeper.register, _PATIENCE_S)
        log.info("registered", instance=self._keeper.instance.id)
        self._loop.start()

    def stop(self) -> None:
        """Renew no more; returns at once."""
        self._loop.stop()

    def join(self, timeout_s: float) -> bool:
        """Give the lease up, so that nobody has to wait for it to run out."""
        has_ended = self._loop.join(timeout_s)
        self._keeper.surrender()
        return has_ended

    def _renew(self) -> float | None:
        # One that was stopped as a whole and goes on is asked twice, so that its work can tell.
        was_stuck, self._was_stuck = self._was_stuck, self._is_stuck()
        if self._was_stuck:
            if was_stuck and not self._keeper.may_act():
                log.critical("stuck: this process ends", instance=self._keeper.instance.id)
                self._on_lapsed()
            elif not was_stuck:
                log.error("stuck: its lease is not renewed", instance=self._keeper.instance.id)
            return self._keeper.retry_s
        try:
            return self._keeper.renew()
        except Fenced:
            return None  # whoever built the keeper was told, and ends the process
