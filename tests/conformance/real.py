"""Hold a real ArangoDB to what the engine is held to, and the product to a real ArangoDB.

    python -m tests.conformance.real [--url http://user:password@host:port] [--out FILE] [--only …]

Without `--url` docker or podman runs a single server and then a cluster. Everything happens in
throw-away databases. Only differences are printed; the file gets the figures too. Exit code 0: no
difference, 1: some, 2: there is no server to ask.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from urllib.parse import urlsplit
from xml.etree import ElementTree

from tests.conformance import aql_runner, containers, http_runner
from tests.conformance.http_sender import http_sender
from tests.conformance.ratchet import misses
from tests.engines import REAL_URL_VARIABLE

ROOT: Final = Path(__file__).parents[2]
OUT: Final = ROOT / "docs" / "conformance" / "real.json"
_PREFIX: Final = REAL_URL_VARIABLE.removesuffix("URL")
_DEMO_S = 900


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one suite gave: how many cases or tests passed, and what differs in the others."""

    passed: int
    total: int
    differences: dict[str, list[str]] = field(default_factory=dict)


Suite = Callable[[str], Outcome]


def _cases(runner: ModuleType, url: str) -> Outcome:
    cases = [*runner.load_cases(), *runner.load_own_cases()]
    with http_sender(url) as send:
        found = misses(cases, runner.run_case, send)
        send("DELETE", f"/_db/_system/_api/database/{http_runner.TEST_DATABASE}", {}, b"")
    return Outcome(len(cases) - len(found), len(cases), found)


def _settings(url: str) -> dict[str, str]:
    """Return the environment in which the product uses the server at a URL."""
    parts = urlsplit(url)
    with http_sender(url) as send:
        version = json.loads(send("GET", "/_api/version", {}, b"").body)["version"]
    settings = {
        "URL": f"{parts.scheme}://{parts.hostname}:{parts.port or 8529}",
        "USER": parts.username or "root",
        "PASSWORD": parts.password or "",
        # Leases may be short then; ArangoDB itself gets those that outlast a fail-over.
        "IS_EMBEDDED": str("embedded" in version).lower(),
    }
    return {**os.environ, **{_PREFIX + name: value for name, value in settings.items()}}


def _tests(paths: Sequence[str], chosen: str, url: str) -> Outcome:
    """Run tests that take any kind of graph server, on this one.

    Args:
        paths: Files or directories.
        chosen: Which tests of theirs, as pytest's `-k` takes it; empty for all.
        url: Of the server.
    """
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        ended = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", *paths, "-k", chosen),
                *("-m", "not soak", f"--junitxml={report}"),
            ],
            cwd=ROOT,
            env=_settings(url),
            capture_output=True,
            text=True,
            check=False,
        )
        tree = ElementTree.parse(report) if report.exists() else None
    cases = [] if tree is None else tree.getroot().findall(".//testcase")
    if not cases:
        return Outcome(0, 1, {"pytest": [ended.stdout.strip()[-400:] or "it gave no report"]})
    found = {
        f"{case.get('classname')}.{case.get('name')}": [
            (fault.get("message") or "").partition("\n")[0]
            for fault in (*case.findall("failure"), *case.findall("error"))
        ]
        for case in cases
    }
    failed = {name: faults for name, faults in found.items() if faults}
    return Outcome(len(cases) - len(failed), len(cases), failed)


def _demo(url: str) -> Outcome:
    """Run the demo against the server, and look there for what it says that it did."""
    database = f"rs_demo_{secrets.token_hex(4)}"
    ended = subprocess.run(
        [sys.executable, "-m", "region_scheduler", "demo", "--json"],
        cwd=ROOT,
        env={**_settings(url), f"{_PREFIX}DATABASE": database},
        capture_output=True,
        text=True,
        timeout=_DEMO_S,
        check=False,
    )
    with http_sender(url) as send:
        counted = send("GET", f"/_db/{database}/_api/collection/tasks/count", {}, b"")
        send("DELETE", f"/_db/_system/_api/database/{database}", {}, b"")
    differences = []
    if ended.returncode:
        differences.append(f"exit code {ended.returncode}: {ended.stderr.strip()[-400:]}")
    elif (seen := json.loads(counted.body).get("count")) != (said := _tasks_told(ended.stdout)):
        differences.append(f"it told of {said} tasks, on the server there are {seen}")
    return Outcome(0 if differences else 1, 1, {"demo": differences} if differences else {})


