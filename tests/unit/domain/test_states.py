"""The table of moves is the protocol's, whole and no more."""

from __future__ import annotations

import pytest

from region_scheduler.domain.states import TaskState, move
from region_scheduler.errors import IllegalMove

# docs/protocol.md section 2, as it stands there.
MOVES = {
    "pending": "ready skipped cancelled",
    "ready": "claimed pending skipped cancelled",
    "claimed": "running ready in_doubt pending cancelled",
    "running": "done skipped failed cancelled ready in_doubt awaiting pending",
    "in_doubt": "claimed awaiting pending cancelled",
    "awaiting": "done ready in_doubt failed cancelled pending",
    "failed": "ready pending",
    "cancelled": "ready pending",
    "done": "pending",
    "skipped": "pending",
}


@pytest.mark.parametrize("target", list(TaskState))
@pytest.mark.parametrize("current", list(TaskState))
def test_moves(current: TaskState, target: TaskState) -> None:
    if target in MOVES[current].split():
        assert move(current, target) is target
    else:
        with pytest.raises(IllegalMove) as refused:
            move(current, target)
        assert (refused.value.current, refused.value.target) == (current, target)
