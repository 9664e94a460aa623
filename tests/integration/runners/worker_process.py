"""A worker process that a test may kill or stop: runs one step in a shim, says how it ended."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.integration.runners.stage import Stage, never, python


def main(root: str, lease_s: str, code: str, *words: str) -> None:
    stage = Stage(Path(root), lease_s=float(lease_s))
    wish = forks_once(Path(root) / "fork") if words == ("forks",) else never
    ended = stage.executor.execute(stage.job(), python(code), wish)
    sys.stdout.write(f"{ended.how}\n")


def forks_once(mark: Path) -> Callable[[], str]:
    """Fork, once the step runs, a process that holds all our pipes open."""
    calls = 0

    def wish() -> str:
        nonlocal calls
        calls += 1
        if calls == 2 and not os.fork():
            mark.with_suffix(".new").write_text(str(os.getpid()))
            mark.with_suffix(".new").rename(mark)
            time.sleep(20)
            os._exit(0)
        return ""

    return wish


if __name__ == "__main__":
    main(*sys.argv[1:])
