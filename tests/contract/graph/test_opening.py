"""Opening a graph makes what is missing, once, whoever else does the same at the same time."""

from __future__ import annotations

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from region_scheduler.drivers.arango.graph import ArangoGraph, Place, open_graph
from region_scheduler.drivers.arango.schema import INDEXES, Replication
from region_scheduler.errors import Misconfigured, Unavailable
from region_scheduler.ports.records import GraphStores
from tests.contract.graph.samples import a_run, put
from tests.contract.graph.scripted_server import answering, raw_answer, serving
from tests.engines import EngineOverHTTP, GraphServer


def shown(graph: ArangoGraph) -> dict[str, set[tuple[str, ...]]]:
    """Return the persistent indexes of each collection."""
    found: dict[str, set[tuple[str, ...]]] = {}
    collections: Any = graph.db.collections()
    for name in (c["name"] for c in collections if not c["system"]):
        indexes: Any = graph.db.collection(name).indexes()
        found[name] = {tuple(i["fields"]) for i in indexes if i["type"] == "persistent"}
    return found


def as_the_core_sees_it(graph: ArangoGraph) -> GraphStores:
    """Have the type checker compare driver and port."""
    return graph


def test_all_collections_and_indexes_are_there(graph: ArangoGraph) -> None:
    assert shown(graph) == {name: set(indexes) for name, indexes in INDEXES.items()}
    properties: Any = graph.db.collection("tasks").properties()
    assert properties["sync"] is True
    edges: Any = graph.db.collection("dependencies").properties()
    assert edges["edge"] is True


def test_no_index_is_unique(graph: ArangoGraph) -> None:
    """A cluster enforces uniqueness on the shard key only."""
    for name in INDEXES:
        indexes: Any = graph.db.collection(name).indexes()
        assert [i for i in indexes if i["unique"] and i["type"] == "persistent"] == []


def test_opening_again_keeps_what_is_there(server: GraphServer, graph: ArangoGraph) -> None:
    put(graph, "runs", [a_run()])

    assert len(server.open().runs.recent(5)) == 1


def test_what_a_crash_left_half_made_is_completed(server: GraphServer) -> None:
    graph = server.open(database="half")
    graph.db.delete_collection("slots")
    graph.db.collection("schema").truncate()
    again = server.open(database="half")

    assert shown(again) == {name: set(indexes) for name, indexes in INDEXES.items()}


def test_several_may_open_a_new_graph_at_once(server: GraphServer) -> None:
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(lambda n: server.open(database="crowd"), range(4)))

    for graph in opened:
        assert shown(graph) == {name: set(indexes) for name, indexes in INDEXES.items()}


def test_a_wrong_password_is_for_the_operator() -> None:
    body = b'{"error":true,"code":401,"errorNum":11,"errorMessage":"not authorized"}'
    refusing = answering(raw_answer(body, "401 Unauthorized"))
    with serving(refusing) as server, pytest.raises(Misconfigured, match="not authorized"):
        open_graph(Place(urls=(server.url,)))


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with pytest.raises(Unavailable):
        open_graph(Place(urls=(f"http://127.0.0.1:{port}",)))


def test_what_could_not_be_reached_is_refused_at_once() -> None:
    with pytest.raises(Misconfigured) as refused:
        Place(urls=("localhost:8529",), database="no/such name")
    assert len(refused.value.problems) == 2
    with pytest.raises(Misconfigured):
        Place(urls=())
    assert "secret" not in repr(Place(password="secret"))


@pytest.mark.parametrize("is_one_shard", [True, False])
def test_a_database_is_spread_as_told(is_one_shard: bool) -> None:
    server = EngineOverHTTP()
    replication = Replication(
        factor=3, write_concern=2, shards=1 if is_one_shard else 3, is_one_shard=is_one_shard
    )
    try:
        graph = open_graph(Place(urls=(server.url(),), database="spread", replication=replication))
        properties: Any = graph.db.collection("tasks").properties()
        assert properties["shard_count"] == replication.shards
        if not is_one_shard:
            assert (properties["replication_factor"], properties["write_concern"]) == (3, 2)
        put(graph, "runs", [a_run()])
        graph.close()
    finally:
        server.close()


def test_another_coordinator_is_taken_when_one_is_gone() -> None:
    server, other = EngineOverHTTP(), EngineOverHTTP()
    with socket.create_server(("127.0.0.1", 0)) as unused:
        gone = f"http://127.0.0.1:{unused.getsockname()[1]}"
    try:
        open_graph(Place(urls=(other.url(),))).close()
        graph = open_graph(Place(urls=(gone, server.url(), other.url())))
        put(graph, "runs", [a_run()])
        server.close()
        with pytest.raises(Unavailable):
            graph.runs.read(["run1"])

        assert graph.runs.read(["run1"]) == [None]
        graph.close()
    finally:
        other.close()
        server.close()


def test_a_forked_child_opens_connections_of_its_own(
    server: GraphServer, graph: ArangoGraph
) -> None:
    put(graph, "runs", [a_run()])
    child = os.fork()
    if child == 0:
        is_seen = False
        try:
            is_seen = len(graph.runs.recent(5)) == 1
        finally:
            os._exit(0 if is_seen else 1)
    answers = [len(graph.runs.recent(5)) for _ in range(20)]
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert answers == [1] * 20
