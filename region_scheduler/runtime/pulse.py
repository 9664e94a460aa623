"""Whether a loop that somebody else runs still goes round."""

from __future__ import annotations

import time
from collections.abc import Callable


class Pulse:
    """Judges a loop by when it last said that it goes round. Safe from any thread.

    Until the first beat nothing is judged.

    Args:
        within_s: A loop that was not heard of for longer is stuck, seconds.
        now: Reads a clock that stands still while the machine is suspended: the loop does as well.
    """

    def __init__(self, within_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self._within_s = within_s
        self._now = now
        self._beat_at: float | None = None
        self._is_over = False

    def beat(self) -> None:
        """Say that the loop goes round."""
        self._beat_at = None if self._is_over else self._now()

    def rest(self) -> None:
        """Judge nothing until the next beat: what the loop waits for may take its time."""
        self._beat_at = None

    def end(self) -> None:
        """Judge nothing any more: the loop is about to end."""
        self._is_over = True
        self._beat_at = None

    @property
    def is_stuck(self) -> bool:
        """Whether the loop should have been heard of."""
        beat_at = self._beat_at
        return beat_at is not None and self._now() - beat_at > self._within_s
