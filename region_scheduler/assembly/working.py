"""The worker process of a region: Celery's master keeps the lease, its children run the attempts.

With `prefork` each child opens its own connections after the fork; with `threads` there is one set.
What master and children share lies in one directory of this incarnation: the receipts, the lease's
deadline, and the mark by which children learn that the worker is to end.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from region_scheduler.assembly.environment import inherited
from region_scheduler.assembly.member import Membership, new_instance, tell_set_back
from region_scheduler.assembly.production import (
    open_broker,
    open_graph,
    open_residence,
    open_wake_ups,
)
from region_scheduler.assembly.tether import tie
from region_scheduler.config.settings import Settings
from region_scheduler.domain.ids import Incarnation
from region_scheduler.domain.instance import Role
from region_scheduler.domain.lease import Instant
from region_scheduler.domain.step import Runner
from region_scheduler.domain.task import Task
from region_scheduler.errors import Fenced, OutcomeUnknown, Unavailable
from region_scheduler.lifecycle.pauses import stop_claiming
from region_scheduler.lifecycle.settle import Settler
from region_scheduler.membership.keeper import LeaseKeeper
from region_scheduler.ports.records import GraphStores
from region_scheduler.ports.time import Clock
from region_scheduler.runtime.pulse import Pulse
from region_scheduler.runtime.system import SystemClock, UuidIds
from region_scheduler.worker.attempt import AttemptHandler, WorkerIdentity, WorkerPaths
from region_scheduler.worker.lease_file import LeaseFile, LeaseReader
from region_scheduler.worker.receipts import Receipts

log = structlog.get_logger()

_PATIENCE_S = 60.0
_LITTER_S = 600.0
_ROUND_S = 5.0
"""What takes messages goes round every two seconds, on a busy machine a little later."""
STEPS_LOG = "steps.jsonl"
REFUSED = "late completion refused"
"""In a worker's log: an attempt ended after its task had been taken from it."""
READY_SUFFIX = ".ready"


@dataclass(frozen=True, slots=True)
class _Places:
    """Where one incarnation keeps what its processes share."""

    own: Path

    @property
    def receipts(self) -> Path:
        return self.own / "receipts"

    @property
    def lease(self) -> Path:
        return self.own / "lease"

    @property
    def ending(self) -> Path:
        return self.own / "ending"


def run_worker_process(settings: Settings) -> int:
    """Run a worker until it is told to end or its lease is over; return the exit code.

    Raises:
        Misconfigured: An address is missing, or the graph store refuses us.
        Unavailable: The graph store was not reached for a minute.
    """
    from region_scheduler.drivers.celery.worker import run_worker

    clock, ids = SystemClock(), UuidIds()
    capacity = dict.fromkeys(settings.worker.pools, settings.worker.concurrency)
    instance = new_instance(settings, "worker", [Role.WORKER], clock, ids, capacity=capacity)
    places = _Places(_own_directory(settings, instance.id, clock.monotonic()))
    lease = LeaseFile(places.lease)
    fenced = threading.Event()

    def on_fenced() -> None:
        log.error("lease is over: this worker ends", code=Fenced.code, instance=instance.id)
        lease.revoke()
        fenced.set()
        os.kill(os.getpid(), signal.SIGTERM)

    with ExitStack() as closing:
        closing.callback(shutil.rmtree, places.own, ignore_errors=True)
        graph = open_graph(settings, closing, _PATIENCE_S)
        receipts = Receipts(places.receipts)
        told = (
            receipts.live,
            lease.extend,
            on_fenced,
            partial(_set_back, graph, clock, instance.id),
        )
        keeper = LeaseKeeper(graph.instances, instance, settings.lease, clock, *told)
        progress = _Progress(settings, places)
        closing.callback(progress.ready.unlink, missing_ok=True)
        membership = Membership(keeper, progress.is_stuck)
        membership.start()
        attempts = _Attempts(settings, instance.id, places)
        _share_with_children(attempts.broker)
        code = run_worker(
            attempts.broker,
            settings.region,
            settings.worker.pools,
            settings.worker.concurrency,
            settings.worker.kind,
            on_start=progress.goes_round,
            on_child_start=attempts.open,
            on_stop=progress.ends,
            on_progress=progress.goes_round,
            on_wait=progress.pulse.rest,
        )
        membership.stop()
        membership.join(settings.lease.ttl_s)
    return Fenced.exit_code if fenced.is_set() else code


def _set_back(graph: GraphStores, clock: Clock, by: Incarnation, reason: str) -> None:
    stop_claiming(graph.pauses, by, reason, clock.now())
    tell_set_back(reason)


class _Progress:
    """Whether this worker takes messages: told by the loop that does, judged by its lease."""

    def __init__(self, settings: Settings, places: _Places) -> None:
        self.pulse = Pulse(max(2 * settings.lease.renew_every_s, _ROUND_S))
        self.ready = ready_mark(settings, os.getpid())
        self._ending = places.ending

    def goes_round(self) -> None:
        self.pulse.beat()
        self.ready.touch()

    def ends(self) -> None:
        self.pulse.end()
        self._ending.touch()

    def is_stuck(self) -> bool:
        is_stuck = self.pulse.is_stuck
        if is_stuck:
            self.ready.unlink(missing_ok=True)
        return is_stuck


