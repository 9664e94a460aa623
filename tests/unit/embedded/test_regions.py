"""Followers that lag, cuts, leader changes, faults of single requests, restores."""

from __future__ import annotations

import json
from typing import Any

import pytest

from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.embedded.arango.delivery import Delivery
from region_scheduler.embedded.arango.faults import Fault, FaultKind
from tests.unit.embedded.calls import Calls, filled, request

DIRTY = {"x_arango_allow_dirty_read": "true"}
PATH = "/_api/document/c/k"


@pytest.fixture
def calls() -> Calls:
    calls = Calls(is_cluster=True, regions=("eu", "us", "ap"), has_fault_control=True)
    filled(calls, "c", [{"_key": "k", "n": 0}], numberOfShards=3)
    return calls


@pytest.fixture
def control(calls: Calls) -> FaultControl:
    return FaultControl(calls.engine)


def write(calls: Calls, n: int) -> None:
    calls("PATCH", PATH, {"n": n}, expect=202)


def seen(calls: Calls, region: str, **headers: Any) -> Any:
    return calls("GET", PATH, expect=200, region=region, **headers)["n"]


def plan(calls: Calls, method: str, path: str, region: str, **headers: str) -> Delivery | None:
    return calls.engine.network.plan(request(method, path, {}, region=region, **headers))


# Followers.


def test_a_dirty_read_shows_what_the_follower_has_received(
    calls: Calls, control: FaultControl
) -> None:
    control.set_lag("us", 2.0)
    write(calls, 1)
    assert seen(calls, "us") == 1
    assert seen(calls, "us", **DIRTY) == 0
    assert seen(calls, "ap", **DIRTY) == 1
    calls.clock.pass_s(1.5)
    write(calls, 2)
    assert seen(calls, "us", **DIRTY) == 0
    calls.clock.pass_s(0.5)
    assert seen(calls, "us", **DIRTY) == 1
    calls.clock.pass_s(1.5)
    assert seen(calls, "us", **DIRTY) == 2
    response = calls.response("GET", PATH, region="us", **DIRTY)
    assert response.headers["x-arango-potential-dirty-read"] == "true"


def test_queries_bulk_reads_and_edges_are_dirty_reads_too(
    calls: Calls, control: FaultControl
) -> None:
    filled(calls, "e", [{"_key": "e1", "_from": "c/k", "_to": "c/z"}], type=3)
    control.freeze("us")
    write(calls, 1)
    calls("DELETE", "/_api/document/e/e1", expect=202)
    more = {"region": "us", **DIRTY}

    assert calls.rows("FOR d IN c FILTER d._key == 'k' RETURN d.n", **more) == [0]
    walk = "WITH c FOR v, e IN 1..1 OUTBOUND 'c/k' e RETURN e._key"
    assert (calls.rows(walk), calls.rows(walk, **more)) == ([], ["e1"])
    many = calls("PUT", "/_api/document/c?onlyget=1", ["k"], expect=200, **more)
    assert many[0]["n"] == 0
    edges = calls("GET", "/_api/edges/e?vertex=c/k&direction=out", expect=200, **more)["edges"]
    assert [edge["_key"] for edge in edges] == ["e1"]
    assert calls("GET", "/_api/edges/e?vertex=c/k", expect=200, region="us")["edges"] == []
    assert calls.rows("FOR d IN c RETURN d.n", region="us") == [1]


def test_a_write_in_a_dirty_request_goes_to_the_leader(calls: Calls, control: FaultControl) -> None:
    control.freeze("us")
    write(calls, 1)
    query = "FOR d IN c UPDATE d WITH {n: d.n + 1} IN c RETURN NEW.n"
    assert calls.rows(query, region="us", **DIRTY) == [2]
    calls("PATCH", PATH, {"n": 3}, expect=202, region="us", **DIRTY)
    assert (seen(calls, "us"), seen(calls, "us", **DIRTY)) == (3, 0)


