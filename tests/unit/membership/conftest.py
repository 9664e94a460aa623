"""One process's ports on an engine in memory."""

from __future__ import annotations

import pytest

from region_scheduler.assembly.in_process import in_process_graph
from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.ports.records import GraphStores
from region_scheduler.simulation.time import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def graph(clock: VirtualClock) -> GraphStores:
    engine = Engine(is_cluster=True, regions=("eu",), clock=clock.monotonic, seed=1)
    return in_process_graph(engine, "eu")
