from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.drivers.celery.app import build_app
from tests.services import Valkey, valkey


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Valkey]:
    with valkey(tmp_path / "valkey") as running:
        yield running


@pytest.fixture
def app(server: Valkey) -> Any:
    return build_app(server.url, visibility_timeout_s=60)
