"""A program: runs a command once, then another again and again until it succeeds.

`python -I -S poll_until.py ORDERS.json`, in the shim; standard library only. The orders:

- `first`: an argv to run before, or null; its failure is the end of the matter;
- `argv`, `every_s`, `timeout_s`, `try_timeout_s`: what is polled, the pause between two tries, the
  bound of all tries and of one, in seconds; one try is always made;
- `result`: a file that tells `first_code`, `tries`, `last_code` and `is_true` at the end.

Exit code: that of `first` if it fails, else 0 if the condition became true, else 75.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

NOT_TRUE = 75
TOO_LONG, NOT_THERE = 124, 127


class Poll:
    """One run of this program."""

    def __init__(self, orders: dict[str, object]) -> None:
        self._orders = orders
        self._stopped = threading.Event()
        self._result: dict[str, object] = {
            "first_code": None,
            "tries": 0,
            "last_code": None,
            "is_true": False,
        }

    def stop(self, *_: object) -> None:
        """Take no further try; the command under way has the signal, too."""
        self._stopped.set()

    def run(self) -> int:
        """Return the exit code."""
        code = self._first()
        if not code:
            code = 0 if self._poll() else NOT_TRUE
        path = str(self._orders["result"])
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(self._result, file)
        os.replace(f"{path}.new", path)
        return code

    def _first(self) -> int:
        argv = self._orders["first"]
        code = self._call(argv, None) if argv else 0
        self._result["first_code"] = code
        return code if code >= 0 else 128 - code

    def _poll(self) -> bool:
        end_at = time.monotonic() + self._number("timeout_s")  # noqa: TID251 -- its own process
        tries = 0
        while not self._stopped.is_set():
            now = time.monotonic()  # noqa: TID251 -- its own process
            left_s = end_at - now
            if left_s <= 0 and tries:
                break
            tries += 1
            most_s = self._number("try_timeout_s")
            bound_s = most_s if tries == 1 else min(most_s, left_s)
            code = self._call(self._orders["argv"], bound_s)
            if code == TOO_LONG and bound_s < most_s:
                break  # cut off by the end of the polling: the try before it has the last word
            self._result |= {"tries": tries, "last_code": code, "is_true": code == 0}
            if code == 0:
                return True
            left_s = end_at - time.monotonic()  # noqa: TID251 -- its own process
            self._stopped.wait(max(0.0, min(self._number("every_s"), left_s)))
        return False

    def _number(self, name: str) -> float:
        return float(str(self._orders[name]))

    @staticmethod
    def _call(argv: object, timeout_s: float | None) -> int:
        """Return the exit code of `argv`: 124 if it took too long, 127 if it does not exist."""
        words = [str(word) for word in argv] if isinstance(argv, list) else []
        try:
            process = subprocess.Popen(words)
        except OSError as error:
            sys.stderr.write(f"{words[:1]}: {error.strerror}\n")
            return NOT_THERE
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return TOO_LONG


def main(path: str) -> int:
    """Run the orders in `path`."""
    with open(path, encoding="utf-8") as file:
        poll = Poll(json.load(file))
    signal.signal(signal.SIGINT, poll.stop)
    return poll.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
