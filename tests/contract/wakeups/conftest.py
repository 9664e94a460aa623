from __future__ import annotations

from typing import Any

import pytest

from region_scheduler.drivers.celery.app import build_app
from tests.services import Broker


@pytest.fixture
def app(server: Broker) -> Any:
    server.start()  # an earlier test may have left it stopped
    return build_app(server.url, visibility_timeout_s=60)
