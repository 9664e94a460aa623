from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from region_scheduler.drivers.celery.app import build_app
from region_scheduler.drivers.celery.queue import CeleryQueue
from region_scheduler.ports.queue import queue_name
from tests.services import Broker

REGION = "eu-west"
KEY = b"a key of this test only"
POOLS = ("default", "big")


@pytest.fixture
def app(server: Broker) -> Any:
    return build_app(server.url, visibility_timeout_s=60)


@pytest.fixture
def queue(server: Broker, app: Any) -> Iterator[CeleryQueue]:
    made = CeleryQueue(app, REGION, KEY)
    yield made
    made.close()
    server.start()  # a test may have left it stopped
    server.forget(*(queue_name(REGION, pool) for pool in POOLS))
