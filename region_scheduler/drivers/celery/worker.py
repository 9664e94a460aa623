"""A plain Celery worker in this process, fed from its own region's queues only."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from region_scheduler.ports.queue import queue_name

Hook = Callable[[], None]
_PROGRESS_EVERY_S: Final = 0.5


def run_worker(
    app: Any,
    region: str,
    pools: Sequence[str],
    concurrency: int,
    kind: Literal["prefork", "threads"] = "prefork",
    *,
    on_start: Hook | None = None,
    on_child_start: Hook | None = None,
    on_stop: Hook | None = None,
    on_progress: Hook | None = None,
    on_wait: Hook | None = None,
) -> int:
    """Run a worker in the main thread until it is told to end; return its exit code.

    SIGTERM and the first SIGINT take nothing more and wait for running attempts; a second SIGINT,
    or SIGQUIT, waits `worker_soft_shutdown_timeout` and hands them back.

    Args:
        app: From `build_app`, with a handler.
        region: Its queues alone are subscribed to.
        pools: Which of them.
        concurrency: Attempts at once.
        kind: Child processes, or threads of this one.
        on_start: Called when the worker takes messages, in this process; again after each
            reconnection.
        on_child_start: Called in every process that runs attempts before it takes the first. With
            `prefork` that is each child, after the fork: open connections and threads here.
        on_stop: Called when the worker was told to end, inside the signal handler: set a flag only.
        on_progress: Called by the loop that takes messages, at least every two seconds while it
            goes round; it is called no more once the worker ends.
        on_wait: Called when that loop is about to wait for the broker, for as long as it takes.
    """
    from celery import signals

    hooks: list[tuple[Any, Hook | None]] = [
        (signals.worker_ready, on_start),
        (signals.worker_process_init, on_child_start),
        (signals.worker_shutting_down, on_stop),
        (signals.setup_logging, lambda: None),  # a receiver keeps Celery from setting up its own
    ]
    receivers = [_connect(signal, hook) for signal, hook in hooks if hook is not None]
    # It warns of running as root because of pickle, which no one accepts here.
    warnings.filterwarnings("ignore", category=_security_warning())
    if kind == "threads" and on_child_start is not None:
        on_child_start()
    worker = app.Worker(
        hostname=f"{region}.{os.getpid()}@{socket.gethostname()}",
        pool=kind,
        concurrency=concurrency,
        queues=[queue_name(region, pool) for pool in pools],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        task_events=False,
        consumer_cls=_consumer_class(on_progress or _nothing, on_wait or _nothing),
        quiet=True,
        loglevel="WARNING",
    )
    worker.start()
    del receivers  # Celery refers to them weakly
    return int(worker.exitcode or 0)


def _nothing() -> None:
    pass


def _consumer_class(on_progress: Hook, on_wait: Hook) -> Any:
    """Return Celery's consumer, which tells of its progress and leaves out its part for delays.

    Nobody uses delays here, and seeing a quorum queue it would declare some thirty exchanges and
    queues at the broker.
    """
    from celery.worker import consumer

    plain: Any = consumer.Consumer
    steps = [s for s in plain.Blueprint.default_steps if not s.endswith(":DelayedDelivery")]

    def register_with_event_loop(self: Any, hub: Any) -> None:
        plain.register_with_event_loop(self, hub)
        hub.call_repeatedly(_PROGRESS_EVERY_S, on_progress)

    def perform_pending_operations(self: Any) -> None:  # in each round of the loop for threads
        on_progress()
        plain.perform_pending_operations(self)

    def ensure_connected(self: Any, connection: Any) -> Any:
        on_wait()
        return plain.ensure_connected(self, connection)

    own = {
        "Blueprint": type("Blueprint", (plain.Blueprint,), {"default_steps": steps}),
        "register_with_event_loop": register_with_event_loop,
        "perform_pending_operations": perform_pending_operations,
        "ensure_connected": ensure_connected,
    }
    return type("TellingConsumer", (plain,), own)


def _connect(signal: Any, hook: Hook) -> Any:
    def receive(**_sent: Any) -> None:
        hook()

    signal.connect(receive, weak=True)
    return receive


def _security_warning() -> type[Warning]:
    from celery.platforms import SecurityWarning

    found: type[Warning] = SecurityWarning
    return found
