"""The region's queues, filled in batches: one round trip however many messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import structlog
from kombu.utils.uuid import uuid

from region_scheduler.drivers.celery.app import RUN_ATTEMPT, queue_arguments
from region_scheduler.drivers.celery.confirms import Confirms, has_confirms
from region_scheduler.drivers.celery.link import Link, Producer
from region_scheduler.drivers.celery.message import encode
from region_scheduler.errors import OutcomeUnknown, Unavailable, ensure
from region_scheduler.ports.queue import AttemptMessage, queue_name

log = structlog.get_logger()

_BATCH_MAX: Final = 10_000


class CeleryQueue:
    """`ports.queue.TaskQueue` on the broker of a Celery app. Threads may share one.

    Args:
        app: From `build_app`.
        region: The only region whose messages are taken.
        key: Signs the messages.
    """

    def __init__(self, app: Any, region: str, key: bytes) -> None:
        self._app = app
        self._region = region
        self._key = key
        self._link = Link(app)
        self._declared: set[str] = set()
        self._confirms: Confirms | None = None

    def publish(self, messages: Sequence[AttemptMessage]) -> list[bool]:
        """Put each message in its pool's queue, in order; see the port for what is returned.

        Raises:
            BrokenInvariant: A message is for another region.
        """
        ensure(
            all(message.region == self._region for message in messages),
            "a message stays in its region",
        )
        if not messages:
            return []
        begun = 0
        is_batch = False
        refused: frozenset[str] = frozenset()
        ids = [uuid() for _ in messages]
        try:
            with self._link.channel() as channel:
                confirms = self._confirms_of(channel)
                producer = Producer(channel, serializer="json", auto_declare=False)
                is_batch = producer.supports_batch_publish
                with producer.batch(max_size=_BATCH_MAX):
                    for id_, message in zip(ids, messages, strict=True):
                        if message.pool not in self._declared:
                            self._declare(channel, message.pool)
                        begun += 1
                        self._put(producer, message, id_)
                        if confirms is not None:
                            confirms.sent(id_)
                if confirms is not None:
                    refused = confirms.refused()
        except Unavailable as unreached:
            log.warning("messages not published", count=len(messages), detail=unreached.detail)
            return [False] * len(messages)
        except OutcomeUnknown as failed:
            self._declared.clear()
            log.warning("messages perhaps published", count=begun, detail=failed.detail)
            # A batch that did not get to its end was never sent.
            is_unsent = is_batch and begun < len(messages)
            return [not is_unsent and n < begun for n in range(len(messages))]
        if refused:
            self._declared.clear()  # a queue was perhaps deleted under us
            log.warning("messages refused by the broker", count=len(refused))
        return [id_ not in refused for id_ in ids]

    def length(self, pool: str) -> int:
        """Count the messages that no worker has taken yet.

        Raises:
            Unavailable: No answer.
        """
        try:
            with self._link.channel() as channel:
                return self._declare(channel, pool)
        except OutcomeUnknown as failed:
            raise Unavailable(dependency="broker", detail=failed.detail) from failed

    def close(self) -> None:
        """End the connection; the next use opens another."""
        self._link.close()

    @cached_property
    def _form(self) -> tuple[Any, Any, Any]:
        """Body, headers and properties as Celery has them; all messages differ in ids and text."""
        sent = self._app.amqp.create_task_message(
            "", RUN_ATTEMPT, ("",), {}, ignore_result=True, argsrepr="", kwargsrepr=""
        )
        return sent.body, sent.headers, sent.properties

    def _confirms_of(self, channel: Any) -> Confirms | None:
        """Return the bookkeeping of this channel; None if its broker answers every call anyway."""
        if not has_confirms(channel):
            return None
        if self._confirms is None or self._confirms.channel is not channel:
            self._confirms = Confirms(channel)
        return self._confirms

    def _declare(self, channel: Any, pool: str) -> int:
        """Make sure that the queue is there, as a worker would make it; return its length."""
        name = queue_name(self._region, pool)
        declared = channel.queue_declare(
            queue=name, durable=True, auto_delete=False, arguments=queue_arguments(self._app)
        )
        self._declared.add(pool)
        count: int = declared.message_count
        return count

    def _put(self, producer: Any, message: AttemptMessage, id_: str) -> None:
        body, headers, properties = self._form
        args = (encode(message, self._key).decode(),)
        producer.publish(
            json.dumps([args, *body[1:]]),
            exchange="",
            routing_key=queue_name(message.region, message.pool),
            content_type="application/json",
            content_encoding="utf-8",
            headers={**headers, "id": id_, "root_id": id_},
            mandatory=True,
            **{**properties, "correlation_id": id_},
        )
