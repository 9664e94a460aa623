"""What the conformance cases leave open about documents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.embedded.calls import Calls, filled


@pytest.fixture
def calls() -> Calls:
    calls = Calls()
    filled(calls, "c", [{"_key": "k", "a": 1, "o": {"x": 1, "n": None}}])
    return calls


def rev(calls: Calls, key: str = "k") -> str:
    return str(calls("GET", f"/_api/document/c/{key}", expect=200)["_rev"])


def test_a_conditional_update_is_won_once(calls: Calls) -> None:
    seen = rev(calls)
    path = "/_api/document/c/k?ignoreRevs=false"

    won = calls("PATCH", path, {"_rev": seen, "a": 2}, expect=202)

    assert won["_oldRev"] == seen
    lost = calls("PATCH", path, {"_rev": seen, "a": 3}, expect=412)
    assert (lost["errorNum"], lost["_rev"], lost["_key"]) == (1200, won["_rev"], "k")
    assert calls("GET", "/_api/document/c/k", expect=200)["a"] == 2


@pytest.mark.parametrize("method", ["PATCH", "PUT", "DELETE"])
def test_if_match_is_a_condition_with_and_without_quotes(calls: Calls, method: str) -> None:
    stale = {"if_match": '"_stale"'}
    assert calls.error(method, "/_api/document/c/k", {}, **stale) == (412, 1200)
    calls(method, "/_api/document/c/k", {"b": 1}, expect=202, if_match=f'"{rev(calls)}"')


def test_a_failed_write_changes_nothing(calls: Calls) -> None:
    before = calls("GET", "/_api/document/c/k", expect=200)
    for method, path, body in (
        ("POST", "/_api/document/c", {"_key": "k"}),
        ("POST", "/_api/document/c", {"_key": "bad key"}),
        ("PATCH", "/_api/document/c/k", [1]),
        ("PATCH", "/_api/document/c/none", {}),
        ("PUT", "/_api/document/c/k", "text"),
        ("DELETE", "/_api/document/c/none", None),
        ("POST", "/_api/document/c", b"{"),
    ):
        calls.error(method, path, body)
    assert calls("GET", "/_api/document/c/k", expect=200) == before
    assert calls("GET", "/_api/collection/c/count", expect=200)["count"] == 1


def test_keep_null_false_removes_recursively(calls: Calls) -> None:
    patch = {"a": None, "o": {"x": None, "y": {"z": None, "w": 1}}, "new": {"p": None}}
    calls("PATCH", "/_api/document/c/k?keepNull=false", patch, expect=202)

    document = calls("GET", "/_api/document/c/k", expect=200)
    assert "a" not in document
    assert document["o"] == {"n": None, "y": {"w": 1}}
    assert document["new"] == {}


def test_merge_objects_false_replaces_objects(calls: Calls) -> None:
    calls("PATCH", "/_api/document/c/k?mergeObjects=false", {"o": {"y": 1}}, expect=202)
    assert calls("GET", "/_api/document/c/k", expect=200)["o"] == {"y": 1}


def test_a_stored_document_is_not_changed_by_later_writes_to_its_parts(calls: Calls) -> None:
    old = calls("PATCH", "/_api/document/c/k?returnOld=1", {"o": {"x": 2}}, expect=202)["old"]
    assert old["o"] == {"x": 1, "n": None}


def test_version_attribute_skips_what_is_not_newer(calls: Calls) -> None:
    path = "/_api/document/c/k?versionAttribute=v"
    calls("PATCH", path, {"v": 5, "a": 5}, expect=202)
    calls("PATCH", path, {"v": 5, "a": 6}, expect=202)
    calls("PUT", path, {"v": 4, "a": 7}, expect=202)
    assert calls("GET", "/_api/document/c/k", expect=200)["a"] == 5
    calls("PUT", path, {"v": 6, "a": 8}, expect=202)
    assert calls("GET", "/_api/document/c/k", expect=200)["a"] == 8


def test_the_errors_of_an_array_are_counted_in_a_header(calls: Calls) -> None:
    bodies: list[Any] = [{"_key": "k"}, {"_key": "n"}, 3, {"_key": "k"}]
    response = calls.response("POST", "/_api/document/c", bodies)

    assert response.status == 202
    assert json.loads(response.headers["x-arango-error-codes"]) == {"1210": 2, "1227": 1}
    numbers = [result.get("errorNum") for result in json.loads(response.body)]
    assert numbers == [1210, None, 1227, 1210]


def test_a_conditional_batch_wins_and_loses_each_for_itself(calls: Calls) -> None:
    filled(calls, "d", [{"_key": f"k{n}", "n": 0} for n in range(4)])
    seen = [d["_rev"] for d in calls.rows("FOR d IN d SORT d._key RETURN d")]
    calls("PATCH", "/_api/document/d/k1", {"n": 1}, expect=202)
    patches = [{"_key": f"k{n}", "_rev": seen[n], "n": 2} for n in range(4)]
    patches[3]["_key"] = "gone"

    results = calls("PATCH", "/_api/document/d?ignoreRevs=false", patches, expect=202)

    assert [r.get("errorNum") for r in results] == [None, 1200, None, 1202]
    assert [r.get("_oldRev") for r in results] == [seen[0], None, seen[2], None]
    assert all("_id" not in r for r in results if "error" in r)
    assert calls.rows("FOR d IN d SORT d._key RETURN d.n") == [2, 1, 2, 0]


def test_silent_says_nothing_but_errors(calls: Calls) -> None:
    assert calls("POST", "/_api/document/c?silent=1", {"_key": "x"}, expect=202) == {}
    assert calls("POST", "/_api/document/c?silent=1", [{"_key": "y"}], expect=202) == {}
    failed = calls("POST", "/_api/document/c?silent=1", [{"_key": "y"}, {}], expect=202)
    assert [f["errorNum"] for f in failed] == [1210]


def test_read_of_what_has_not_changed_is_304(calls: Calls) -> None:
    tag = f'"{rev(calls)}"'
    response = calls.response("GET", "/_api/document/c/k", if_none_match=tag)
    assert (response.status, response.body, response.headers["etag"]) == (304, b"", tag)
    assert calls.response("GET", "/_api/document/c/k", if_none_match='"x"').status == 200
    assert calls.response("HEAD", "/_api/document/c/none").status == 404


def test_numbers_beyond_64_bits_become_doubles(calls: Calls) -> None:
    rows = calls.rows("RETURN 9223372036854775807 + 1")
    assert rows == [9223372036854775808.0]
    calls("POST", "/_api/document/c", b'{"_key":"big","n":18446744073709551615}', expect=202)
    assert calls("GET", "/_api/document/c/big", expect=200)["n"] == 18446744073709551615


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ({"type": "autoincrement", "increment": 5, "offset": 2}, ["2", "7", "12"]),
        ({"type": "padded"}, None),
        ({"type": "uuid"}, None),
        ({}, None),
    ],
)
def test_keys_are_made_when_none_is_brought(
    calls: Calls, options: dict[str, Any], keys: list[str] | None
) -> None:
    calls("POST", "/_api/collection", {"name": "d", "keyOptions": options}, expect=200)
    made = [d["_key"] for d in calls("POST", "/_api/document/d", [{}, {}, {}], expect=202)]
    assert len(set(made)) == 3
    if keys is not None:
        assert made == keys
    if options.get("type") == "padded":
        assert {len(key) for key in made} == {16}
        assert made == sorted(made)


def test_keys_may_be_forbidden(calls: Calls) -> None:
    body = {"name": "d", "keyOptions": {"allowUserKeys": False}}
    calls("POST", "/_api/collection", body, expect=200)
    assert calls.error("POST", "/_api/document/d", {"_key": "k"}) == (400, 1222)
    calls("POST", "/_api/document/d", {}, expect=202)


def test_a_schema_holds_at_its_level(calls: Calls) -> None:
    rule = {"properties": {"n": {"type": "number", "minimum": 0}}, "required": ["n"]}
    schema = {"rule": rule, "level": "moderate", "message": "n is needed"}
    calls("PUT", "/_api/collection/c/properties", {"schema": schema}, expect=200)

    assert calls.error("POST", "/_api/document/c", {"n": -1}) == (400, 1620)
    calls("PATCH", "/_api/document/c/k", {"b": 1}, expect=202)  # it broke the rule before
    calls("POST", "/_api/document/c", {"_key": "good", "n": 1}, expect=202)
    assert calls.error("PATCH", "/_api/document/c/good", {"n": "x"}) == (400, 1620)
    calls("PUT", "/_api/collection/c/properties", {"schema": None}, expect=200)
    calls("POST", "/_api/document/c", {"n": -1}, expect=202)


def test_a_schema_that_could_not_be_enforced_is_refused(calls: Calls) -> None:
    schema = {"rule": {"dependentRequired": {"a": ["b"]}}}
    body = {"name": "d", "schema": schema}
    assert calls.error("POST", "/_api/collection", body) == (400, 1621)


def test_a_bug_in_one_request_fails_that_request_only(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(calls.engine.store.ticks, "next_rev", broken)
        assert calls.error("PATCH", "/_api/document/c/k", {"a": 2}) == (500, 4)

    assert "a request failed" in caplog.text
    calls("PATCH", "/_api/document/c/k", {"a": 2}, expect=202)


def test_a_batch_is_synced_only_if_something_was_written(calls: Calls) -> None:
    calls("POST", "/_api/collection", {"name": "s", "waitForSync": True}, expect=200)
    calls("POST", "/_api/document/s", [{"_key": "a"}, {"_key": "a"}], expect=201)
    calls("POST", "/_api/document/s", [{"_key": "a"}], expect=202)
    calls("DELETE", "/_api/document/s", ["none"], expect=202)
    calls("DELETE", "/_api/document/s", ["a"], expect=200)


def test_a_handle_of_another_collection_names_nothing_here(calls: Calls) -> None:
    results = calls("DELETE", "/_api/document/c", ["other/k", "c/k"], expect=202)
    assert [result.get("errorNum") for result in results] == [1202, None]
