"""Starts an asynchronous operation, then tells whether it has ended.

The operation's id is derived from the step, like the client token of a cloud's API: asking again
is the same request, never a second one. `--poll` looks for the answer to the request of this very
attempt and changes nothing. An attempt that follows a lost one finds none and asks again, which is
harmless for the same reason.
"""

from __future__ import annotations

import json
import sys

from region_scheduler.catalog.steps import document


def start() -> None:
    """Ask for the operation."""
    inputs, upstream = document.read()
    place = document.place_of(inputs)
    parents = sorted(outputs["id"] for outputs in upstream.values() if "id" in outputs)
    operation = document.digest_of(place)[:16]
    document.say(f"stand-in: operation {operation} for {place}")
    document.write({"id": f"{inputs['step']}-{operation}", "operation": operation, "of": parents})


def poll() -> int:
    """Return 0 once the operation has ended, else the code for "not yet"."""
    inputs, _ = document.read()
    operation = document.digest_of(document.place_of(inputs))[:16]
    try:
        answer = json.loads(document.outputs_path().read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        document.say(f"operation {operation} is not known here")
        return document.NOT_YET
    return 0 if answer.get("operation") == operation else document.NOT_YET


if __name__ == "__main__":
    if sys.argv[1:] == ["--poll"]:
        raise SystemExit(poll())
    start()
