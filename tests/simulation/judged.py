"""Worlds that are held against the promises when their test is over."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.simulation.world import World

_KEPT_MAX = 3
"""Worlds of one test that are looked at, the last ones: each is an engine in memory."""


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the public checker look at the worlds that a test has made."""
    made: deque[World] = deque(maxlen=_KEPT_MAX)
    begin = World.__init__

    def noted(self: World, *arguments: Any, **more: Any) -> None:
        begin(self, *arguments, **more)
        made.append(self)

    monkeypatch.setattr(World, "__init__", noted)
    yield
    for world in made:
        _heal(world)
        report = world.report()
        assert report.violations == 0, "\n".join(report.lines())


def _heal(world: World) -> None:
    control = FaultControl(world.engine)
    control.clear()
    for region in world.regions:
        control.heal(region)
        control.heal_leader(region)
