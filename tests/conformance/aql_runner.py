"""Runs AQL cases (shape: tests/conformance/README.md) against anything that answers requests."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.conformance.http_runner import TEST_DATABASE, Send

CASES = Path(__file__).parent / "aql_cases.json"
OWN_CASES = Path(__file__).parent / "own_aql.json"
_EDGE_TYPE = {"document": 2, "edge": 3}
_BASE = f"/_db/{TEST_DATABASE}/_api"


def load_cases() -> list[dict[str, Any]]:
    """Return the cases that were handed to us."""
    cases: list[dict[str, Any]] = json.loads(CASES.read_text())
    return cases


def load_own_cases() -> list[dict[str, Any]]:
    """Return the cases that we made, each with the documentation that decides."""
    cases: list[dict[str, Any]] = json.loads(OWN_CASES.read_text())
    return cases


def run_case(case: Mapping[str, Any], send: Send) -> list[str]:
    """Return what differs, in a fresh database; nothing if the case passes."""
    ask = _Asker(send)
    ask("DELETE", f"/_db/_system/_api/database/{TEST_DATABASE}")
    ask("POST", "/_db/_system/_api/database", {"name": TEST_DATABASE})
    for part in case["setup"]:
        _set_up(ask, part)
    tolerance = float(case.get("tol", 0))
    answer = ask.query(case["query"], case.get("bind") or {}, case.get("options") or {})
    differences = _differences(case, answer, tolerance)
    for step in case.get("after", ()):
        later = ask.query(step["query"], step.get("bind") or {}, {})
        found = _differences(step, later, tolerance)
        differences += [f"afterwards, {step['query']}: {difference}" for difference in found]
    return differences


class _Asker:
    """Sends JSON and reads JSON."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        reply = self._send(method, path, {}, b"" if body is None else json.dumps(body).encode())
        return json.loads(reply.body) if reply.body else None

    def query(self, text: str, bind: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
        """Run a query and gather all its batches into `result`."""
        answer = self(
            "POST", f"{_BASE}/cursor", {"query": text, "bindVars": bind, "options": options}
        )
        batch = answer
        while batch.get("hasMore"):
            batch = self("POST", f"{_BASE}/cursor/{answer['id']}")
            answer["result"] += batch["result"]
        return answer


def _set_up(ask: _Asker, part: Mapping[str, Any]) -> None:
    if "graph" in part:
        made = ask(
            "POST",
            f"{_BASE}/gharial",
            {"name": part["graph"], "edgeDefinitions": part["edge_definitions"]},
        )
    else:
        name = part["collection"]
        made = ask("POST", f"{_BASE}/collection", {"name": name, "type": _EDGE_TYPE[part["type"]]})
        if part["docs"]:
            ask("POST", f"{_BASE}/document/{name}", part["docs"])
    if made.get("error"):
        raise AssertionError(f"the set-up failed: {made}")


def _differences(expected: Mapping[str, Any], answer: Any, tolerance: float) -> list[str]:
    wanted = expected["expect"]
    if isinstance(wanted, dict):
        if answer.get("errorNum") == wanted["errorNum"]:
            return []
        return [f"not error {wanted['errorNum']} but {_shown(answer)}"]
    if answer.get("error"):
        return [f"error {answer['errorNum']}: {answer['errorMessage']}"]
    found = []
    result = answer["result"]
    same = _is_same_set if expected.get("unordered") else _is_same
    if not same(wanted, result, tolerance):
        found.append(f"result {_shown(result)}, not {_shown(wanted)}")
    stats = answer["extra"]["stats"]
    for name, value in (expected.get("stats") or {}).items():
        if stats[name] != value:
            found.append(f"{name} {stats[name]}, not {value}")
    codes = [warning["code"] for warning in answer["extra"]["warnings"]]
    if expected.get("warnings") == "any":
        if not codes:
            found.append("no warning")
    elif "warnings" in expected and codes != expected["warnings"]:
        found.append(f"warnings {codes}, not {expected['warnings']}")
    return found


def _is_same(wanted: Any, actual: Any, tolerance: float) -> bool:
    if isinstance(wanted, bool) or isinstance(actual, bool):
        return wanted is actual
    if isinstance(wanted, int | float) and isinstance(actual, int | float):
        if not tolerance:
            return wanted == actual
        return math.isclose(wanted, actual, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(wanted, list) and isinstance(actual, list):
        return len(wanted) == len(actual) and all(
            _is_same(one, two, tolerance) for one, two in zip(wanted, actual, strict=True)
        )
    if isinstance(wanted, dict) and isinstance(actual, dict):
        return wanted.keys() == actual.keys() and all(
            _is_same(value, actual[name], tolerance) for name, value in wanted.items()
        )
    return type(wanted) is type(actual) and bool(wanted == actual)


def _is_same_set(wanted: Sequence[Any], actual: Sequence[Any], tolerance: float) -> bool:
    left = list(actual)
    for one in wanted:
        place = next((i for i, two in enumerate(left) if _is_same(one, two, tolerance)), None)
        if place is None:
            return False
        del left[place]
    return not left


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:400]
