"""What every driver of `ports.queue.TaskQueue` keeps."""

from __future__ import annotations

import json
import signal
import socket
import time
from contextlib import suppress
from typing import Any

import pytest

from region_scheduler.domain.ids import ClaimId, TaskId
from region_scheduler.domain.task import Token
from region_scheduler.drivers.celery.app import RUN_ATTEMPT
from region_scheduler.drivers.celery.link import Consumer
from region_scheduler.drivers.celery.message import decode
from region_scheduler.drivers.celery.queue import CeleryQueue
from region_scheduler.errors import BrokenInvariant, Unavailable
from region_scheduler.ports.queue import AttemptMessage, TaskQueue, queue_name
from tests.contract.queue.conftest import KEY, REGION
from tests.services import Broker, Valkey


def message(number: int, pool: str = "default", region: str = REGION) -> AttemptMessage:
    return AttemptMessage(
        task=TaskId(f"tasks/{number}"),
        token=Token(number, ClaimId(f"claim-{number}")),
        region=region,
        pool=pool,
        trace="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    )


def taken(app: Any, pool: str = "default") -> list[AttemptMessage]:
    """Take everything from a queue, as a worker of this region and pool would."""
    found: list[AttemptMessage] = []

    def take(received: Any) -> None:
        (body,), _, _ = json.loads(received.body)
        assert received.headers["task"] == RUN_ATTEMPT
        found.append(decode(body.encode(), KEY))
        received.ack()

    with app.connection_for_read() as connection:
        queue = app.amqp.queues[queue_name(REGION, pool)]
        with Consumer(connection.channel(), [queue], on_message=take), suppress(socket.timeout):
            while True:
                connection.drain_events(timeout=0.3)
    return found


def test_messages_arrive_whole_in_order_and_in_their_pool(queue: TaskQueue, app: Any) -> None:
    first = [message(n) for n in range(30)]
    other = [message(n, pool="big") for n in range(30, 33)]

    assert queue.publish([*first, *other]) == [True] * 33

    assert taken(app) == first
    assert taken(app, "big") == other
    assert taken(app) == []


def test_the_length_is_what_nobody_took(queue: TaskQueue, app: Any) -> None:
    assert queue.length("default") == 0
    queue.publish([message(n) for n in range(3)])
    queue.publish([message(9, pool="big")])

    assert (queue.length("default"), queue.length("big")) == (3, 1)

    taken(app)
    assert (queue.length("default"), queue.length("big")) == (0, 1)


def test_nothing_is_published_for_no_messages(queue: TaskQueue) -> None:
    assert queue.publish([]) == []


def test_a_message_for_another_region_is_a_bug(queue: TaskQueue) -> None:
    with pytest.raises(BrokenInvariant, match="region"):
        queue.publish([message(1), message(2, region="us-east")])

    assert queue.length("default") == 0


def test_with_the_broker_down_nothing_was_sent_and_that_is_known(
    queue: TaskQueue, server: Broker
) -> None:
    server.stop()
    started = time.monotonic()

    assert queue.publish([message(1), message(2)]) == [False, False]
    with pytest.raises(Unavailable):
        queue.length("default")

    assert time.monotonic() - started < 1.5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_after_a_restart_of_the_broker_publishing_goes_on_and_nothing_acknowledged_is_lost(
    queue: TaskQueue, server: Broker, app: Any, number: signal.Signals
) -> None:
    assert queue.publish([message(1)]) == [True]
    if number == signal.SIGKILL:
        time.sleep(1.2)  # the append-only file is synced once a second
    server.stop(number)
    server.start()

    assert queue.publish([message(2)]) == [True]

    assert taken(app) == [message(1), message(2)]


def test_an_answer_that_is_lost_counts_as_published(
    queue: CeleryQueue, server: Broker, app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert queue.publish([message(1)]) == [True]
    impatient = {
        "redis": {"socket_timeout": 0.3, "socket_connect_timeout": 0.3},
        "amqp": {"connect_timeout": 0.3, "read_timeout": 0.3},
    }
    monkeypatch.setattr("region_scheduler.drivers.celery.link._IMPATIENT", impatient)
    monkeypatch.setattr("region_scheduler.drivers.celery.confirms._ANSWER_S", 0.3)
    queue.close()
    plain = queue._envelopes.body

    def hang_first(raw: bytes) -> bytes:
        server.pause()  # it answered when it was asked whether it is there
        return plain(raw)

    monkeypatch.setattr(queue._envelopes, "body", hang_first)
    try:
        assert queue.publish([message(2), message(3)]) == [True, True]
    finally:
        server.go_on()

    assert {found.token.number for found in taken(app)} >= {1}


def test_a_queue_that_was_deleted_under_us_is_made_again(
    queue: TaskQueue, server: Broker, app: Any
) -> None:
    assert queue.publish([message(1)]) == [True]
    server.forget(queue_name(REGION, "default"))

    # RabbitMQ says that no queue took it; Redis makes the queue anew by itself.
    assert queue.publish([message(2)]) == [isinstance(server, Valkey)]
    assert queue.publish([message(3)]) == [True]

    made_at_once = [message(2)] if isinstance(server, Valkey) else []
    assert taken(app) == [*made_at_once, message(3)]


def test_a_batch_is_one_round_trip(queue: TaskQueue) -> None:
    queue.publish([message(0)])
    started = time.perf_counter()
    queue.publish([message(n) for n in range(1000)])
    batch_s = time.perf_counter() - started

    started = time.perf_counter()
    for n in range(100):
        queue.publish([message(n)])
    single_s = (time.perf_counter() - started) / 100

    # Not a measure of this machine: a thousand at once cost far less than a thousand calls.
    assert batch_s < single_s * 1000
    assert queue.length("default") == 1101
