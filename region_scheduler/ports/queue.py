"""The region's queues and wake-ups. The broker carries messages; it never decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from region_scheduler.domain.ids import TaskId
from region_scheduler.domain.task import SCHEMA, Token


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptMessage:
    """What a worker is told: ids, never secrets.

    Attributes:
        trace: W3C traceparent of the attempt's parent.
    """

    schema: int = SCHEMA
    task: TaskId
    token: Token
    region: str
    pool: str
    trace: str = ""


def queue_name(region: str, pool: str) -> str:
    """Return the only queue on which `pool` of `region` is fed."""
    return f"rs.{region}.{pool}"


class TaskQueue(Protocol):
    """One region's queues, at least once. Losing or repeating every message costs latency only."""

    def publish(self, messages: Sequence[AttemptMessage]) -> list[bool]:
        """Put each message in its region's and pool's queue, in order.

        Returns:
            True for what was handed over or may have been (an unknown outcome counts as
            published); False for what surely was not.
        """
        ...

    def length(self, pool: str) -> int:
        """Count the messages that no worker has taken yet.

        Raises:
            Unavailable: No answer.
        """
        ...


class WakeUps(Protocol):
    """Best effort: a wake-up may be lost, late or repeated."""

    def wake(self, region: str) -> None:
        """Wake the schedulers of `region`; never raises, never blocks for long."""
        ...