def ready_mark(settings: Settings, pid: int) -> Path:
    """Return the file that is there while the worker with process id `pid` takes messages."""
    return Path(settings.paths.work_dir) / f"{pid}{READY_SUFFIX}"


def _share_with_children(broker: Any) -> None:
    """Load what every child needs, and keep the collector from touching, and so copying, it."""
    import gc

    import region_scheduler.drivers.celery.wakeups
    import region_scheduler.drivers.http.wakeups
    import region_scheduler.worker.runners.check
    import region_scheduler.worker.runners.command
    import region_scheduler.worker.runners.simulate
    import region_scheduler.worker.runners.terraform  # noqa: F401

    # Named, Celery's parts are loaded: its worker with its pool, and the broker's transport.
    _ = broker.Worker, broker.connection_for_read().get_transport_cls()
    gc.collect()
    gc.freeze()


class _Attempts:
    """What a process that runs attempts has open. `open` comes first, once a process."""

    def __init__(self, settings: Settings, incarnation: Incarnation, places: _Places) -> None:
        self._settings = settings
        self._incarnation = incarnation
        self._places = places
        self._master = os.getpid()
        self.broker = open_broker(settings, self.take)
        self._handle: Callable[[bytes], None] | None = None

    def open(self) -> None:
        if os.getpid() != self._master:
            tie(self._master)
        self._handle = self._handler()

    def take(self, raw: bytes) -> None:
        if self._handle is None:
            self.open()
        assert self._handle is not None  # noqa: S101 - `open` has set it
        self._handle(raw)

    def _handler(self) -> Callable[[bytes], None]:
        from region_scheduler.drivers.celery.message import decode

        settings, places = self._settings, self._places
        closing = ExitStack()  # lives as long as the process
        graph = open_graph(settings, closing, _PATIENCE_S)
        wake_ups = open_wake_ups(settings, self.broker, closing)
        clock = SystemClock()
        receipts = Receipts(places.receipts)
        handler = AttemptHandler(
            WorkerIdentity(self._incarnation, settings.region),
            graph,
            Settler(graph, wake_ups, clock, self._incarnation),
            _runners(settings, receipts, clock),
            receipts,
            LeaseReader(places.lease).deadline,
            settings.lease,
            clock,
            UuidIds(),
            _paths(settings, places),
            clock.pause,
            places.ending.exists,
            _tell_refused,
            open_residence(settings, closing),
        )
        key = settings.signing_key_bytes()

        def handle(raw: bytes) -> None:
            try:
                handler.handle(decode(raw, key))
            except (Unavailable, OutcomeUnknown) as unanswered:
                # What is left to do is seen in the graph: the reconciler or the lease does it.
                log.warning("attempt not settled", error=unanswered.code, detail=str(unanswered))

        return handle


def _tell_refused(task: Task, refused: Fenced) -> None:
    log.warning(
        REFUSED,
        code=refused.code,
        task=task.id,
        attempt=task.attempt,
        token=str(task.token),
        detail=str(refused),
    )


def _runners(settings: Settings, receipts: Receipts, clock: SystemClock) -> Mapping[str, Runner]:
    from region_scheduler.worker.runners.registry import RunnerSettings, runners

    return runners(
        RunnerSettings(
            clock=clock,
            environ=inherited(),
            receipts=receipts,
            stop_s=settings.lease.stop_s,
            stop_grace_s=settings.lease.stop_grace_s,
            log_bytes_max=settings.worker.log_mib_max << 20,
            memory_mib_max=settings.worker.memory_mib_max,
        )
    )


def _paths(settings: Settings, places: _Places) -> WorkerPaths:
    paths = settings.paths
    for directory in (paths.work_dir, paths.state_dir, paths.log_dir):
        Path(directory).mkdir(parents=True, exist_ok=True)
    return WorkerPaths(
        work_dir=places.own / "work",
        state_dir=Path(paths.state_dir).absolute(),
        log_dir=Path(paths.log_dir).absolute(),
        steps_log=(Path(paths.log_dir) / STEPS_LOG).absolute(),
        lease_path=places.lease,
    )


def _own_directory(settings: Settings, incarnation: Incarnation, now: Instant) -> Path:
    """Make this incarnation's directory, and remove those whose lease ran out long ago.

    Temporary files of this process go there, too, so that a killed one leaves none elsewhere.
    """
    work_dir = Path(settings.paths.work_dir).absolute()
    for lease in work_dir.glob("*/lease"):
        with LeaseReader(lease) as reader:
            deadline = reader.deadline()
        if 0.0 < deadline < now - _LITTER_S:  # 0: it is only about to begin
            shutil.rmtree(lease.parent, ignore_errors=True)
    own = work_dir / incarnation.rpartition(":")[2]
    own.mkdir(parents=True)
    tempfile.tempdir = str(own)
    return own
