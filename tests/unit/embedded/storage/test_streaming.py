"""First come, first served among transactions."""

from __future__ import annotations

import pytest

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import WriteOptions
from region_scheduler.embedded.arango.storage.database import Database
from region_scheduler.embedded.arango.storage.store import Store
from region_scheduler.embedded.arango.storage.streaming import StreamTransaction
from tests.unit.embedded.storage.stores import make_collection, make_store

OPTIONS = WriteOptions()


@pytest.fixture
def store() -> Store:
    store = make_store()
    database, _ = make_collection(store, "c", {"fields": ["u"], "unique": True})
    transaction = store.begin(database)
    for n in range(3):
        transaction.collection("c").insert({"_key": f"k{n}", "u": n}, OPTIONS)
    store.finish(transaction.commit())
    return store


def database(store: Store) -> Database:
    return store.catalog.database("_system")


def stream(store: Store) -> StreamTransaction:
    return store.begin_stream(database(store), {"c": "write"}, may_read_all=True)


def fails(number: int, act: object, *arguments: object) -> None:
    assert callable(act)
    with pytest.raises(ArangoError) as caught:
        act(*arguments)
    assert caught.value.number == number


def update_now(store: Store, key: str, u: int) -> None:
    transaction = store.begin(database(store))
    transaction.collection("c").update({"_key": key, "u": u}, OPTIONS)
    store.finish(transaction.commit())


def test_the_second_writer_of_a_key_gets_1200_and_may_go_on(store: Store) -> None:
    one, two = stream(store), stream(store)
    one.collection("c").update({"_key": "k0", "x": 1}, OPTIONS)

    fails(1200, two.collection("c").update, {"_key": "k0", "x": 2}, OPTIONS)
    fails(1200, two.collection("c").remove, {"_key": "k0"}, OPTIONS)
    two.collection("c").update({"_key": "k1", "x": 2}, OPTIONS)

    store.end_stream(one, is_commit=True)
    store.end_stream(two, is_commit=True)
    now = store.begin(database(store)).collection("c")
    assert [d.get("x") for d in now.scan()] == [1, 2, None]


def test_a_single_request_loses_against_a_running_transaction(store: Store) -> None:
    one = stream(store)
    one.collection("c").update({"_key": "k0", "x": 1}, OPTIONS)

    fails(1200, update_now, store, "k0", 9)

    store.end_stream(one, is_commit=False)
    update_now(store, "k0", 9)


def test_what_changed_since_the_begin_cannot_be_written(store: Store) -> None:
    one = stream(store)
    update_now(store, "k0", 9)

    assert (one.collection("c").get("k0") or {})["u"] == 0
    fails(1200, one.collection("c").update, {"_key": "k0", "x": 1}, OPTIONS)


def test_a_key_that_was_inserted_since_the_begin_is_a_conflict(store: Store) -> None:
    one = stream(store)
    transaction = store.begin(database(store))
    transaction.collection("c").insert({"_key": "new", "u": 7}, OPTIONS)
    store.finish(transaction.commit())

    assert one.collection("c").get("new") is None
    fails(1200, one.collection("c").insert, {"_key": "new", "u": 8}, OPTIONS)


def test_unique_values_are_taken_within_a_transaction_and_between_them(store: Store) -> None:
    one, two = stream(store), stream(store)
    one.collection("c").insert({"_key": "a", "u": 10}, OPTIONS)

    fails(1210, one.collection("c").insert, {"_key": "b", "u": 10}, OPTIONS)
    fails(1210, one.collection("c").insert, {"_key": "b", "u": 1}, OPTIONS)
    fails(1200, two.collection("c").insert, {"_key": "b", "u": 10}, OPTIONS)
    fails(1200, update_now, store, "k2", 10)


def test_a_value_that_the_transaction_itself_freed_may_be_taken(store: Store) -> None:
    one = stream(store)
    one.collection("c").update({"_key": "k0", "u": 20}, OPTIONS)
    one.collection("c").insert({"_key": "a", "u": 0}, OPTIONS)
    store.end_stream(one, is_commit=True)

    now = store.begin(database(store)).collection("c")
    (by_u,) = (i for i in now.indexes if i.type == "persistent")
    assert [d["_key"] for d in by_u.lookup([0])] == ["a"]
    assert [d["_key"] for d in by_u.lookup([20])] == ["k0"]


def test_a_unique_value_that_was_taken_since_the_begin_is_a_conflict(store: Store) -> None:
    one = stream(store)
    update_now(store, "k0", 30)

    fails(1200, one.collection("c").insert, {"_key": "a", "u": 30}, OPTIONS)


def test_an_undo_frees_nothing_but_forgets_the_write(store: Store) -> None:
    one = stream(store)
    mark = one.savepoint()
    one.collection("c").update({"_key": "k0", "x": 1}, OPTIONS)
    one.collection("c").remove({"_key": "k1"}, OPTIONS)
    one.collection("c").insert({"_key": "a", "u": 40}, OPTIONS)

    one.rollback(mark)

    assert [d["_key"] for d in one.collection("c").scan()] == ["k0", "k1", "k2"]
    store.end_stream(one, is_commit=True)
    assert store.begin(database(store)).collection("c").count() == 3


def test_an_exclusive_collection_is_nobody_elses(store: Store) -> None:
    one = store.begin_stream(database(store), {"c": "exclusive"}, may_read_all=True)

    fails(18, stream, store)
    fails(18, update_now, store, "k0", 9)
    store.begin_stream(database(store), {"c": "read"}, may_read_all=True)

    store.end_stream(one, is_commit=False)
    writer = stream(store)
    fails(18, store.begin_stream, database(store), {"c": "exclusive"}, True)
    store.end_stream(writer, is_commit=False)
    store.begin_stream(database(store), {"c": "exclusive"}, may_read_all=True)


def test_undeclared_collections_are_refused(store: Store) -> None:
    make_collection(store, "other")
    strict = store.begin_stream(database(store), {"c": "read"}, may_read_all=False)

    fails(1652, strict.collection, "other")
    fails(1652, strict.collection("c").remove, {"_key": "k0"}, OPTIONS)
    lax = store.begin_stream(database(store), {"c": "write"}, may_read_all=True)
    assert lax.collection("other").count() == 0
    fails(1652, lax.collection("other").insert, {}, OPTIONS)
