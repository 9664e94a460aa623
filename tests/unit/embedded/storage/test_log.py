from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from region_scheduler.embedded.arango.session import WriteOptions
from region_scheduler.embedded.arango.storage.log import LogDamaged, LogFailed, SqliteLog
from region_scheduler.embedded.arango.storage.revision import read
from region_scheduler.embedded.arango.storage.store import Store
from tests.unit.embedded.storage.stores import make_collection, make_store

OPTIONS = WriteOptions()


def write(store: Store, *bodies: dict[str, Any]) -> None:
    transaction = store.begin(store.catalog.database("_system"))
    for body in bodies:
        transaction.collection("c").insert(body, WriteOptions(overwrite_mode="replace"))
    store.finish(transaction.commit())


def content(store: Store) -> list[tuple[str, Any]]:
    access = store.begin(store.catalog.database("_system")).collection("c")
    return [(document["_key"], document.get("n")) for document in access.scan()]


def test_what_was_flushed_is_there_again_in_its_order_with_its_indexes(tmp_path: Path) -> None:
    store = make_store(SqliteLog(tmp_path))
    make_collection(store, "c", {"fields": ["n"], "unique": True}, keyOptions={"allowUserKeys": 1})
    make_collection(store, "e", type=3)
    write(store, *({"_key": f"k{n}", "n": n} for n in range(10)))
    write(store, {"_key": "k3", "n": 33}, {"_key": "k0", "n": 100})
    transaction = store.begin(store.catalog.database("_system"))
    transaction.collection("c").remove({"_key": "k5"}, OPTIONS)
    transaction.collection("e").insert({"_from": "c/k1", "_to": "c/k2"}, OPTIONS)
    store.finish(transaction.commit())
    before = content(store)
    store.close()

    again = make_store(SqliteLog(tmp_path))

    assert content(again) == before
    now = again.begin(again.catalog.database("_system"))
    (by_n,) = (i for i in now.collection("c").indexes if i.type == "persistent")
    assert by_n.is_unique
    assert [d["_key"] for d in by_n.lookup([33])] == ["k3"]
    assert len(now.collection("e").edges("c/k1", "outbound")) == 1
    again.close()


def test_nothing_of_a_process_that_ended_is_handed_out_again(tmp_path: Path) -> None:
    store = make_store(SqliteLog(tmp_path))
    make_collection(store, "c")
    write(store, {})
    (key, _) = content(store)[0]
    transaction = store.begin(store.catalog.database("_system"))
    gone = transaction.collection("c").remove({"_key": key}, OPTIONS)
    store.finish(transaction.commit())
    store.close()

    again = make_store(SqliteLog(tmp_path))
    write(again, {})

    (new_key, _) = content(again)[0]
    document = again.begin(again.catalog.database("_system")).collection("c").get(new_key)
    assert document is not None
    assert int(new_key) > int(key)
    assert read(document["_rev"]) > read(gone["_rev"])
    again.close()


def test_dropped_collections_indexes_and_databases_leave_nothing(tmp_path: Path) -> None:
    store = make_store(SqliteLog(tmp_path))
    _, collection = make_collection(store, "c", {"fields": ["n"]})
    write(store, *({"n": n} for n in range(100)))
    other = store.catalog.create_database("other", {})
    store.catalog.drop_collection(store.catalog.database("_system"), collection)
    store.catalog.drop_database(other.name)
    store.close()

    with closing(sqlite3.connect(tmp_path / "engine.sqlite")) as raw:
        assert raw.execute("SELECT count(*) FROM documents").fetchone() == (0,)
        kinds = dict(raw.execute("SELECT kind, count(*) FROM catalog GROUP BY kind"))
    assert kinds.keys() == {"database", "collection"}
    assert kinds["database"] == 1


def test_a_compaction_gives_the_space_of_removed_documents_back(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path)
    store = make_store(log)
    make_collection(store, "c")
    write(store, *({"_key": f"k{n}", "text": "x" * 1000} for n in range(3000)))
    store.flush()
    transaction = store.begin(store.catalog.database("_system"))
    for n in range(2990):
        transaction.collection("c").remove({"_key": f"k{n}"}, OPTIONS)
    store.finish(transaction.commit())
    store.flush()
    before = log.size_bytes()

    log.compact()

    assert log.size_bytes() < before / 5
    assert len(content(store)) == 10
    store.close()
    again = make_store(SqliteLog(tmp_path))
    assert len(content(again)) == 10
    again.close()


def test_only_a_forced_flush_waits_for_the_disk(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path)
    store = make_store(log)
    make_collection(store, "c")
    store.flush()
    said: list[str] = []
    log._connection.set_trace_callback(said.append)
    write(store, {"_key": "k", "n": 1})
    store.flush()
    assert not any("synchronous" in statement for statement in said)
    write(store, {"_key": "k", "n": 2})
    log.force()
    store.flush()
    full, back = (said.index(f"PRAGMA synchronous={mode}") for mode in ("FULL", "NORMAL"))
    assert any("documents" in statement for statement in said[full:back])
    write(store, {"_key": "k", "n": 3})
    store.flush()
    assert said.count("PRAGMA synchronous=FULL") == 1
    store.close()


def test_a_second_process_is_kept_out(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path)
    with pytest.raises(LogDamaged, match="in use by another process"):
        SqliteLog(tmp_path)
    log.close()
    SqliteLog(tmp_path).close()


def test_data_of_another_version_are_refused(tmp_path: Path) -> None:
    SqliteLog(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "engine.sqlite")) as raw:
        raw.execute("PRAGMA user_version=99")
    with pytest.raises(LogDamaged, match="schema version 99"):
        SqliteLog(tmp_path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE documents SET body = x'7B22'",
        "UPDATE documents SET collection = 5",
        "UPDATE catalog SET body = x'7B7D' WHERE kind = 'collection'",
        "DELETE FROM catalog WHERE kind = 'database'",
    ],
)
def test_content_that_is_not_ours_is_refused(tmp_path: Path, statement: str) -> None:
    store = make_store(SqliteLog(tmp_path))
    make_collection(store, "c")
    write(store, {"_key": "k"})
    store.close()
    with closing(sqlite3.connect(tmp_path / "engine.sqlite")) as raw:
        raw.execute(statement)
        raw.commit()

    log = SqliteLog(tmp_path)
    with pytest.raises(LogDamaged, match="damaged"):
        make_store(log)
    log.close()


def test_a_log_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path)
    store = make_store(log)
    make_collection(store, "c")
    store.flush()
    log.limit_pages(1)
    write(store, *({"text": "x" * 1000} for _ in range(1000)))

    with pytest.raises(LogFailed, match="full"):
        store.flush()


def test_documents_are_decoded_again_after_the_cache_was_dropped() -> None:
    store = make_store(cache_bytes=2000)
    make_collection(store, "c", {"fields": ["n"]})
    write(store, *({"_key": f"k{n}", "n": n, "text": "x" * 200} for n in range(50)))

    assert content(store) == [(f"k{n}", n) for n in range(50)]
    assert content(store) == [(f"k{n}", n) for n in range(50)]
    write(store, {"_key": "k7", "n": 77})
    assert dict(content(store))["k7"] == 77
