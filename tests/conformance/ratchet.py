"""What is known to miss, and the comparison of a run with it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.conformance.http_runner import Send

KNOWN_MISSES = Path(__file__).parent / "known_misses.toml"
Run = Callable[[Mapping[str, Any], Send], list[str]]


def known_misses(kind: str) -> dict[str, str]:
    """Return the reason of each case of a kind (aql, http) that is known to miss."""
    known: dict[str, str] = tomllib.loads(KNOWN_MISSES.read_text())[kind]
    return known


def misses(cases: Iterable[Mapping[str, Any]], run: Run, send: Send) -> dict[str, list[str]]:
    """Return what differs in each case that does not pass."""
    found: dict[str, list[str]] = {}
    for case in cases:
        try:
            differences = run(case, send)
        except Exception as error:  # noqa: BLE001  # a crash is a miss like any other
            differences = [f"{type(error).__name__}: {error}"]
        if differences:
            found[case["id"]] = differences
    return found
