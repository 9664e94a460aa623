"""python-arango's own test modules against the embedded server.

They are not part of this tree: DIRECTORY is the `tests` folder of the driver's repository. Each
module runs in a pytest of its own, for the set-up and the clean-up that theirs does.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tests.ties import tied

# What tests a cluster, a replica or an edition that the engine is not, or removed parts.
_LEFT_OUT = frozenset(
    "test_analyzer test_backup test_cluster test_foxx test_overload test_pregel test_replication "
    "test_task test_view test_wal".split()
)
_SKIPS = "backup foxx js-transactions task enterprise jwt-secret-keyfile".split()
_MODULE_S = 240


@dataclass(frozen=True, slots=True)
class ModuleResult:
    """What one module gave.

    Attributes:
        failed: Names of the tests that fail, with the first line of the reason.
    """

    name: str
    count: int
    skipped: int
    failed: dict[str, str]

    @property
    def passed(self) -> int:
        """How many tests pass."""
        return self.count - self.skipped - len(self.failed)


def is_driver_tests(directory: Path) -> bool:
    """Tell whether a directory holds the driver's tests."""
    return (directory / "conftest.py").is_file() and (directory / "test_document.py").is_file()


def run_modules(directory: Path) -> Iterator[ModuleResult]:
    """Yield the result of each module that is in scope."""
    with tempfile.TemporaryDirectory() as text, _served(Path(text) / "data") as port:
        # Apart from its repository, whose own `arango` would be taken for the installed one.
        copied = Path(text) / "run" / "tests"
        shutil.copytree(directory, copied)
        for module in sorted(copied.glob("test_*.py")):
            if module.stem not in _LEFT_OUT:
                yield _run(module, port)


def _run(module: Path, port: int) -> ModuleResult:
    report = module.with_suffix(".xml")
    server = ["--host", "127.0.0.1", "--port", str(port), "--root", "root", "--password", "passwd"]
    try:
        ended = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", f"tests/{module.name}", "-q"),
                *("-p", "no:cacheprovider", "-p", "no:xdist", f"--junitxml={report}"),
                *(*server, "--secret", "secret", "--skip", *_SKIPS),
            ],
            cwd=module.parents[1],
            capture_output=True,
            text=True,
            timeout=_MODULE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ModuleResult(module.stem, 1, 0, {"all": f"not done within {_MODULE_S} s"})
    if not report.exists():
        return ModuleResult(module.stem, 1, 0, {"all": ended.stderr[-300:] or ended.stdout[-300:]})
    return _read(module.stem, report)


def _read(name: str, report: Path) -> ModuleResult:
    cases = ElementTree.parse(report).getroot().findall(".//testcase")
    failed: dict[str, str] = {}
    for case in cases:
        for fault in (*case.findall("failure"), *case.findall("error")):
            failed[str(case.get("name"))] = (fault.get("message") or "").partition("\n")[0][:160]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return ModuleResult(name, len(cases), skipped, failed)


@contextmanager
def _served(data: Path) -> Iterator[int]:
    command = [sys.executable, "-m", "region_scheduler.embedded.arango", "--port", "0"]
    with subprocess.Popen(
        tied(
            [*command, "--data", data, "--root-password", "passwd", "--jwt-secret", "secret"],
        ),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline().split()[1].rpartition(":")[2])
        finally:
            process.terminate()
