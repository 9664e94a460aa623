"""Temporary directories of demos: named after their owner, and removed when it was killed."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from region_scheduler.errors import Misconfigured
from region_scheduler.local.lock import FILE as LOCK_FILE
from region_scheduler.local.stack import load_stack
from region_scheduler.worker.processes import started_at

PREFIX = "region-scheduler-demo-"
_NAME = re.compile(rf"{PREFIX}(\d+)-(\d+)-\w+")


def demo_directory() -> Path:
    """Make a directory whose name tells whose it is."""
    me = os.getpid()
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{me}-{started_at(me)}-"))


def remove_dead_demos(say: Callable[[str], None]) -> None:
    """Remove what demos of this user left that were killed; told of in one line.

    A directory stays if its owner lives, if somebody holds its lock (the owner may live where its
    process id cannot be seen), and if the demo ended in order: then it was kept on purpose.
    """
    folder = Path(tempfile.gettempdir())
    dead = [path for path in sorted(folder.glob(f"{PREFIX}*")) if _is_dead(path)]
    for path in dead:
        shutil.rmtree(path, ignore_errors=True)
    if dead:
        say(f"removed what killed demos had left: {', '.join(map(str, dead))}")


def _is_dead(path: Path) -> bool:
    named = _NAME.fullmatch(path.name)
    if named is None or not _is_our_directory(path):
        return False
    pid, start = int(named[1]), int(named[2])
    if started_at(pid) == start or _is_locked(path / LOCK_FILE):
        return False
    try:
        stack = load_stack(path)
    except Misconfigured:
        return False  # a person may want to look at it
    return stack is None or stack.up is not None


def _is_our_directory(path: Path) -> bool:
    with suppress(OSError):
        found = path.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return False


def _is_locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False
