"""The Celery app: its settings, and the one task that every message is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import structlog
from celery import Celery
from celery.exceptions import Reject

from region_scheduler.drivers.celery.message import UnknownSchema
from region_scheduler.errors import InvalidInput

log = structlog.get_logger()

RUN_ATTEMPT: Final = "region_scheduler.run_attempt"
_HAND_BACK_PAUSE_S: Final = 1.0

Handle = Callable[[bytes], None]
"""Takes one signed message; what it raises is logged, and the message is then spent."""


def build_app(broker_url: str, *, visibility_timeout_s: float, handle: Handle | None = None) -> Any:
    """Return a Celery app whose one task hands each message to `handle`.

    Args:
        broker_url: `redis://…` or `amqp://…`; connected to when first used.
        visibility_timeout_s: On Redis, a message unacknowledged for this long is delivered again;
            above the longest cap, and the same for all users of one broker. RabbitMQ has its own
            `consumer_timeout`.
        handle: What a worker does; None where messages are only published.
    """
    app = Celery("region_scheduler", broker=broker_url, set_as_current=False)
    app.conf.update(
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_acks_on_failure_or_timeout=True,
        task_ignore_result=True,
        task_serializer="json",
        accept_content=["json"],
        worker_prefetch_multiplier=1,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_soft_shutdown_timeout=20.0,
        worker_enable_remote_control=False,  # a stop request is a write that the worker reads
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_send_task_events=False,
        worker_proc_alive_timeout=60.0,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options=_transport_options(broker_url, visibility_timeout_s),
        task_create_missing_queue_type="quorum" if is_amqp(broker_url) else "classic",
    )

    def run_attempt(message: str) -> None:
        _hand_over(message, handle)

    app.task(name=RUN_ATTEMPT, shared=False)(run_attempt)  # each app of a process has its own
    return app


def is_amqp(broker_url: str) -> bool:
    """Say whether the address is that of a RabbitMQ."""
    return broker_url.startswith("amqp")


def queue_arguments(app: Any) -> dict[str, str] | None:
    """Return what a queue of attempts is declared with: the same by whoever comes first."""
    kind = app.conf.task_create_missing_queue_type
    return {"x-queue-type": kind} if kind == "quorum" else None


def _transport_options(broker_url: str, visibility_timeout_s: float) -> dict[str, Any]:
    if is_amqp(broker_url):
        return {"connect_timeout": 3}
    if not broker_url.startswith("redis"):
        return {}
    return {
        "visibility_timeout": visibility_timeout_s,
        # By default lost messages are looked for every 100 s only.
        "unacked_restore_interval": 10,
        "unacked_restore_throttle": 1,
        "socket_timeout": 30,
        "socket_connect_timeout": 3,
        "socket_keepalive": True,
        "health_check_interval": 25,
    }


def _hand_over(message: str, handle: Handle | None) -> None:
    """Call `handle`; drop what is no message of ours, hand back what a newer version may know."""
    if handle is None:
        raise Reject("no handler here", requeue=True)
    try:
        handle(message.encode())
    except UnknownSchema as unknown:
        log.warning("message handed back", reason=str(unknown))
        # Perhaps only workers of this version live: without a pause it would go round and round.
        threading.Event().wait(_HAND_BACK_PAUSE_S)
        raise Reject(str(unknown), requeue=True) from unknown
    except InvalidInput as refused:
        # Nothing is lost: a task whose message is dropped is given back by its dispatch time-out.
        log.error("message dropped", field=refused.field, expected=refused.expected)
