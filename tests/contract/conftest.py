"""Real brokers, one of each kind a module; a test may stop, pause and restart its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services import BROKERS, Broker, broker


@pytest.fixture(params=BROKERS, scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Broker]:
    """Run a broker of each kind."""
    with broker(request.param, tmp_path_factory.mktemp("broker")) as running:
        yield running
