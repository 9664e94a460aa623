from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.drivers.celery.app import build_app
from region_scheduler.drivers.celery.queue import CeleryQueue
from tests.services import Valkey, valkey

REGION = "eu-west"
KEY = b"a key of this test only"


@pytest.fixture(params=["valkey"])
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Valkey]:
    """Run a broker of each kind; a test may stop, pause and restart its own."""
    with valkey(tmp_path / request.param) as running:
        yield running


@pytest.fixture
def app(server: Valkey) -> Any:
    return build_app(server.url, visibility_timeout_s=60)


@pytest.fixture
def queue(app: Any) -> Iterator[CeleryQueue]:
    made = CeleryQueue(app, REGION, KEY)
    yield made
    made.close()
