"""Publisher confirms: what RabbitMQ says of messages that were sent without waiting for each.

A message is only known to be kept once it was confirmed. Waiting after each would cost a round trip
a message, so a batch is sent first and its answers are counted afterwards.
"""

from __future__ import annotations

from typing import Any, Final

_ANSWER_S: Final = 5.0


def has_confirms(channel: Any) -> bool:
    """Say whether the broker behind `channel` confirms what was published."""
    return hasattr(channel, "confirm_select")


class Confirms:
    """The answers that are due on one channel; one for as long as the channel lives."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self._count = 0
        self._waiting: dict[int, str] = {}
        self._refused: set[str] = set()
        channel.confirm_select()
        channel.events["basic_ack"].add(self._on_ack)
        channel.events["basic_nack"].add(self._on_nack)
        channel.events["basic_return"].add(self._on_return)

    def sent(self, id_: str) -> None:
        """Await an answer for the message that was just published."""
        self._count += 1  # the broker numbers what it gets on the channel, beginning with 1
        self._waiting[self._count] = id_

    def refused(self) -> frozenset[str]:
        """Wait for all answers; return the ids of messages that are in no queue.

        Raises:
            TimeoutError: An answer did not come; the channel is of no more use.
            OSError: The connection broke.
        """
        while self._waiting:
            self.channel.connection.drain_events(timeout=_ANSWER_S)
        found, self._refused = frozenset(self._refused), set()
        return found

    def _on_ack(self, tag: int, multiple: bool) -> None:
        self._answered(tag, multiple)

    def _on_nack(self, tag: int, multiple: bool) -> None:
        self._refused.update(self._answered(tag, multiple))

    def _on_return(self, _error: Exception, _exchange: str, _key: str, message: Any) -> None:
        """Take note of a message that no queue takes; it is acknowledged all the same."""
        self._refused.add(message.properties["correlation_id"])

    def _answered(self, tag: int, multiple: bool) -> list[str]:
        tags = [t for t in self._waiting if t <= tag] if multiple else [tag]
        return [self._waiting.pop(t) for t in tags]
