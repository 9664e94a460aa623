"""What the product uses of ArangoDB is on the list, and each of it is held to a case."""

from __future__ import annotations

import json
from pathlib import Path

from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.embedded.arango.http.message import Request
from region_scheduler.embedded.arango.surface import SurfaceRecorder
from tests.conformance import aql_runner, http_runner
from tests.conformance.engine_sender import engine_sender
from tests.conformance.ratchet import misses
from tests.conformance.surface import covered, listed, used


def test_each_entry_on_the_list_is_used_by_a_case() -> None:
    assert len(listed()) > 80
    assert sorted(listed() - covered()) == []


def test_our_own_cases_pass_and_name_what_decides() -> None:
    names: set[str] = set()
    for runner in (aql_runner, http_runner):
        cases = runner.load_own_cases()
        assert misses(cases, runner.run_case, engine_sender()) == {}
        assert all(
            case["source"].startswith(("arangodb/docs-hugo: ", "arangodb/arangodb: "))
            for case in cases
        )
        names |= {case["id"] for case in (*cases, *runner.load_cases())}
        assert all(case["id"].startswith("own-") for case in cases)
    assert len(names) == sum(
        len(load()) for r in (aql_runner, http_runner) for load in (r.load_cases, r.load_own_cases)
    )


def test_what_the_graph_driver_uses_is_on_the_list() -> None:
    entries, code = used(
        ["tests/contract/graph/test_commits.py", "-k", "process", "-p", "no:xdist"]
    )
    assert code == 0
    assert "PATCH /_api/document/* body array" in entries
    assert sorted(entries - listed()) == []


def test_a_recorder_leaves_out_names_and_values(tmp_path: Path) -> None:
    engine = Engine(is_cluster=False, is_authenticating=False)
    engine.recorder = recorder = SurfaceRecorder(tmp_path / "entries.txt")
    for name in ("one", "two"):
        query = f"WITH v FOR d IN {name} UPSERT {{n: 1}} INSERT {{}} UPDATE {{}} IN {name} "
        body = {"query": query + "OPTIONS {ignoreErrors: true} RETURN LENGTH(d.x[*].y)"}
        for _ in range(2):
            engine.handle(Request("POST", "/_api/cursor", {}, {}, json.dumps(body).encode()))
    path, headers = "/_db/mine/_api/document/one/k", {"if-match": "x", "host": "h"}
    engine.handle(Request("PATCH", path, {"keepNull": "0", "rev": "7"}, headers, b'{"a": 1}'))
    engine.handle(Request("GET", "/_admin/faults"))
    engine.handle(Request("GET", "/nothing"))

    written = (tmp_path / "entries.txt").read_text().splitlines()
    assert len(written) == len(set(written))
    assert set(written) == recorder.entries
    assert {entry for entry in written if "document" in entry} == {
        "PATCH /_api/document/*/*",
        "PATCH /_api/document/*/* ?keepNull=false",
        "PATCH /_api/document/*/* ?rev=*",
        "PATCH /_api/document/*/* header if-match",
    }
    assert {entry for entry in written if "Upsert" in entry or "Call" in entry} == {
        "aql Call",
        "aql Call LENGTH",
        "aql Upsert",
        "aql Upsert is_filter false",
        "aql Upsert is_replace false",
        "aql Upsert options ignoreErrors",
    }
    assert not any("one" in entry or "mine" in entry or "faults" in entry for entry in written)
