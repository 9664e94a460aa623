"""/_admin/faults: the fault control over HTTP."""

from __future__ import annotations

import pytest

from tests.unit.embedded.calls import Calls, filled
from tests.unit.embedded.test_regions import DIRTY, PATH, seen, write


@pytest.fixture
def calls() -> Calls:
    calls = Calls(is_cluster=True, regions=("eu", "us", "ap"), has_fault_control=True)
    filled(calls, "c", [{"_key": "k", "n": 0}], numberOfShards=3)
    return calls


def test_faults_are_controlled_over_http_where_that_is_allowed(calls: Calls) -> None:
    calls("PATCH", "/_admin/faults/us", {"lag_s": 5, "rtt_s": 0.1}, expect=200)
    calls("PATCH", "/_admin/faults/ap", {"is_cut": True, "is_refusing": True}, expect=200)
    rule = {"kind": "not_sent", "region": "eu", "rate": 0.5}
    number = calls("POST", "/_admin/faults", rule, expect=201)["number"]
    shown = calls("GET", "/_admin/faults", expect=200)

    assert shown["regions"]["us"]["lag_s"] == 5
    assert shown["regions"]["ap"]["is_cut"] is True
    assert shown["rules"][str(number)]["rate"] == 0.5
    calls("DELETE", f"/_admin/faults/{number}", expect=200)
    calls("PATCH", "/_admin/faults/ap", {"is_cut": False}, expect=200)
    shown = calls("GET", "/_admin/faults", expect=200)
    assert (shown["rules"], shown["regions"]["ap"]["is_cut"]) == ({}, False)
    for path, body in (("/none", {}), ("/us", {"x": 1}), ("/us", {"lag_s": "x"})):
        calls.error("PATCH", f"/_admin/faults{path}", body)
    assert calls.error("POST", "/_admin/faults", {"kind": "x"}) == (400, 10)
    assert calls.error("POST", "/_admin/faults", {"kind": "delay", "rate": 9}) == (400, 10)


def test_restore_points_and_single_shards_are_controlled_over_http_too(calls: Calls) -> None:
    first = calls("GET", PATH, expect=200)
    number = calls("POST", "/_admin/faults/points", expect=201)["number"]
    other = calls("POST", "/_admin/faults/points", expect=201)["number"]
    write(calls, 1)
    calls("PUT", f"/_admin/faults/points/{number}", expect=200)
    assert calls("GET", PATH, expect=200) == first
    assert calls.error("PUT", f"/_admin/faults/points/{number}") == (404, 404)
    calls("DELETE", f"/_admin/faults/points/{other}", expect=200)
    assert not calls.engine.store.horizons

    collection = calls.engine.store.catalog.database("_system").collection("c")
    shard = collection.shard_of("k")
    lags = {f"c/{n}": 9 if n == shard else 0 for n in range(3)}
    shown = calls("PATCH", "/_admin/faults/us", {"shard_lag_s": lags}, expect=200)
    assert shown["shard_lag_s"] == lags
    write(calls, 2)
    assert (seen(calls, "us"), seen(calls, "us", **DIRTY)) == (2, 0)


def test_without_permission_there_is_no_such_endpoint() -> None:
    calls = Calls()
    assert calls.error("GET", "/_admin/faults") == (404, 404)
    assert calls.error("POST", "/_admin/faults", {"kind": "not_sent"}) == (404, 404)
