"""Wake-ups within a region: a transient fanout exchange that every scheduler of it listens to."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import structlog
from kombu.utils.uuid import uuid

from region_scheduler.domain.task import SCHEMA
from region_scheduler.drivers.celery.link import (
    Consumer,
    Exchange,
    Link,
    Producer,
    Queue,
    broker_errors,
)
from region_scheduler.errors import OutcomeUnknown, Unavailable
from region_scheduler.runtime.courier import Courier
from region_scheduler.runtime.loop import Loop

log = structlog.get_logger()

_LISTEN_S: Final = 0.5
_HEARTBEAT_S: Final = 10.0


class BrokerWakeUps:
    """`ports.queue.WakeUps` for the region whose broker this is; sent by a thread of its own."""

    def __init__(self, app: Any) -> None:
        self._link = Link(app)
        self._courier = Courier("wake-up", self._deliver)

    def wake(self, region: str) -> None:
        """Wake the schedulers of `region` that listen on this broker; returns at once."""
        self._courier.send(region)

    def close(self) -> None:
        """Send what waits, and end thread and connection."""
        self._courier.close()
        self._link.close()

    def _deliver(self, region: str) -> None:
        exchange = _exchange(region)
        try:
            with self._link.channel() as channel:
                producer = Producer(channel, serializer="json", auto_declare=False)
                exchange(channel).declare()
                producer.publish({"schema": SCHEMA, "region": region}, exchange=exchange)
        except (Unavailable, OutcomeUnknown) as failed:
            log.debug("wake-up lost", region=region, detail=failed.detail)


class WakeListener:
    """Calls `on_wake` in a thread of its own for every wake-up of `region`; a part of a service.

    It is called as well after each (re)connection: what was sent meanwhile is lost.
    """

    name = "wake-listener"

    def __init__(self, app: Any, region: str, on_wake: Callable[[], None]) -> None:
        self._app = app
        self._region = region
        self._on_wake = on_wake
        self._connection: Any = None
        self._loop = Loop(self.name, self._listen)

    def start(self) -> None:
        """Begin to listen; the broker need not be there yet."""
        self._loop.start()

    def stop(self) -> None:
        """Ask it to end; returns at once."""
        self._loop.stop()

    def join(self, timeout_s: float) -> bool:
        """Wait for its end; return whether it has ended."""
        has_ended = self._loop.join(timeout_s)
        if has_ended:
            self._drop()
        return has_ended

    def _listen(self) -> float:
        """Wait a moment for wake-ups: one tick."""
        connection = self._connection or self._app.connection_for_read(heartbeat=_HEARTBEAT_S)
        try:
            if self._connection is None:
                self._connection = connection
                self._subscribe(connection)
            with suppress(socket.timeout):
                connection.drain_events(timeout=_LISTEN_S)
            if connection.supports_heartbeats:  # else a link that was cut in silence stays silent
                connection.heartbeat_check()
        except broker_errors(connection) as failed:
            self._drop()
            raise Unavailable(dependency="broker", detail=str(failed)) from failed
        return 0.0

    def _subscribe(self, connection: Any) -> None:
        connection.connect()
        queue = Queue(
            f"rs.{self._region}.wake.{uuid()}",
            _exchange(self._region),
            durable=False,
            exclusive=True,
            auto_delete=True,
        )
        consumer = Consumer(
            connection.channel(),
            [queue],
            no_ack=True,
            accept=["json"],
            on_message=lambda _message: self._on_wake(),
        )
        consumer.consume()
        self._on_wake()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.release()


def _exchange(region: str) -> Any:
    return Exchange(f"rs.{region}.wake", type="fanout", durable=False, delivery_mode="transient")
