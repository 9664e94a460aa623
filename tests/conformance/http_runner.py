"""Runs HTTP cases (shape: tests/conformance/README.md) against anything that answers requests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent / "http_cases.json"
OWN_CASES = Path(__file__).parent / "own_http.json"
TEST_DATABASE = "conformance"
_VARIABLE = re.compile(r"\{\{(\w+)\}\}")
_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


@dataclass(frozen=True)
class Reply:
    """An answer as a case looks at it; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Send = Callable[[str, str, Mapping[str, str], bytes], Reply]
"""Sends method, path with query, headers and body."""


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
    send("DELETE", f"/_db/_system/_api/database/{TEST_DATABASE}", {}, b"")
    made = send(
        "POST", "/_db/_system/_api/database", {}, json.dumps({"name": TEST_DATABASE}).encode()
    )
    if made.status != 201:
        return [f"the test database could not be made: {made.status} {made.body!r}"]
    saved: dict[str, Any] = {}
    differences: list[str] = []
    for number, (step, expected) in enumerate(
        zip(case["steps"], case["expect"], strict=True), start=1
    ):
        reply = _send(step, saved, send)
        body = _decoded(reply.body)
        for name, source in (step.get("save") or {}).items():
            saved[name] = _captured(source, reply, body)
        found = _differences(_filled(expected, saved), reply, body)
        where = f"step {number} {step['method']} {step['path']}"
        differences += [f"{where}: {difference}" for difference in found]
    return differences


def _send(step: Mapping[str, Any], saved: Mapping[str, Any], send: Send) -> Reply:
    path = str(_filled(step["path"], saved))
    if not path.startswith("/_db/"):
        path = f"/_db/{TEST_DATABASE}{path}"
    given = step.get("body")
    if given is None:
        body = b""
    elif isinstance(given, dict) and set(given) == {"$raw"}:
        body = str(_filled(given["$raw"], saved)).encode()
    else:
        body = json.dumps(_filled(given, saved)).encode()
    return send(step["method"], path, _filled(step.get("headers") or {}, saved), body)


def _differences(expected: Mapping[str, Any], reply: Reply, body: Any) -> list[str]:
    found = []
    allowed = expected.get("status_in", [expected.get("status")])
    if reply.status not in allowed:
        found.append(f"status {reply.status}, not {allowed}; body {reply.body[:300]!r}")
    if "errorNum" in expected and (
        not isinstance(body, dict) or body.get("errorNum") != expected["errorNum"]
    ):
        found.append(f"errorNum {expected['errorNum']} missing in {body!r}")
    if "body_contains" in expected:
        found += _missing(expected["body_contains"], body, "body")
    for name in expected.get("body_absent", []):
        if isinstance(body, dict) and name in body:
            found.append(f"attribute {name} is there")
    headers = {name.lower(): value for name, value in reply.headers.items()}
    for name, value in (expected.get("headers_contains") or {}).items():
        if headers.get(name.lower()) != value:
            found.append(f"header {name} is {headers.get(name.lower())!r}, not {value!r}")
    return found


def _missing(expected: Any, actual: Any, where: str) -> list[str]:
    if isinstance(expected, dict) and set(expected) == {"$type"}:
        if _TYPES[expected["$type"]](actual):
            return []
        return [f"{where} is no {expected['$type']}: {actual!r}"]
    if isinstance(expected, dict) and isinstance(actual, dict):
        return [
            difference
            for name, value in expected.items()
            for difference in (
                _missing(value, actual[name], f"{where}.{name}")
                if name in actual
                else [f"{where}.{name} is missing"]
            )
        ]
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return [
            difference
            for place, value in enumerate(expected)
            for difference in _missing(value, actual[place], f"{where}[{place}]")
        ]
    if isinstance(expected, bool) is isinstance(actual, bool) and expected == actual:
        return []
    return [f"{where} is {actual!r}, not {expected!r}"]


def _captured(source: str, reply: Reply, body: Any) -> Any:
    if source.startswith("#header:"):
        return {name.lower(): v for name, v in reply.headers.items()}.get(source[8:].lower())
    value = body
    for part in source.split("."):
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return value


def _filled(value: Any, saved: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        whole = _VARIABLE.fullmatch(value)
        if whole:
            return saved.get(whole[1])
        return _VARIABLE.sub(lambda match: str(saved.get(match[1])), value)
    if isinstance(value, dict):
        return {name: _filled(item, saved) for name, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, saved) for item in value]
    return value


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
