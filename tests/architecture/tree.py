"""Which files the tests of this folder look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "region_scheduler"
TESTS = ROOT / "tests"

_FOLDERS = ("region_scheduler", "tests", "docs", "infra", "terraform", ".ci", ".github")
_CACHES = {"__pycache__", ".terraform", "node_modules", ".hypothesis"}


def files(*suffixes: str, under: Path = ROOT) -> Iterator[Path]:
    """Yield the project's own files with these suffixes (all, if none is given), sorted."""
    tops = [ROOT / name for name in _FOLDERS] if under == ROOT else [under]
    found = [path for top in tops for path in top.rglob("*")]
    if under == ROOT:
        found += ROOT.iterdir()
    for path in sorted(found):
        is_wanted = path.is_file() and (not suffixes or path.suffix in suffixes)
        if is_wanted and not _CACHES.intersection(path.parts):
            yield path


def shown(path: Path) -> str:
    """Return the path as people write it."""
    return path.relative_to(ROOT).as_posix()
