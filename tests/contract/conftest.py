"""Real brokers, one of each kind a module; a test may stop, pause and restart its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest

from tests.services import Broker, rabbitmq, valkey


@pytest.fixture(params=["valkey", "rabbitmq"], scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Broker]:
    """Run a broker of each kind."""
    servers: dict[str, AbstractContextManager[Broker]] = {
        "valkey": valkey(tmp_path_factory.mktemp("valkey")),
        "rabbitmq": rabbitmq(),
    }
    with servers[request.param] as running:
        yield running
