"""A small world, and a run in it that has come to its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from region_scheduler.domain.run import Run
from region_scheduler.domain.task import LockNeed
from region_scheduler.simulation.world import World
from tests.simulation.acts import admit
from tests.simulation.scenarios import HOME, LOCK, ZONE, a_plan, a_zone, graph_of, spec


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world of one region; the others are only names."""
    return World(tmp_path, [HOME])


@pytest.fixture
def run(world: World) -> Run:
    """A run that has come to its end: a before b, both with a lock, on a zone."""
    graph_of(world).zones.insert([a_zone()])
    needs = (LockNeed(LOCK),)
    plan = a_plan([spec("a", locks=needs), spec("b", locks=needs)], "a>b", zone=ZONE)
    admitted = admit(world, plan)
    world.pass_time(4)
    return admitted
