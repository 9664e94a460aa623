"""The documents that a step program reads and writes.

The file that REGION_SCHEDULER_INPUTS names holds `{"inputs": {...}, "upstream": {task: outputs}}`.
The program writes one JSON object, its outputs, to the file that REGION_SCHEDULER_OUTPUTS names.
Exit 0 is success, 1 of a poll means not yet, 2 means that the document is not what it should be.
"""

from __future__ import annotations

import hashlib
import json
import sys
from os import environ  # noqa: TID251  a step program's two variables are its whole interface
from pathlib import Path
from typing import Any

NOT_YET = 1
REFUSED = 2


def read() -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the step's inputs, and the outputs of its direct predecessors by task name."""
    document = json.loads(_named("REGION_SCHEDULER_INPUTS").read_text(encoding="utf-8"))
    return document["inputs"], document["upstream"]


def outputs_path() -> Path:
    """Return the file that outputs go to; its directory is this attempt's own."""
    return _named("REGION_SCHEDULER_OUTPUTS")


def write(outputs: dict[str, Any]) -> None:
    """Write the step's outputs."""
    outputs_path().write_text(json.dumps(outputs, sort_keys=True), encoding="utf-8")


def place_of(inputs: dict[str, Any]) -> str:
    """Return the text that names this step of this zone, the same at every attempt."""
    return f"{inputs['tenant']}/{inputs['zone']}/{inputs['step']}@{inputs['region']}"


def digest_of(value: object) -> str:
    """Return a SHA-256 of the value as canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def say(line: str) -> None:
    """Write one line to the step's log."""
    sys.stdout.write(line + "\n")


def refuse(reason: str) -> None:
    """End the program: what it was given makes no sense.

    Raises:
        SystemExit: Always, with the code for a refusal.
    """
    sys.stderr.write(reason + "\n")
    raise SystemExit(REFUSED)


def _named(variable: str) -> Path:
    if variable not in environ:
        refuse(f"{variable} does not name a file; this program is started by a runner")
    return Path(environ[variable])
