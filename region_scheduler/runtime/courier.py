"""Fire and forget: a thread that carries keys somewhere, so that whoever sends never waits."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Courier:
    """Calls `deliver(key)` in a background thread; a key that waits already is not queued twice.

    The thread starts with the first key, so an object that is made before a fork works after it.

    Args:
        name: For the thread.
        deliver: Must not raise; may block.
    """

    def __init__(self, name: str, deliver: Callable[[str], None]) -> None:
        self._name = name
        self._deliver = deliver
        self._waiting: dict[str, None] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_stopped = False

    def send(self, key: str) -> None:
        """Have `key` delivered soon; returns at once."""
        with self._changed:
            if self._is_stopped:
                return
            self._waiting[key] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self, timeout_s: float = 1.0) -> None:
        """Deliver what waits, within `timeout_s` seconds, and end the thread."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_stopped)
                if not self._waiting:
                    return
                key = next(iter(self._waiting))
                del self._waiting[key]
            self._deliver(key)
