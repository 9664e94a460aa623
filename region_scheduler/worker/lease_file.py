"""The lease deadline of this worker, in a file that shims and in-process runners read.

One writer, the lease keeper; any number of readers, in any process. A deadline is an instant on
CLOCK_BOOTTIME in seconds (`Clock.monotonic`), so it means the same in every process of the machine.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from region_scheduler.domain.lease import Instant
from region_scheduler.worker.shim import LEASE_BYTES, LEASE_SLOT_BYTES, read_deadline

_NANO = 1_000_000_000
_MASK = (1 << 64) - 1


class LeaseFile:
    """The writer's end. Threads may share one.

    A new incarnation makes a new file under the same name: steps that an earlier one started keep
    the old file open, so that nothing can lengthen their lives.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Put a fresh file, whose deadline has passed, in the place of any earlier one.

        Raises:
            OSError: The directory cannot be written.
        """
        self.path = Path(path)
        fresh = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        self._fd = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.pwrite(self._fd, bytes(LEASE_BYTES), 0)
        fresh.replace(self.path)
        self._lock = threading.Lock()
        self._sequence = 0
        self._deadline: Instant = 0.0
        self._is_revoked = False

    def extend(self, deadline: Instant) -> None:
        """Let steps live until `deadline`; an earlier one than the last, or a revoked lease, stays.

        Args:
            deadline: Sending time of the last acknowledged renewal + ttl (`LeaseTimings.deadline`).
        """
        with self._lock:
            if not self._is_revoked and deadline > self._deadline:
                self._write(deadline)

    def revoke(self) -> None:
        """End every step at once and for good: the incarnation is fenced."""
        with self._lock:
            self._is_revoked = True
            self._write(0.0)

    def deadline(self) -> Instant:
        """Return the deadline that readers see; 0.0 before the first `extend` and once revoked."""
        return read_deadline(self._fd)

    def close(self) -> None:
        """Let go of the file; readers go on seeing the last deadline."""
        os.close(self._fd)

    def _write(self, deadline: Instant) -> None:
        """Fill the older of the two slots, so that one whole slot is there at any instant."""
        self._sequence += 1
        self._deadline = deadline
        slot = pack_slot(self._sequence, deadline)
        os.pwrite(self._fd, slot, LEASE_SLOT_BYTES * (self._sequence % 2))


class LeaseReader:
    """A reader's end, for one step; a context manager."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the file; one that is not there reads as a lease that has run out."""
        try:
            self._fd = os.open(path, os.O_RDONLY)
        except OSError:
            self._fd = -1

    def deadline(self) -> Instant:
        """Return when the step must have ended; 0.0 if the lease is revoked or unreadable."""
        return read_deadline(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._fd >= 0:
            os.close(self._fd)


def pack_slot(sequence: int, deadline: Instant) -> bytes:
    """Return one slot: sequence, deadline in nanoseconds, and a check over both.

    The sequence is at least 1; of two whole slots the higher one counts.
    """
    nanos = max(0, int(deadline * _NANO))
    return b"".join(n.to_bytes(8, "big") for n in (sequence, nanos, ~(sequence ^ nanos) & _MASK))