def _tasks_told(out: str) -> int:
    told: int = json.loads(out.splitlines()[-1])["tasks"]
    return told


SUITES: Final[dict[str, Suite]] = {
    "aql": partial(_cases, aql_runner),
    "http": partial(_cases, http_runner),
    "contract": partial(_tests, ["tests/contract/graph"], "real and ArangoDB"),
    "product": partial(_tests, ["tests/integration/local/test_stack.py"], ""),
    "demo": _demo,
}


def ask(name: str, url: str, suites: Sequence[str]) -> dict[str, Any]:
    """Run suites on one server, print what differs, and return all of it for the file."""
    with http_sender(url) as send:
        answered = send("GET", "/_api/version", {}, b"")
        if answered.status != 200:
            raise OSError(f"{answered.status} {answered.body.decode(errors='replace')[:200]}")
        version = json.loads(answered.body)["version"]
        role = json.loads(send("GET", "/_admin/server/role", {}, b"").body)["role"]
    outcomes = {suite: SUITES[suite](url) for suite in suites}
    for suite, outcome in outcomes.items():
        for case, differences in outcome.differences.items():
            for difference in differences:
                sys.stdout.write(f"{name} {version} {suite} {case}: {difference}\n")
    figures = ", ".join(f"{suite} {one.passed}/{one.total}" for suite, one in outcomes.items())
    sys.stdout.write(f"{name} {version}: {figures}\n")
    return {
        "name": name,
        "version": version,
        "role": role,
        "suites": {suite: asdict(outcome) for suite, outcome in outcomes.items()},
    }


def _servers(url: str) -> Iterator[tuple[str, AbstractContextManager[str]]]:
    if url:
        yield "url", nullcontext(url)
        return
    tool = containers.find_tool()
    mark = f"rs-real-{secrets.token_hex(4)}"
    if tool is not None:
        yield "single server", containers.single(tool, mark)
        yield "cluster of 3+3+3", containers.cluster(tool, mark)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask every server that there is, and write down what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.real")
    parser.add_argument("--url", default="", help="http://user:password@host:port")
    parser.add_argument("--out", type=Path, help=f"file for the figures; {OUT.name} by default")
    parser.add_argument("--only", default=",".join(SUITES), help="suites, with commas")
    options = parser.parse_args(arguments)
    suites = options.only.split(",")
    if unknown := sorted(set(suites) - set(SUITES)):
        parser.error(f"unknown suites: {', '.join(unknown)}")
    servers = list(_servers(options.url))
    if not servers:
        sys.stderr.write(
            "no docker or podman that answers, and no URL=http://user:password@host:port\n"
        )
        return 2
    asked = []
    try:
        for name, server in servers:
            with server as url:
                asked.append(ask(name, url, suites))
    except (OSError, containers.NotStarted) as refused:
        sys.stderr.write(f"{name} cannot be asked: {refused}\n")
        return 2
    _write(options.out, asked)
    is_same = not any(s["differences"] for one in asked for s in one["suites"].values())
    return 0 if is_same else 1


def _write(out: Path | None, asked: list[dict[str, Any]]) -> None:
    if out is None and any("embedded" in one["version"] for one in asked):
        sys.stdout.write(f"{OUT.name} is for ArangoDB itself: nothing written\n")
        return
    file = out or OUT
    file.parent.mkdir(parents=True, exist_ok=True)
    at = time.strftime("%Y-%m-%d", time.gmtime())
    file.write_text(json.dumps({"status": "done", "at": at, "servers": asked}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