def test_a_frozen_follower_catches_up_when_it_thaws(calls: Calls, control: FaultControl) -> None:
    control.freeze("us")
    for n in range(1, 4):
        write(calls, n)
        calls.clock.pass_s(100)
    assert seen(calls, "us", **DIRTY) == 0
    control.thaw("us")
    assert seen(calls, "us", **DIRTY) == 3
    assert not calls.engine.store.horizons


def test_a_cut_keeps_what_had_arrived_before_it(calls: Calls, control: FaultControl) -> None:
    control.freeze("us")
    write(calls, 1)
    control.thaw("us")
    write(calls, 2)
    control.cut("us")
    write(calls, 3)
    assert seen(calls, "us", **DIRTY) == 2
    control.heal("us")
    control.set_lag("us", 5.0)
    write(calls, 4)
    calls.clock.pass_s(3)
    control.freeze("us")
    calls.clock.pass_s(3)
    assert seen(calls, "us", **DIRTY) == 3


def test_shards_may_lag_differently(calls: Calls, control: FaultControl) -> None:
    collection = calls.engine.store.catalog.database("_system").collection("c")
    calls("POST", "/_api/document/c", [{"_key": f"x{n}", "n": 0} for n in range(20)], expect=202)
    shards = {key: collection.shard_of(key) for key in (f"x{n}" for n in range(20))}
    assert set(shards.values()) == {0, 1, 2}
    control.set_lag("us", 5.0, "c", 1)
    calls.rows("FOR d IN c UPDATE d WITH {n: 1} IN c")

    rows = calls.rows("FOR d IN c RETURN [d._key, d.n]", region="us", **DIRTY)
    late = {key for key, n in rows if n == 0 and key != "k"}
    assert late == {key for key, shard in shards.items() if shard == 1}


# Cuts, round trips, leader changes.


def test_a_cut_region_reads_what_it_has_and_decides_nothing(
    calls: Calls, control: FaultControl
) -> None:
    control.cut("us")
    write(calls, 1)

    assert plan(calls, "GET", PATH, "us", **DIRTY) is None
    assert seen(calls, "us", **DIRTY) == 0
    for method in ("GET", "PATCH"):
        assert plan(calls, method, PATH, "us") == Delivery(
            is_executed=False, is_answered=False, is_hanging=True
        )
    assert plan(calls, "GET", "/_api/version", "us") is None
    assert plan(calls, "PATCH", PATH, "eu") is None
    control.cut("us", is_refusing=True)
    refused = plan(calls, "PATCH", PATH, "us")
    assert refused is not None
    assert refused.answer is not None
    assert (refused.answer.status, json.loads(refused.answer.body)["errorNum"]) == (503, 1478)

    control.heal("us")
    assert plan(calls, "PATCH", PATH, "us") is None
    assert seen(calls, "us", **DIRTY) == 1


def test_some_of_what_hung_in_a_cut_is_executed_when_it_heals(
    calls: Calls, control: FaultControl
) -> None:
    control.cut("us")
    for n in range(40):
        body = {"_key": f"h{n}"}
        calls.engine.network.plan(request("POST", "/_api/document/c", body, region="us"))
    control.heal("us")
    arrived = len(calls.rows("FOR d IN c FILTER d._key != 'k' RETURN d"))
    assert 0 < arrived < 40


def test_requests_take_the_round_trip_to_the_leader(calls: Calls, control: FaultControl) -> None:
    control.set_rtt("us", 0.08)
    assert plan(calls, "PATCH", PATH, "us") == Delivery(wait_s=0.04, answer_wait_s=0.04)
    assert plan(calls, "GET", PATH, "us", **DIRTY) is None
    assert plan(calls, "GET", PATH, "eu") is None


def test_a_deposed_leader_still_answers_reads(calls: Calls, control: FaultControl) -> None:
    control.depose("us")
    write(calls, 1)
    assert (seen(calls, "us"), seen(calls, "eu")) == (0, 1)
    calls("PATCH", PATH, {"n": 2}, expect=202, region="us")
    assert (seen(calls, "us"), seen(calls, "eu")) == (0, 2)
    control.heal_leader("us")
    assert seen(calls, "us") == 2


