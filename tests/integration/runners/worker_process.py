"""A worker process that a test may kill or stop: runs one step in a shim, says how it ended."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.integration.runners.stage import Stage, never, python


def main(root: str, lease_s: str, code: str) -> None:
    stage = Stage(Path(root), lease_s=float(lease_s))
    ended = stage.executor.execute(stage.job(), python(code), never)
    sys.stdout.write(f"{ended.how}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
