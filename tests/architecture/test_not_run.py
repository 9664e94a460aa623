"""The list of what did not run is told by the real conftest, in a run of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
SUITE = """
import pytest

def test_that_runs():
    pass

@pytest.mark.skip(reason="no server here")
def test_that_is_skipped():
    pass

@pytest.mark.slow
def test_that_takes_long():
    pass
"""
INI = "[pytest]\nmarkers =\n    slow: takes long\n    soak: takes very long\n"


def run_suite(
    folder: Path, *arguments: str, is_ci: bool = False, suite: str = SUITE
) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST.read_text())
    (folder / "pytest.ini").write_text(INI)
    (folder / "test_suite.py").write_text(suite)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "CI": "true" if is_ci else ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two-processes"])
def test_skips_and_left_out_tiers_are_listed_with_their_reasons(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    ended = run_suite(tmp_path, "-m", "not slow", *workers)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    told = ended.stdout.partition("what did not run, and why")[2]
    assert "1 test: marked slow: make test-slow" in told
    assert "test_suite.py::test_that_is_skipped: no server here" in told


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two-processes"])
def test_a_skip_fails_a_run_under_ci(tmp_path: Path, workers: tuple[str, ...]) -> None:
    ended = run_suite(tmp_path, "-m", "not slow", *workers, is_ci=True)

    assert ended.returncode == 1
    assert "a skip fails the run" in ended.stdout


def test_a_whole_module_that_is_skipped_fails_a_run_under_ci(tmp_path: Path) -> None:
    suite = "import pytest\npytest.importorskip('no_such_module_at_all')\n"
    (tmp_path / "test_other.py").write_text("def test_that_runs(): pass\n")

    ended = run_suite(tmp_path, is_ci=True, suite=suite)

    assert ended.returncode == 1
    assert "no_such_module_at_all" in ended.stdout.partition("what did not run, and why")[2]


def test_a_run_without_skips_passes_under_ci(tmp_path: Path) -> None:
    ended = run_suite(tmp_path, is_ci=True, suite="def test_that_runs(): pass\n")

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "nothing: every test ran" in ended.stdout
