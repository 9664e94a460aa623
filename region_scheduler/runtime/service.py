"""A process made of parts: started in order, stopped in reverse, on a signal or a call."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Protocol

import structlog

log = structlog.get_logger()

_SECOND_SIGINT_EXIT = 130
_ASKING = (signal.SIGTERM, signal.SIGINT)


class Part(Protocol):
    """Something that a service starts and stops; `Loop` is one."""

    @property
    def name(self) -> str:
        """For logs."""
        ...

    def start(self) -> None:
        """Begin; returns when begun. Whatever it raises ends the service."""
        ...

    def stop(self) -> None:
        """Ask it to end; returns at once; may be called twice."""
        ...

    def join(self, timeout_s: float) -> bool:
        """Wait until it has ended; return whether it has."""
        ...


class Service:
    """Runs parts until SIGTERM, SIGINT or `stop`. A second SIGINT ends the process at once.

    Args:
        parts: In starting order; stopped in reverse, each ended before the one that it rests on.
        stop_s: How long one part may take to end before the service goes on without it.
    """

    def __init__(self, parts: Sequence[Part], *, stop_s: float = 10.0) -> None:
        self._parts = parts
        self._stop_s = stop_s
        self._is_asked = False
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)

    def run(self) -> None:
        """Start every part, wait to be asked, stop every part.

        Signals are listened to only when this runs in the main thread. Runs once.

        Raises:
            Exception: What a part raised when it started; those before it are stopped again.
        """
        is_main = threading.current_thread() is threading.main_thread()
        before = {number: signal.signal(number, self._on_signal) for number in _ASKING * is_main}
        started: list[Part] = []
        try:
            for part in self._parts:
                if self._is_asked:
                    break
                started.append(part)
                part.start()
            while not self._is_asked:
                select.select([self._reader], [], [])
        finally:
            self._stop_all(started)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(self._reader)
            os.close(self._writer)

    def stop(self) -> None:
        """Ask the service to end; returns at once, from any thread."""
        self._ask()

    def _ask(self) -> None:
        """Flag and byte only: a lock taken here could be the one that the main thread holds."""
        self._is_asked = True
        try:
            os.write(self._writer, b".")
        except OSError:
            return  # a full pipe wakes the waiting side as well, a closed one has none

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._is_asked and number == signal.SIGINT:
            os._exit(_SECOND_SIGINT_EXIT)
        self._ask()

    def _stop_all(self, started: Sequence[Part]) -> None:
        for part in reversed(started):
            part.stop()
            if not part.join(self._stop_s):
                log.warning("part did not stop in time", part=part.name, waited_s=self._stop_s)
