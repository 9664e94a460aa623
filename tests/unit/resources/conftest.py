"""The slots of an engine in memory."""

from __future__ import annotations

import pytest

from region_scheduler.ports.records import SlotStore
from tests.unit.resources.slots import new_store


@pytest.fixture
def store() -> SlotStore:
    return new_store()
