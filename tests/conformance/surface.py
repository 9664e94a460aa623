"""What of ArangoDB's API and of AQL the product's tests use, and that a case covers each of it.

    python -m tests.conformance.surface [--write] [PYTEST ARGUMENTS]

runs the product's tests with the recorder on and prints what they use that is not on the list
(exit code 1), or writes the list anew. The engine's own tests are left out: they ask for more than
the product does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.embedded.arango.surface import VARIABLE, SurfaceRecorder
from tests.conformance import aql_runner, http_runner
from tests.conformance.engine_sender import engine_sender

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).parent / "used_surface.json"
_ENGINE_TESTS = (
    "tests/architecture",
    "tests/conformance",
    "tests/integration/engine",
    "tests/unit/embedded",
)
_PRODUCT = ("-m", "not slow and not soak", "-n", "2", "--dist", "loadfile", "tests")


def listed() -> set[str]:
    """Return the committed list."""
    return set(json.loads(LIST.read_text()))


def covered() -> set[str]:
    """Return what the cases use, by the same recorder."""
    engine = Engine(is_cluster=False, seed=1)
    engine.recorder = SurfaceRecorder()
    send = engine_sender(engine)
    for runner in (aql_runner, http_runner):
        for case in (*runner.load_cases(), *runner.load_own_cases()):
            runner.run_case(case, send)
    return engine.recorder.entries


def used(pytest_arguments: Sequence[str]) -> tuple[set[str], int]:
    """Return what tests use in all their processes, and the exit code of pytest."""
    ignored = [word for folder in _ENGINE_TESTS for word in ("--ignore", folder)]
    with tempfile.TemporaryDirectory() as directory:
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *pytest_arguments, *ignored],
            cwd=ROOT,
            env={**os.environ, VARIABLE: directory},
            check=False,
            stdout=sys.stderr,
        )
        files = Path(directory).glob("*.txt")
        entries = {line for file in files for line in file.read_text("utf-8").splitlines()}
    return entries, ended.returncode


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, and compare with the list or write it."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.surface")
    parser.add_argument("--write", action="store_true", help="write the list anew")
    options, pytest_arguments = parser.parse_known_args(arguments)
    entries, code = used(pytest_arguments or _PRODUCT)
    if options.write:
        LIST.write_text(json.dumps(sorted(entries), indent=1) + "\n")
    new = sorted(entries - listed())
    unused = sorted(listed() - entries)
    lines = [f"surface: {len(entries)} entries used, {len(new)} of them not on the list"]
    lines += [f"  {entry}" for entry in new]
    if unused and not pytest_arguments:
        lines.append(f"on the list and not used by these tests: {len(unused)}")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if new or code else 0


if __name__ == "__main__":
    sys.exit(main())
