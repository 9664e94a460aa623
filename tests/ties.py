"""What a test starts does not outlive its pytest, however that ends: SIGKILL runs no fixture."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from region_scheduler.assembly import tether

_WATCH = """
import os, shutil, signal, sys
sys.stdin.buffer.read()  # ends when the process that holds the other end does
try:
    os.kill(int(sys.argv[1]), signal.SIGQUIT)
except ProcessLookupError:
    pass
shutil.rmtree(sys.argv[2], ignore_errors=True)
"""


def tied(argv: Sequence[str | Path]) -> list[str]:
    """Return a command line that is killed when this process dies.

    Start it from a thread that lives as long as it should, as the main thread does.
    """
    words = [str(word) for word in argv]
    return [sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), *words]


@contextmanager
def watched(pid: int, directory: Path) -> Iterator[None]:
    """Have a process that is nobody's child quit, and its directory removed, if this one dies."""
    watcher = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _WATCH, str(pid), str(directory)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield
    finally:
        watcher.kill()
        watcher.wait()
        if watcher.stdin is not None:
            watcher.stdin.close()
