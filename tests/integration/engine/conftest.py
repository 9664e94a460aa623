"""Engine processes that end with the test, whatever becomes of it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.engine.server import EngineProcess


@pytest.fixture
def make_engine() -> Iterator[Callable[..., EngineProcess]]:
    made: list[EngineProcess] = []

    def make(data: Path, *options: str, regions: str = "local") -> EngineProcess:
        made.append(EngineProcess(data, *options, regions=regions))
        return made[-1]

    yield make
    for engine in made:
        engine.close_clients()
        if engine.is_running:
            engine.end(signal.SIGKILL)