# Single requests.


@pytest.mark.parametrize(
    ("kind", "status", "number"),
    [
        (FaultKind.READ_ONLY, 403, 1004),
        (FaultKind.RESIGNED, 421, 1491),
        (FaultKind.UNAVAILABLE, 503, 1478),
        (FaultKind.NOT_LEADER, 503, 1496),
        (FaultKind.TIMED_OUT, 500, 1457),
    ],
)
def test_errors_of_a_cluster(
    calls: Calls, control: FaultControl, kind: FaultKind, status: int, number: int
) -> None:
    control.inject(Fault(kind, times=1))
    delivery = plan(calls, "PATCH", PATH, "eu")
    assert delivery is not None
    assert delivery.answer is not None
    assert not delivery.is_executed
    assert delivery.answer.status == status
    assert json.loads(delivery.answer.body)["errorNum"] == number
    assert plan(calls, "PATCH", PATH, "eu") is None


def test_rules_say_whom_they_hit(calls: Calls, control: FaultControl) -> None:
    number = control.inject(
        Fault(FaultKind.NOT_SENT, region="us", method="PATCH", path=r"/document/c/")
    )
    assert plan(calls, "PATCH", PATH, "us") == Delivery(is_executed=False, is_answered=False)
    for method, path, region in (
        ("PATCH", PATH, "eu"),
        ("PUT", PATH, "us"),
        ("PATCH", "/_api/document/d/k", "us"),
    ):
        assert plan(calls, method, path, region) is None
    control.withdraw(number)
    assert plan(calls, "PATCH", PATH, "us") is None


def test_a_rate_is_kept_and_repeats_with_the_seed() -> None:
    def hits() -> list[bool]:
        calls = Calls(is_cluster=True)
        FaultControl(calls.engine).inject(Fault(FaultKind.ANSWER_DROPPED, rate=0.3))
        found = [calls.engine.network.plan(request("GET", PATH)) for _ in range(500)]
        return [delivery is not None for delivery in found]

    assert hits() == hits()
    assert 100 < sum(hits()) < 200


def test_only_writes_are_hit_by_what_only_writes_can_meet(
    calls: Calls, control: FaultControl
) -> None:
    control.inject(Fault(FaultKind.READ_ONLY))
    cursor = "/_api/cursor"
    reading = request("POST", cursor, {"query": "FOR d IN c RETURN d"})
    writing = request("POST", cursor, {"query": "FOR d IN c REMOVE d IN c"})
    assert calls.engine.network.plan(reading) is None
    assert calls.engine.network.plan(writing) is not None
    assert plan(calls, "GET", PATH, "eu") is None
    assert plan(calls, "PUT", "/_api/document/c?onlyget=1", "eu") is None
    assert plan(calls, "POST", "/_api/document/c", "eu") is not None


def test_a_conflict_without_a_winner_changes_nothing(calls: Calls) -> None:
    engine = calls.engine
    before = calls("GET", PATH, expect=200)
    for method, path, body, status in (
        ("PATCH", PATH, {"n": 9}, 409),
        ("POST", "/_api/cursor", {"query": "FOR d IN c UPDATE d WITH {n: 9} IN c"}, 409),
    ):
        response = engine.handle(request(method, path, body), is_disturbed=True)
        decoded = json.loads(response.body)
        assert (response.status, decoded["errorNum"], "_rev" in decoded) == (status, 1200, False)
    assert calls("GET", PATH, expect=200) == before
    batch = [{"_key": f"y{n}"} for n in range(20)]
    response = engine.handle(request("POST", "/_api/document/c", batch), is_disturbed=True)
    failed = [result.get("errorNum") for result in json.loads(response.body)]
    assert set(failed) == {1200, None}
    assert failed[0] == 1200


