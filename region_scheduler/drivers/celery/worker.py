"""A plain Celery worker in this process, fed from its own region's queues only."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

from region_scheduler.ports.queue import queue_name

Hook = Callable[[], None]


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
        consumer_cls=_consumer_class(),
        quiet=True,
        loglevel="WARNING",
    )
    worker.start()
    del receivers  # Celery refers to them weakly
    return int(worker.exitcode or 0)


def _consumer_class() -> Any:
    """Return Celery's consumer without what it does for delays, which nobody uses here.

    Seeing a quorum queue, it would declare some thirty exchanges and queues at the broker.
    """
    from celery.worker import consumer

    plain: Any = consumer.Consumer
    steps = [s for s in plain.Blueprint.default_steps if not s.endswith(":DelayedDelivery")]
    blueprint = type("Blueprint", (plain.Blueprint,), {"default_steps": steps})
    return type("UndelayedConsumer", (plain,), {"Blueprint": blueprint})


def _connect(signal: Any, hook: Hook) -> Any:
    def receive(**_sent: Any) -> None:
        hook()

    signal.connect(receive, weak=True)
    return receive


def _security_warning() -> type[Warning]:
    from celery.platforms import SecurityWarning

    found: type[Warning] = SecurityWarning
    return found
