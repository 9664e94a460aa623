"""The region's queues, filled in batches: one round trip a pool, however many messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from kombu.utils.uuid import uuid

from region_scheduler.drivers.celery.app import queue_arguments
from region_scheduler.drivers.celery.confirms import Confirms, has_confirms
from region_scheduler.drivers.celery.envelope import Envelopes
from region_scheduler.drivers.celery.link import Link, Producer, has_lists
from region_scheduler.drivers.celery.message import encode
from region_scheduler.errors import OutcomeUnknown, Unavailable, ensure
from region_scheduler.ports.queue import AttemptMessage, queue_name

log = structlog.get_logger()


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
        self._envelopes = Envelopes(app)
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
        ids = [uuid() for _ in messages]
        wanted: dict[str, dict[str, bytes]] = {message.pool: {} for message in messages}
        for id_, message in zip(ids, messages, strict=True):
            wanted[message.pool][id_] = encode(message, self._key)
        begun: set[str] = set()
        refused: frozenset[str] = frozenset()
        try:
            with self._link.channel() as channel:
                for pool, texts in wanted.items():
                    self._put(channel, pool, texts, begun)
                if self._confirms is not None:
                    refused = self._confirms.refused()
        except Unavailable as unreached:
            log.warning("messages not published", count=len(messages), detail=unreached.detail)
        except OutcomeUnknown as failed:
            self._declared.clear()
            log.warning("messages perhaps published", count=len(begun), detail=failed.detail)
        if refused:
            self._declared.clear()  # a queue was perhaps deleted under us
            log.warning("messages refused by the broker", count=len(refused))
        return [id_ in begun and id_ not in refused for id_ in ids]

    def length(self, pool: str) -> int:
        """Count the messages that no worker has taken yet.

        Raises:
            Unavailable: No answer.
        """
        return self._link.asked(lambda channel: self._length(channel, pool))

    def close(self) -> None:
        """End the connection; the next use opens another."""
        self._link.close()

    def _length(self, channel: Any, pool: str) -> int:
        if not has_lists(channel):
            return self._declare(channel, pool)
        count: int = channel.client.llen(queue_name(self._region, pool))
        return count

    def _put(self, channel: Any, pool: str, texts: Mapping[str, bytes], begun: set[str]) -> None:
        """Put signed messages, by id, in the queue of `pool`; note in `begun` which were begun."""
        if has_lists(channel):
            name = queue_name(self._region, pool)
            listed = [self._envelopes.listed(id_, raw, name) for id_, raw in texts.items()]
            begun.update(texts)
            channel.client.lpush(name, *listed)
        else:
            self._put_each(channel, pool, texts, begun)

    def _put_each(
        self, channel: Any, pool: str, texts: Mapping[str, bytes], begun: set[str]
    ) -> None:
        self._confirms = self._confirms_of(channel)
        producer = Producer(channel, serializer="json", auto_declare=False)
        if pool not in self._declared:
            self._declare(channel, pool)
        for id_, raw in texts.items():
            begun.add(id_)
            producer.publish(
                self._envelopes.body(raw),
                exchange="",
                routing_key=queue_name(self._region, pool),
                content_type="application/json",
                content_encoding="utf-8",
                headers=self._envelopes.headers(id_),
                mandatory=True,
                **self._envelopes.properties(id_),
            )
            if self._confirms is not None:
                self._confirms.sent(id_)

    def _confirms_of(self, channel: Any) -> Confirms | None:
        """Return the bookkeeping of this channel; None if its broker answers every call anyway."""
        if not has_confirms(channel):
            return None
        if self._confirms is None or self._confirms.channel is not channel:
            return Confirms(channel)
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
