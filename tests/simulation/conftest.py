"""A world of three regions."""

from __future__ import annotations

from pathlib import Path

import pytest

from region_scheduler.simulation.world import World
from tests.simulation.judged import judged as judged  # noqa: PLC0414 - a fixture
from tests.simulation.scenarios import REGIONS


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, REGIONS)
