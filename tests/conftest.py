"""Every run ends with what did not run and why; under CI a skip is a failure."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import settings

NOT_RUN: pytest.StashKey[dict[str, str]] = pytest.StashKey()
TIERS = {"slow": "make test-slow", "soak": "make soak"}
LONGEST = ("integration/local/test_stack.py", "integration/demo", "integration")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[NOT_RUN] = {}
    # How long an example takes says more of the machine than of the code.
    settings.register_profile("untimed", deadline=None)
    settings.load_profile("untimed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what starts whole stacks and mostly waits; what only computes fills the gaps."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    place = item.nodeid.removeprefix("tests/")
    return next((n for n, first in enumerate(LONGEST) if place.startswith(first)), len(LONGEST))


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        tier = next((name for name in TIERS if item.get_closest_marker(name)), None)
        reason = f"marked {tier}: {TIERS[tier]}" if tier else "left out by the command line"
        item.config.stash[NOT_RUN][item.nodeid] = reason


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config = session.config
    worker_output: dict[str, Any] | None = getattr(config, "workeroutput", None)
    if worker_output is not None:  # a process of pytest-xdist: hand over to the one that reports
        worker_output["not_run"] = config.stash[NOT_RUN]
        return
    if exitstatus == pytest.ExitCode.OK and _is_ci() and _skipped(config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    node.config.stash[NOT_RUN].update(getattr(node, "workeroutput", {}).get("not_run", {}))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    write = terminalreporter.write_line
    skipped = _skipped(config)
    tiers = Counter(config.stash[NOT_RUN].values())
    terminalreporter.section("what did not run, and why", sep="-")
    for reason, count in sorted(tiers.items()):
        write(f"{count} test{'s' if count > 1 else ''}: {reason}")
    for nodeid, reason in skipped:
        write(f"{nodeid}: {reason}")
    if not tiers and not skipped:
        write("nothing: every test ran")
    if skipped and _is_ci():
        write("a skip fails the run, because CI is set", red=True)


def _is_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def _skipped(config: pytest.Config) -> list[tuple[str, str]]:
    """Return the id and the reason of each test that was skipped or is expected to fail."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    stats: dict[str, Iterable[Any]] = reporter.stats if reporter else {}
    found = [(report.nodeid, _reason(report)) for report in stats.get("skipped", ())]
    found += [
        (report.nodeid, f"expected to fail: {report.wasxfail}")
        for report in stats.get("xfailed", ())
    ]
    return sorted(found)


def _reason(report: Any) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
