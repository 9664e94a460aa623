"""One `up` at a time on a state directory."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from region_scheduler.errors import Misconfigured

FILE = "up.lock"


class StateLock:
    """Holds a state directory until `release`, or the end of this process.

    Raises:
        Misconfigured: Another process holds it, named by its id; or the directory cannot be used.
    """

    def __init__(self, state_dir: Path) -> None:
        try:
            state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = os.open(state_dir / FILE, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as refused:
            reason = (refused.strerror or str(refused)).lower()
            raise Misconfigured(problems=[f"state directory {state_dir}: {reason}"]) from refused
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as held:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._fd)
            problem = f"state directory {state_dir} is in use by a running stack (pid {holder})"
            raise Misconfigured(problems=[problem]) from held
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let the next one in; harmless twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
