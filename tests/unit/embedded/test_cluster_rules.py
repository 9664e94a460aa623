"""What a cluster refuses or does differently, by the switch."""

from __future__ import annotations

import pytest

from tests.unit.embedded.calls import Calls, filled


@pytest.fixture
def cluster() -> Calls:
    return Calls(is_cluster=True)


@pytest.fixture
def single() -> Calls:
    return Calls(is_cluster=False)


def test_a_unique_index_needs_the_shard_key(cluster: Calls, single: Calls) -> None:
    index = {"type": "persistent", "fields": ["u"], "unique": True}
    for calls in (cluster, single):
        filled(calls, "c", [])
    assert cluster.error("POST", "/_api/index?collection=c", index) == (501, 1470)
    cluster("POST", "/_api/index?collection=c", {**index, "fields": ["u", "_key"]}, expect=201)
    single("POST", "/_api/index?collection=c", index, expect=201)


def test_a_database_in_one_shard_has_no_such_limit(cluster: Calls) -> None:
    body = {"name": "one", "options": {"sharding": "single"}}
    cluster("POST", "/_api/database", body, expect=201)
    cluster("POST", "/_db/one/_api/collection", {"name": "c"}, expect=200)
    index = {"type": "persistent", "fields": ["u"], "unique": True}
    cluster("POST", "/_db/one/_api/index?collection=c", index, expect=201)


def test_a_collection_keeps_its_name(cluster: Calls, single: Calls) -> None:
    for calls in (cluster, single):
        filled(calls, "c", [{"_key": "k"}])
    path = "/_api/collection/c/rename"
    assert cluster.error("PUT", path, {"name": "d"}) == (501, 1470)
    single("PUT", path, {"name": "d"}, expect=200)
    assert single("GET", "/_api/document/d/k", expect=200)["_id"] == "d/k"
    assert single.rows("RETURN DOCUMENT('d/k')._id") == ["d/k"]


def test_a_failed_query_may_leave_writes_on_other_shards(cluster: Calls, single: Calls) -> None:
    query = {"query": "FOR i IN 0..29 INSERT {_key: CONCAT('k', i)} INTO c"}
    counts = []
    for calls in (cluster, single):
        filled(calls, "c", [{"_key": "k20"}], numberOfShards=3)
        assert calls.error("POST", "/_api/cursor", query) == (409, 1210)
        counts.append(calls("GET", "/_api/collection/c/count", expect=200)["count"])
        collection = calls.engine.store.catalog.database("_system").collection("c")
        failed = collection.shard_of("k20")
        left = {collection.shard_of(record.key) for record in collection.records()}
        assert (left == {failed}) is (calls is single)
    assert 1 < counts[0] < 21
    assert counts[1] == 1


def test_a_traversal_names_its_collections(cluster: Calls, single: Calls) -> None:
    for calls in (cluster, single):
        filled(calls, "v", [{"_key": "a"}, {"_key": "b"}])
        filled(calls, "e", [{"_from": "v/a", "_to": "v/b"}], type=3)
    query = "FOR x IN 1..1 OUTBOUND 'v/a' e RETURN x._key"
    assert single.rows(query) == ["b"]
    assert cluster.error("POST", "/_api/cursor", {"query": query}) == (400, 1521)
    assert cluster.rows(f"WITH v {query}") == ["b"]


def test_shard_keys_do_not_change(cluster: Calls) -> None:
    body = {"name": "c", "shardKeys": ["tenant"], "numberOfShards": 3}
    cluster("POST", "/_api/collection", body, expect=200)
    key = cluster("POST", "/_api/document/c", {"tenant": "a"}, expect=202)["_key"]
    assert cluster.error("POST", "/_api/document/c", {"_key": "mine"}) == (400, 1466)
    assert cluster.error("PATCH", f"/_api/document/c/{key}", {"tenant": "b"}) == (400, 1469)
    cluster("PATCH", f"/_api/document/c/{key}", {"n": 1}, expect=202)


def test_properties_show_shards_in_a_cluster_only(cluster: Calls, single: Calls) -> None:
    for calls in (cluster, single):
        filled(calls, "c", [], numberOfShards=4, replicationFactor=3, writeConcern=2)
        shown = calls("GET", "/_api/collection/c/properties", expect=200)
        assert ("numberOfShards" in shown) is (calls is cluster)
    assert (shown["writeConcern"], "replicationFactor" in shown) == (2, False)
    shown = cluster("GET", "/_api/collection/c/properties", expect=200)
    assert (shown["numberOfShards"], shown["replicationFactor"], shown["shardKeys"]) == (
        4,
        3,
        ["_key"],
    )
    assert cluster("GET", "/_admin/server/role", expect=200)["role"] == "COORDINATOR"
    assert single("GET", "/_admin/server/role", expect=200)["role"] == "SINGLE"
