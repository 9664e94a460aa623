"""The one paced loop: a tick decides, the loop waits."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

import structlog
from tenacity import RetryCallState, Retrying, wait_random_exponential

from region_scheduler.errors import BrokenInvariant, RegionSchedulerError

log = structlog.get_logger()

Tick = Callable[[], float | None]
"""One round of work; returns seconds until it wants the next one, None to be woken only."""


def end_process(broken: BrokenInvariant) -> None:
    """Leave at once with exit code 70: nothing that this process believes can be trusted now."""
    leave(broken.exit_code)


def leave(code: int) -> None:
    """End this process at once, also if its main thread does not answer any more."""
    logging.shutdown()
    os._exit(code)


def back_off(first_s: float, most_s: float) -> Callable[[int], float]:
    """Return what tells the pause after so many failures in a row, seconds.

    Chance decides up to a bound that doubles from `first_s` to `most_s`: those that failed together
    do not come back together.
    """
    pauses = wait_random_exponential(multiplier=first_s, max=most_s, min=min(first_s / 10, most_s))

    def pause_s(failures: int) -> float:
        attempt = RetryCallState(Retrying(), None, (), {})
        attempt.attempt_number = failures
        return pauses(attempt)

    return pause_s


class Loop:
    """Calls a tick again and again: when it asked to be, and when woken.

    Wake-ups that come during a tick lead to another tick at once; any number of them is one. A
    tick that raises is repeated after a jittered, doubling pause, which wake-ups do not shorten.

    Args:
        name: For logs and the thread.
        tick: Called in one thread only.
        pause_first_s: Upper bound of the first pause after a failure.
        pause_max_s: Upper bound of every pause after a failure.
        on_broken: What a `BrokenInvariant` leads to; the loop ends in any case.
    """

    def __init__(
        self,
        name: str,
        tick: Tick,
        *,
        pause_first_s: float = 0.1,
        pause_max_s: float = 5.0,
        on_broken: Callable[[BrokenInvariant], None] = end_process,
    ) -> None:
        self.name = name
        self._tick = tick
        self._on_broken = on_broken
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._failures = 0
        self._pause_s = back_off(pause_first_s, pause_max_s)

    def start(self) -> None:
        """Run in a thread of its own."""
        self._thread = threading.Thread(target=self.run, name=self.name, daemon=True)
        self._thread.start()

    def run(self) -> None:
        """Run in the calling thread until `stop`."""
        while not self._stopped.is_set():
            self._woken.clear()
            try:
                pause_s = self._tick()
            except BrokenInvariant as broken:
                log.critical("invariant broken", loop=self.name, invariant=str(broken))
                self._on_broken(broken)
                return
            except Exception as failed:  # noqa: BLE001 - the edge: a bad round ends no role
                self._back_off(failed)
                continue
            self._failures = 0
            self._woken.wait(pause_s)

    def wake(self) -> None:
        """Tick as soon as may be; returns at once, from any thread."""
        self._woken.set()

    def stop(self) -> None:
        """End after the present tick; returns at once."""
        self._stopped.set()
        self._woken.set()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread to end; return whether it has."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._thread is None or not self._thread.is_alive()

    def _back_off(self, failed: Exception) -> None:
        self._failures += 1
        pause_s = self._pause_s(self._failures)
        facts = {"loop": self.name, "pause_s": round(pause_s, 3), "failures": self._failures}
        if isinstance(failed, RegionSchedulerError):
            log.warning("tick failed", error=failed.code, detail=str(failed), **facts)
        else:
            log.error("tick failed unexpectedly", exc_info=failed, **facts)
        self._stopped.wait(pause_s)
