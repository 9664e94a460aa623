"""Wake-ups within a region, on a real broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from region_scheduler.drivers.celery.wakeups import BrokerWakeUps, WakeListener
from tests.services import Broker, eventually

Listening = Callable[..., threading.Semaphore]


@pytest.fixture
def listening(app: Any) -> Iterator[Listening]:
    """Return a way to listen: a semaphore that every wake-up releases, once it is subscribed."""
    listeners: list[WakeListener] = []

    def listen(region: str, on: Any = app) -> threading.Semaphore:
        woken = threading.Semaphore(0)
        listener = WakeListener(on, region, woken.release)
        listener.start()
        listeners.append(listener)
        assert woken.acquire(timeout=10), "never subscribed"
        return woken

    yield listen
    for listener in listeners:
        listener.stop()
        assert listener.join(5)


@pytest.fixture
def wakeups(app: Any) -> Iterator[BrokerWakeUps]:
    made = BrokerWakeUps(app)
    yield made
    made.close()


def test_every_listener_of_the_region_is_woken_and_no_other(
    listening: Listening, wakeups: BrokerWakeUps
) -> None:
    one, two, other = listening("eu-west"), listening("eu-west"), listening("us-east")

    wakeups.wake("eu-west")

    assert one.acquire(timeout=5)
    assert two.acquire(timeout=5)
    assert not other.acquire(timeout=0.2)


def test_a_wake_up_is_quick(listening: Listening, wakeups: BrokerWakeUps) -> None:
    woken = listening("eu-west")
    wakeups.wake("eu-west")
    assert woken.acquire(timeout=5)
    took_s = []
    for _ in range(20):
        started = time.perf_counter()
        wakeups.wake("eu-west")
        assert woken.acquire(timeout=5)
        took_s.append(time.perf_counter() - started)

    assert sorted(took_s)[10] < 0.05


def test_waking_never_blocks_and_never_raises_with_the_broker_gone_or_hanging(
    server: Broker, wakeups: BrokerWakeUps
) -> None:
    started = time.perf_counter()
    server.pause()
    for _ in range(1000):
        wakeups.wake("eu-west")
    server.go_on()
    server.stop()
    for _ in range(1000):
        wakeups.wake("eu-west")

    assert time.perf_counter() - started < 2


def test_a_listener_comes_back_after_a_restart_and_looks_at_once(
    server: Broker, listening: Listening, wakeups: BrokerWakeUps
) -> None:
    woken = listening("eu-west")
    server.stop()
    server.start()

    assert woken.acquire(timeout=15), "what was sent meanwhile is lost: it must look"

    def is_woken() -> bool:
        wakeups.wake("eu-west")
        return woken.acquire(timeout=0.5)

    eventually(is_woken, timeout_s=15)


def test_a_listener_may_start_before_its_broker(server: Broker, app: Any) -> None:
    server.stop()
    woken = threading.Semaphore(0)
    listener = WakeListener(app, "eu-west", woken.release)
    listener.start()
    try:
        assert not woken.acquire(timeout=0.3)
        server.start()
        assert woken.acquire(timeout=15)
    finally:
        listener.stop()
        assert listener.join(5)
