"""A broker in memory, at least once: what was taken and not acknowledged comes again."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence

from region_scheduler.ports.queue import AttemptMessage, queue_name


class SimulatedBroker:
    """One region's queues and wake-ups."""

    def __init__(self, region: str, on_wake: Callable[[str], None] = lambda _: None) -> None:
        self._region = region
        self._queues: dict[str, deque[AttemptMessage]] = defaultdict(deque)
        self._unacknowledged: list[AttemptMessage] = []
        self._on_wake = on_wake

    def publish(self, messages: Sequence[AttemptMessage]) -> list[bool]:
        """Put each message in its queue; all are handed over."""
        for message in messages:
            self._queues[queue_name(message.region, message.pool)].append(message)
        return [True] * len(messages)

    def length(self, pool: str) -> int:
        """Count what no worker has taken."""
        return len(self._queues[queue_name(self._region, pool)])

    def lose_all(self) -> None:
        """Forget every message, taken or not, as a broker does whose store is replaced."""
        self._queues.clear()
        self._unacknowledged.clear()

    def wake(self, region: str) -> None:
        """Tell the schedulers of `region`."""
        self._on_wake(region)

    def take(self, pool: str = "default") -> AttemptMessage | None:
        """Return the next message of this region's pool, unacknowledged; None if there is none."""
        queue = self._queues[queue_name(self._region, pool)]
        if not queue:
            return None
        message = queue.popleft()
        self._unacknowledged.append(message)
        return message

    def acknowledge(self, message: AttemptMessage) -> None:
        """Forget a message that was taken; one of before a loss is forgotten already."""
        if message in self._unacknowledged:
            self._unacknowledged.remove(message)

    def give_back(self, message: AttemptMessage) -> None:
        """Deliver a message again, as after the loss of whoever had taken it."""
        if message in self._unacknowledged:
            self._unacknowledged.remove(message)
            self._queues[queue_name(message.region, message.pool)].append(message)

    def return_unacknowledged(self) -> None:
        """Deliver again whatever was taken and not acknowledged, as after a lost worker."""
        for message in self._unacknowledged:
            self._queues[queue_name(message.region, message.pool)].append(message)
        self._unacknowledged.clear()
