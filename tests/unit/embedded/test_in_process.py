"""python-arango on the engine without a socket, with and without faults."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import requests
from arango.client import ArangoClient
from arango.database import StandardDatabase
from arango.exceptions import DocumentRevisionError, DocumentUpdateError

from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.embedded.arango.faults import Fault, FaultKind
from region_scheduler.embedded.arango.in_process import InProcessHTTPClient


class Waits:
    """Notes how long was waited instead of waiting."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(is_cluster=True, regions=("eu", "us"), seed=3)
    yield engine
    engine.close()


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def database(engine: Engine, waits: Waits) -> StandardDatabase:
    http_client = InProcessHTTPClient(engine, "us", timeout_s=9.0, sleep=waits)
    client = ArangoClient("http://us", http_client=http_client, resolver_max_tries=1)
    database = client.db("_system", "root", "", verify=True)
    database.create_collection("c")
    database.collection("c").insert({"_key": "k", "n": 0})
    return database


def inject(engine: Engine, kind: FaultKind, seconds: float = 0.0) -> None:
    FaultControl(engine).inject(Fault(kind, method="PATCH", times=1, seconds=seconds))


def number(engine: Engine) -> int:
    collection = engine.store.catalog.database("_system").collection("c")
    record = collection.record("k")
    assert record is not None
    n: int = collection.cache.document(record)["n"]
    return n


def update(database: StandardDatabase) -> None:
    database.collection("c").update({"_key": "k", "n": 1})


def test_the_driver_wins_and_loses_by_revision(database: StandardDatabase) -> None:
    collection = database.collection("c")
    seen = collection.get("k")
    assert isinstance(seen, dict)
    collection.update({**seen, "n": 1})
    with pytest.raises(DocumentRevisionError) as lost:
        collection.update({**seen, "n": 2})
    assert (lost.value.http_code, lost.value.error_code) == (412, 1200)
    results = collection.update_many([{**seen, "n": 2}], check_rev=True)
    assert isinstance(results, list)
    assert isinstance(results[0], DocumentRevisionError)


def test_what_was_not_sent_did_nothing(engine: Engine, database: StandardDatabase) -> None:
    inject(engine, FaultKind.NOT_SENT)
    with pytest.raises(ConnectionAbortedError):
        update(database)
    assert number(engine) == 0


def test_an_answer_that_was_dropped_was_applied(engine: Engine, database: StandardDatabase) -> None:
    inject(engine, FaultKind.ANSWER_DROPPED)
    with pytest.raises(ConnectionAbortedError):
        update(database)
    assert number(engine) == 1


def test_a_late_request_outlives_its_sender(
    engine: Engine, database: StandardDatabase, waits: Waits
) -> None:
    inject(engine, FaultKind.LATE, seconds=0.05)
    with pytest.raises(requests.exceptions.ReadTimeout):
        update(database)
    assert waits.seconds == [0.05]
    assert number(engine) == 0
    deadline = threading.Event()
    for _ in range(200):
        if number(engine) == 1:
            break
        deadline.wait(0.01)
        database.version()
    assert number(engine) == 1


def test_a_conflict_without_a_winner_is_409(engine: Engine, database: StandardDatabase) -> None:
    inject(engine, FaultKind.CONFLICT)
    with pytest.raises(DocumentUpdateError) as lost:
        update(database)
    assert (lost.value.http_code, lost.value.error_code) == (409, 1200)
    assert number(engine) == 0


def test_an_error_may_hide_that_it_was_applied(engine: Engine, database: StandardDatabase) -> None:
    rule = Fault(FaultKind.UNAVAILABLE, method="PATCH", times=1, is_applied=True)
    FaultControl(engine).inject(rule)
    with pytest.raises(DocumentUpdateError) as lost:
        update(database)
    assert (lost.value.http_code, lost.value.error_code) == (503, 1478)
    assert number(engine) == 1


def test_travel_delay_and_cuts_cost_their_time(
    engine: Engine, database: StandardDatabase, waits: Waits
) -> None:
    control = FaultControl(engine)
    control.set_rtt("us", 0.2)
    inject(engine, FaultKind.DELAY, seconds=1.0)
    update(database)
    assert waits.seconds == [pytest.approx(1.1), pytest.approx(0.1)]
    waits.seconds.clear()
    control.cut("us")
    with pytest.raises(requests.exceptions.ReadTimeout):
        update(database)
    assert waits.seconds == [9.0]


def test_a_delay_beyond_the_time_limit_is_a_request_that_arrives_late(
    engine: Engine, database: StandardDatabase, waits: Waits
) -> None:
    inject(engine, FaultKind.DELAY, seconds=9.5)
    with pytest.raises(requests.exceptions.ReadTimeout):
        update(database)
    assert waits.seconds == [9.0]
    assert number(engine) == 0
    assert len(engine._late) == 1


def test_threads_share_one_client(database: StandardDatabase) -> None:
    collection = database.collection("c")

    def add(worker: int) -> None:
        for n in range(50):
            collection.insert({"_key": f"{worker}-{n}"})
            while True:
                seen = collection.get("k")
                assert isinstance(seen, dict)
                try:
                    collection.update({**seen, "n": seen["n"] + 1})
                    break
                except DocumentRevisionError:
                    continue

    threads = [threading.Thread(target=add, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    final = collection.get("k")
    assert isinstance(final, dict)
    assert final["n"] == 200
    assert collection.count() == 201
