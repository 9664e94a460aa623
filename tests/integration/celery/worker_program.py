"""A worker as its own process: writes what it is told to run to a file, and may misbehave.

The task id says what to do: `tasks/<behaviour>.<number>`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Literal, cast

from region_scheduler.drivers.celery.app import build_app
from region_scheduler.drivers.celery.message import decode
from region_scheduler.drivers.celery.worker import run_worker
from region_scheduler.runtime.logs import set_up_logging

KEY = b"a key of this test only"


def main(url: str, file: str, kind: str, concurrency: str, pools: str, timeout_s: str) -> int:
    set_up_logging()
    signal.signal(signal.SIGUSR2, lambda *_: time.sleep(3600))  # the main thread stands still
    is_ready_for_attempts = threading.Event()

    def write(event: str, **facts: Any) -> None:
        line = json.dumps({"event": event, "pid": os.getpid(), "at": time.monotonic(), **facts})
        with Path(file).open("a") as out:
            out.write(line + "\n")

    def start_child() -> None:
        is_ready_for_attempts.set()
        write("child")

    def handle(raw: bytes) -> None:
        assert is_ready_for_attempts.is_set(), "an attempt before its process was set up"
        message = decode(raw, KEY)
        write("start", task=message.task)
        behaviour = message.task.removeprefix("tasks/").partition(".")[0]
        if behaviour == "slow":
            time.sleep(3)
        if behaviour == "die" and not Path(f"{file}.died").exists():
            Path(f"{file}.died").touch()
            os.kill(os.getpid(), 9)
        if behaviour == "fail":
            raise RuntimeError("planted")
        write("end", task=message.task)

    app = build_app(url, visibility_timeout_s=float(timeout_s), handle=handle)
    app.conf.broker_transport_options["unacked_restore_interval"] = 1
    return run_worker(
        app,
        "eu-west",
        pools.split(","),
        int(concurrency),
        cast(Literal["prefork", "threads"], kind),
        on_start=lambda: write("ready"),
        on_child_start=start_child,
        on_stop=lambda: write("stop"),
        on_progress=lambda: write("progress"),
        on_wait=lambda: write("wait"),
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