def test_a_late_request_is_executed_when_its_time_has_come(calls: Calls) -> None:
    calls.engine.postpone(request("PATCH", PATH, {"n": 5}), 3.0)
    calls.clock.pass_s(2.9)
    assert seen(calls, "eu") == 0
    calls.clock.pass_s(0.2)
    assert seen(calls, "eu") == 5


@pytest.mark.parametrize(
    "wrong",
    [{"rate": 1.5}, {"seconds": -1}, {"times": -1}, {"path": "("}, {"is_applied": True}],
)
def test_rules_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|means|expression"):
        Fault(FaultKind.NOT_LEADER, **wrong)


# Restores.


def test_a_restore_brings_an_older_state_back_with_its_revisions(
    calls: Calls, control: FaultControl
) -> None:
    first = calls("GET", PATH, expect=200)
    point = control.mark()
    write(calls, 1)
    calls("POST", "/_api/document/c", {"_key": "new"}, expect=202)
    id = calls("POST", "/_api/transaction/begin", {"collections": {"write": "c"}}, expect=201)

    control.restore(point)

    assert calls("GET", PATH, expect=200) == first
    assert calls.error("GET", "/_api/document/c/new") == (404, 1202)
    trx = id["result"]["id"]
    assert calls.error("GET", PATH, x_arango_trx_id=trx) == (404, 1655)
    again = calls("PATCH", PATH, {"n": 1}, expect=202)
    assert again["_oldRev"] == first["_rev"]
    with pytest.raises(ValueError, match="used before"):
        control.restore(point)


def test_a_restore_finds_what_was_removed_and_inserted_again(
    calls: Calls, control: FaultControl
) -> None:
    index = {"type": "persistent", "fields": ["n"]}
    calls("POST", "/_api/index?collection=c", index, expect=201)
    first = calls("GET", PATH, expect=200)
    point = control.mark()
    calls("DELETE", PATH, expect=202)
    calls("POST", "/_api/document/c", {"_key": "k", "n": 7}, expect=202)
    control.restore(point)
    assert calls("GET", PATH, expect=200) == first
    assert calls.rows("FOR d IN c FILTER d.n >= 0 RETURN [d._key, d.n]") == [["k", 0]]


def test_a_restore_point_that_is_forgotten_costs_nothing(
    calls: Calls, control: FaultControl
) -> None:
    point = control.mark()
    control.forget(point)
    assert not calls.engine.store.horizons
    with pytest.raises(ValueError, match="used before"):
        control.restore(point)


def test_a_follower_that_is_frozen_for_long_keeps_one_change_a_key(
    calls: Calls, control: FaultControl
) -> None:
    control.freeze("us")
    for n in range(1, 501):
        write(calls, n)
        if n % 50 == 0:
            calls.clock.pass_s(2)
    follower = calls.engine.regions.region("us").follower
    assert follower is not None
    assert sum(map(len, follower._coming.values())) < 60
    assert seen(calls, "us", **DIRTY) == 0
    control.thaw("us")
    assert seen(calls, "us", **DIRTY) == 500
    assert not calls.engine.store.horizons


def test_what_lags_does_not_pile_up_though_nobody_reads(
    calls: Calls, control: FaultControl
) -> None:
    control.set_lag("us", 3.0)
    for n in range(1, 101):
        write(calls, n)
        calls.clock.pass_s(1)
    follower = calls.engine.regions.region("us").follower
    assert follower is not None
    assert sum(map(len, follower._coming.values())) <= 4
    assert seen(calls, "us", **DIRTY) == 98


def test_what_is_abandoned_is_tidied_up_by_time_alone(calls: Calls) -> None:
    body = {"collections": {"write": "c"}}
    calls("POST", "/_api/transaction/begin", body, expect=201)
    calls("POST", "/_api/cursor", {"query": "FOR i IN 1..9 RETURN i", "batchSize": 2}, expect=201)
    calls.clock.pass_s(120)
    calls("GET", "/_api/version", expect=200)
    assert not calls.engine.store.horizons
    assert not calls.engine.cursors._cursors
