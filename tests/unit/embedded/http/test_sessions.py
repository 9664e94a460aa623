"""Cursors, jobs, stream transactions, ttl: what lives longer than a request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.embedded.calls import Calls, filled, numbered


@pytest.fixture
def calls() -> Calls:
    calls = Calls()
    filled(calls, "c", list(numbered(25)))
    return calls


def opened(calls: Calls, **more: Any) -> dict[str, Any]:
    body = {"query": "FOR d IN c SORT d.n RETURN d.n", "batchSize": 10, **more}
    cursor: dict[str, Any] = calls("POST", "/_api/cursor", body, expect=201)
    return cursor


# Cursors.


def test_batches_are_parts_of_one_result_whatever_is_written_meanwhile(calls: Calls) -> None:
    cursor = opened(calls, count=True)
    path = f"/_api/cursor/{cursor['id']}"
    calls("PUT", "/_api/collection/c/truncate", expect=200)

    second = calls("POST", path, expect=200)
    third = calls("PUT", path, expect=200)

    assert cursor["result"] + second["result"] + third["result"] == list(range(25))
    assert (cursor["count"], third["count"]) == (25, 25)
    assert (second["hasMore"], third["hasMore"], "id" in third) == (True, False, False)
    assert calls.error("POST", path) == (404, 1600)


def test_a_cursor_dies_when_it_is_not_used(calls: Calls) -> None:
    path = f"/_api/cursor/{opened(calls, ttl=5)['id']}"
    calls.clock.pass_s(4)
    calls("POST", path, expect=200)
    calls.clock.pass_s(6)
    assert calls.error("POST", path) == (404, 1600)


def test_a_cursor_belongs_to_its_database(calls: Calls) -> None:
    calls("POST", "/_api/database", {"name": "other"}, expect=201)
    path = f"/_api/cursor/{opened(calls)['id']}"
    assert calls.error("POST", f"/_db/other{path}") == (404, 1600)
    assert calls.error("DELETE", f"/_db/other{path}") == (404, 1600)
    calls("DELETE", path, expect=202)


def test_a_batch_may_be_fetched_again_if_that_was_asked_for(calls: Calls) -> None:
    cursor = opened(calls, options={"allowRetry": True})
    path = f"/_api/cursor/{cursor['id']}"
    assert cursor["nextBatchId"] == "2"

    second = calls("POST", f"{path}/2", expect=200)
    assert calls("POST", f"{path}/2", expect=200) == second
    last = calls("POST", f"{path}/3", expect=200)
    assert last["result"] == list(range(20, 25))
    assert calls("POST", f"{path}/3", expect=200) == last
    assert calls.error("POST", f"{path}/2") == (404, 1600)
    assert calls.error("POST", f"{path}/4") == (404, 1600)
    calls("DELETE", path, expect=202)


@pytest.mark.parametrize("size", [0, -1, "x"])
def test_a_batch_size_is_a_positive_number(calls: Calls, size: Any) -> None:
    assert calls.error("POST", "/_api/cursor", {"query": "RETURN 1", "batchSize": size})[1] == 10


def test_a_query_that_takes_too_long_is_ended_and_undone(calls: Calls) -> None:
    query = "FOR d IN c LET nothing = SLEEP(1) UPDATE d WITH {n: -1} IN c"
    body = {"query": query, "options": {"maxRuntime": 3}}
    assert calls.error("POST", "/_api/cursor", body) == (410, 1500)
    assert calls.rows("FOR d IN c FILTER d.n < 0 RETURN d") == []


def test_a_failed_query_leaves_nothing_behind(calls: Calls) -> None:
    query = "FOR i IN [30, 31, 3] INSERT {_key: CONCAT('k', i)} INTO c"
    assert calls.error("POST", "/_api/cursor", {"query": query}) == (409, 1210)
    assert calls("GET", "/_api/collection/c/count", expect=200)["count"] == 25


def test_a_query_that_sleeps_is_answered_when_it_wakes(calls: Calls) -> None:
    response = calls.response("POST", "/_api/cursor", {"query": "RETURN SLEEP(2)"})
    assert response.status == 201
    assert response.wait_s == pytest.approx(2)


# Jobs and running queries.


def test_a_job_that_sleeps_is_pending_and_can_be_killed(calls: Calls) -> None:
    ids = []
    for seconds in (5, 50):
        body = {"query": f"RETURN SLEEP({seconds})"}
        response = calls.response("POST", "/_api/cursor", body, x_arango_async="store")
        assert response.status == 202
        ids.append(response.headers["x-arango-async-id"])
    assert calls("GET", "/_api/job/pending", expect=200) == ids
    calls("GET", f"/_api/job/{ids[0]}", expect=204)
    running = calls("GET", "/_api/query/current", expect=200)
    assert [query["query"] for query in running] == ["RETURN SLEEP(5)", "RETURN SLEEP(50)"]

    calls("DELETE", f"/_api/query/{running[1]['id']}", expect=200)
    calls.clock.pass_s(6)

    assert calls("GET", "/_api/job/done", expect=200) == ids
    assert calls("PUT", f"/_api/job/{ids[0]}", expect=201)["result"] == [None]
    assert calls.error("PUT", f"/_api/job/{ids[1]}") == (410, 1500)
    assert calls.error("PUT", f"/_api/job/{ids[0]}") == (404, 404)
    assert calls.error("DELETE", f"/_api/query/{running[0]['id']}") == (404, 1591)


# Stream transactions.


def begun(calls: Calls, **collections: Any) -> str:
    body = {"collections": collections}
    return str(calls("POST", "/_api/transaction/begin", body, expect=201)["result"]["id"])


def test_a_transaction_is_seen_by_nobody_until_it_is_committed(calls: Calls) -> None:
    id = begun(calls, write="c")
    calls("PATCH", "/_api/document/c/k0", {"n": 100}, expect=202, x_arango_trx_id=id)
    inside = calls.rows("FOR d IN c FILTER d.n >= 24 SORT d.n RETURN d.n", x_arango_trx_id=id)
    assert inside == [24, 100]
    assert calls.rows("FOR d IN c FILTER d.n >= 24 RETURN d.n") == [24]

    assert calls("GET", "/_api/transaction", expect=200)["transactions"] == [
        {"id": id, "state": "running"}
    ]
    for _ in range(2):
        ended = calls("PUT", f"/_api/transaction/{id}", expect=200)["result"]
        assert ended == {"id": id, "status": "committed"}
    assert calls.rows("FOR d IN c FILTER d.n >= 24 SORT d.n RETURN d.n") == [24, 100]
    assert calls.error("DELETE", f"/_api/transaction/{id}")[1] == 1653
    assert calls.error("GET", "/_api/document/c/k0", x_arango_trx_id=id) == (404, 1655)


def test_an_idle_transaction_is_aborted(calls: Calls) -> None:
    id = begun(calls, write=["c"])
    calls("DELETE", "/_api/document/c/k0", expect=202, x_arango_trx_id=id)
    calls.clock.pass_s(59)
    calls("DELETE", "/_api/document/c/k1", expect=202, x_arango_trx_id=id)
    calls.clock.pass_s(61)

    assert calls.error("PUT", f"/_api/transaction/{id}")[1] in (1653, 1655)
    assert calls("GET", "/_api/collection/c/count", expect=200)["count"] == 25
    calls("DELETE", "/_api/document/c/k0", expect=202)


def test_a_failed_query_in_a_transaction_leaves_what_was_before_it(calls: Calls) -> None:
    id = begun(calls, write=["c"])
    calls("POST", "/_api/document/c", {"_key": "mine"}, expect=202, x_arango_trx_id=id)
    body = {"query": "FOR i IN ['new', 'k3'] INSERT {_key: i} INTO c"}
    assert calls.error("POST", "/_api/cursor", body, x_arango_trx_id=id) == (409, 1210)

    calls("PUT", f"/_api/transaction/{id}", expect=200)

    calls("GET", "/_api/document/c/mine", expect=200)
    assert calls.error("GET", "/_api/document/c/new") == (404, 1202)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, (400, 10)),
        ({"collections": {"write": 3}}, (400, 10)),
        ({"collections": {"write": "c"}, "lockTimeout": -1}, (400, 10)),
        ({"collections": {"write": "none"}}, (404, 1203)),
    ],
)
def test_a_transaction_that_cannot_begin(
    calls: Calls, body: dict[str, Any], error: tuple[int, int]
) -> None:
    assert calls.error("POST", "/_api/transaction/begin", body) == error


def test_ids_that_are_none(calls: Calls) -> None:
    for method in ("GET", "PUT", "DELETE"):
        assert calls.error(method, "/_api/transaction/x1") == (400, 10)
        assert calls.error(method, "/_api/transaction/99999") == (404, 1655)
    assert calls.error("GET", "/_api/document/c/k0", x_arango_trx_id="99999") == (404, 1655)


# Documents that expire.


def test_documents_expire_by_their_ttl_index(calls: Calls) -> None:
    index = {"type": "ttl", "fields": ["at"], "expireAfter": 60}
    calls("POST", "/_api/index?collection=c", index, expect=201)
    now = calls.engine.wall()
    bodies = [
        {"_key": "old", "at": now - 30},
        {"_key": "text", "at": "2020-01-01T00:00:00Z"},
        {"_key": "young", "at": now + 3600},
        {"_key": "odd", "at": [1]},
    ]
    calls("POST", "/_api/document/c", bodies, expect=202)
    assert calls("GET", "/_api/collection/c/count", expect=200)["count"] == 29

    calls.clock.pass_s(31)
    calls("GET", "/_api/version", expect=200)
    assert calls.error("GET", "/_api/document/c/text") == (404, 1202)
    calls("GET", "/_api/document/c/young", expect=200)
    calls.clock.pass_s(31)

    keys = {d["_key"] for d in calls.rows("FOR d IN c RETURN d")}
    assert keys & {"old", "text", "young", "odd"} == {"young", "odd"}


def test_a_document_that_a_transaction_holds_expires_later(calls: Calls) -> None:
    index = {"type": "ttl", "fields": ["at"], "expireAfter": 0}
    calls("POST", "/_api/index?collection=c", index, expect=201)
    calls("POST", "/_api/document/c", {"_key": "held", "at": 1}, expect=202)
    id = begun(calls, write="c")
    calls("PATCH", "/_api/document/c/held", {"x": 1}, expect=202, x_arango_trx_id=id)
    calls.clock.pass_s(31)
    calls("GET", "/_api/document/c/held", expect=200)

    calls("PUT", f"/_api/transaction/{id}", expect=200)
    calls.clock.pass_s(31)

    assert calls.error("GET", "/_api/document/c/held") == (404, 1202)


def test_import_says_what_became_of_each_document(calls: Calls) -> None:
    lines = b'["_key","n"]\n["k0",1]\n["new",2]\n["short"]\n'
    path = "/_api/import?collection=c&onDuplicate=update&details=true"
    counted = calls("POST", path, lines, expect=201)
    assert (counted["created"], counted["updated"], counted["errors"]) == (1, 1, 1)
    assert len(counted["details"]) == 1

    body = json.dumps([{"_key": "x"}, {"_key": "k1"}]).encode()
    failed = "/_api/import?collection=c&type=array&complete=1"
    assert calls.error("POST", failed, body) == (409, 1210)
    assert calls.error("GET", "/_api/document/c/x") == (404, 1202)


@pytest.mark.parametrize("unique", [False, True])
def test_a_transaction_may_remove_a_document_and_insert_it_anew(unique: bool) -> None:
    calls = Calls()
    filled(calls, "c", [{"_key": "k", "n": 0}, {"_key": "z", "n": 9}])
    index = {"type": "persistent", "fields": ["n"], "unique": unique}
    calls("POST", "/_api/index?collection=c", index, expect=201)
    body = {"collections": {"write": ["c"]}}
    trx = calls("POST", "/_api/transaction/begin", body, expect=201)["result"]["id"]
    more = {"x_arango_trx_id": trx}
    calls("DELETE", "/_api/document/c/k", expect=202, **more)
    calls("POST", "/_api/document/c", {"_key": "k", "n": 1}, expect=202, **more)
    calls("PUT", f"/_api/transaction/{trx}", expect=200)

    rows = calls.rows("FOR d IN c FILTER d.n < 5 RETURN [d._key, d.n]")
    assert rows == [["k", 1]]
    calls("DELETE", "/_api/document/c/k", expect=202)
    assert calls.rows("FOR d IN c FILTER d.n < 5 RETURN d") == []
