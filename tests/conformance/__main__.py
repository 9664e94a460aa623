"""Print how many of ArangoDB's own answers the engine gives, and which it does not.

python -m tests.conformance [--url http://user:password@host:port] [--driver-tests DIRECTORY]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from tests.conformance import aql_runner, http_runner
from tests.conformance.driver import ModuleResult, is_driver_tests, run_modules
from tests.conformance.engine_sender import engine_sender
from tests.conformance.http_runner import Send
from tests.conformance.http_sender import http_sender
from tests.conformance.ratchet import known_misses, misses


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all cases; return 1 if one misses that is not known to, or a known one passes."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance")
    parser.add_argument("--url", default="", help="ask this server instead of an engine in process")
    parser.add_argument("--driver-tests", default="", help="folder `tests` of python-arango")
    options = parser.parse_args(arguments)
    directory = Path(options.driver_tests)
    if options.driver_tests and not is_driver_tests(directory):
        sys.stderr.write(f"{directory} does not hold python-arango's tests\n")
        return 2
    with http_sender(options.url) if options.url else nullcontext(engine_sender()) as send:
        surprises = sum(_cases(kind, send) for kind in ("aql", "http"))
    if not options.driver_tests:
        _say("driver tests: not run (DRIVER_TESTS=DIR names python-arango's own tests)")
        return 1 if surprises else 0
    results = [_shown(result) for result in run_modules(directory)]
    passed = sum(result.passed for result in results)
    total = sum(result.count - result.skipped for result in results)
    _say(f"driver tests: {passed} of {total} pass in {len(results)} modules")
    failed = {name.partition("[")[0] for result in results for name in result.failed}
    surprises += len(failed ^ known_misses("driver").keys())
    return 1 if surprises else 0


def _cases(kind: str, send: Send) -> int:
    runner = {"aql": aql_runner, "http": http_runner}[kind]
    given, own = runner.load_cases(), runner.load_own_cases()
    found = misses([*given, *own], runner.run_case, send)
    known = known_misses(kind)
    given_missed = sum(case["id"] in found for case in given)
    _say(
        f"{kind}: {len(given) - given_missed} of {len(given)} cases pass; "
        f"of our own {len(own) - len(found) + given_missed} of {len(own)}"
    )
    for name, differences in found.items():
        _say(f"  {name}: {known.get(name, 'not known')}")
        for difference in differences:
            _say(f"    {difference}")
    return len(found.keys() ^ known.keys())


def _shown(result: ModuleResult) -> ModuleResult:
    _say(f"{result.name}: {result.passed} of {result.count - result.skipped}")
    known = known_misses("driver")
    for name, reason in result.failed.items():
        _say(f"  {name}: {known.get(name.partition('[')[0], f'not known: {reason}')}")
    return result


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
