"""One database on each kind of server, emptied before each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from region_scheduler.drivers.arango.graph import ArangoGraph
from tests.engines import ENGINES, GraphServer, empty, servers, serving


@pytest.fixture(scope="session", params=list(servers()))
def server(request: pytest.FixtureRequest) -> Iterator[GraphServer]:
    """Every kind of server."""
    with serving(request.param) as made:
        yield made


@pytest.fixture(scope="session")
def _opened(server: GraphServer) -> ArangoGraph:
    return server.open()


@pytest.fixture
def graph(server: GraphServer, _opened: ArangoGraph) -> ArangoGraph:
    """An empty graph on every kind of server."""
    empty(_opened)
    return _opened


@pytest.fixture(scope="session", params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> Iterator[GraphServer]:
    """The engine, whose faults can be switched on."""
    with serving(request.param) as made:
        yield made


@pytest.fixture(scope="session")
def _opened_faulty(engine: GraphServer) -> ArangoGraph:
    return engine.open(read_timeout_s=30.0)


@pytest.fixture
def faulty_graph(engine: GraphServer, _opened_faulty: ArangoGraph) -> Iterator[ArangoGraph]:
    """An empty graph on an engine, healed after the test.

    Faults answer or break the connection: no test waits for the time-out, and a slow machine does
    not meet it.
    """
    empty(_opened_faulty)
    yield _opened_faulty
    engine.heal()
