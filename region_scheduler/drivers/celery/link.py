"""One connection to the broker for publishing, opened when first used, tried before each use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import inf
from typing import Any, Final, TypeVar

from kombu import entity, messaging
from kombu.exceptions import KombuError

from region_scheduler.errors import OutcomeUnknown, Unavailable
from region_scheduler.runtime.system import SystemClock

# Untyped in kombu.
Consumer: Any = messaging.Consumer
Exchange: Any = entity.Exchange
Producer: Any = messaging.Producer
Queue: Any = entity.Queue

T = TypeVar("T")

_DEPENDENCY: Final = "broker"
_IMPATIENT: Final[dict[str, dict[str, float]]] = {
    "redis": {"socket_timeout": 5, "socket_connect_timeout": 1},
    "amqp": {"connect_timeout": 1, "read_timeout": 5, "write_timeout": 5},
}
"""How long a publisher waits, in seconds, by kind of broker."""
_FRESH_S: Final = 0.05
"""A channel that answered so recently is not tried again: should it have failed since, what is sent
counts as perhaps sent, which costs time and no truth."""


class Link:
    """Hands out a channel that answered just now, or a moment ago. Threads take turns.

    What fails before the channel is handed out was surely not sent; what fails after it may have
    been.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._clock = SystemClock()
        self._answered_at = -inf
        self._connection: Any = None
        self._channel: Any = None

    @contextmanager
    def channel(self) -> Iterator[Any]:
        """Yield a live channel; whatever is raised while it is used drops the connection.

        Raises:
            Unavailable: The broker was not reached; nothing was sent.
            OutcomeUnknown: It failed while the channel was used.
        """
        with self._lock:
            channel = self._live()
            errors = broker_errors(self._connection)
            try:
                yield channel
                self._answered_at = self._clock.monotonic()
            except errors as failed:
                self._drop()
                raise OutcomeUnknown(dependency=_DEPENDENCY, detail=str(failed)) from failed
            except BaseException:
                self._drop()
                raise

    def close(self) -> None:
        """End the connection; the next use opens another."""
        with self._lock:
            self._drop()

    def asked(self, question: Callable[[Any], T]) -> T:
        """Return the broker's answer to what changes nothing there, and may be asked twice.

        Args:
            question: Given a channel.

        Raises:
            Unavailable: No answer.
        """
        with self._lock:
            return self._asked(question)

    def _live(self) -> Any:
        is_fresh = self._clock.monotonic() - self._answered_at < _FRESH_S
        if self._channel is None or not is_fresh:
            self._asked(_probe)
        return self._channel

    def _asked(self, question: Callable[[Any], T]) -> T:
        is_used = self._channel is not None
        if not is_used:
            kind = self._app.connection_for_write().transport.driver_type
            options = _IMPATIENT.get(kind)
            self._connection = self._app.connection_for_write(transport_options=options)
        try:
            if not is_used:
                # `connect` would sleep for seconds between its tries.
                self._connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0)
                self._channel = self._connection.channel()
            answer = question(self._channel)
        except broker_errors(self._connection) as failed:
            self._drop()
            if is_used:  # the broker was restarted, perhaps: once more, anew
                return self._asked(question)
            raise Unavailable(dependency=_DEPENDENCY, detail=str(failed)) from failed
        except BaseException:
            self._drop()
            raise
        self._answered_at = self._clock.monotonic()
        return answer

    def _drop(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        if connection is not None:
            with suppress(Exception):
                connection.release()


def has_lists(channel: Any) -> bool:
    """Say whether queues are lists behind `channel`: Redis, or one like it."""
    return hasattr(channel, "client")


def broker_errors(connection: Any) -> tuple[type[Exception], ...]:
    """Return what a failing broker raises through `connection`."""
    return (*connection.connection_errors, *connection.channel_errors, KombuError)


def _probe(channel: Any) -> None:
    """Have the broker answer."""
    if has_lists(channel):
        channel.client.ping()
    else:
        channel.basic_qos(0, 0, False)  # the cheapest call that AMQP answers; nothing is consumed
