"""The scheduler's own kinds of query, and the indexes they must use."""

from __future__ import annotations

import pytest

from region_scheduler.embedded.arango.aql import compile_query
from region_scheduler.embedded.arango.errors import ArangoError
from tests.unit.embedded.aql.memory import MemorySession

READY = """
FOR t IN tasks
  FILTER t.region == @region AND t.state IN @states
  SORT t.priority DESC, t.seq
  LIMIT @k
  RETURN t
"""
UNLOCKS = """
WITH tasks
FOR v IN 1..1 OUTBOUND @id dependencies
  FILTER v.state == "pending"
  LET before = (FOR p IN 1..1 INBOUND v dependencies RETURN {id: p._id, state: p.state})
  FILTER LENGTH(before) == v.needs AND before[*].state ALL IN ["done", "skipped"]
  RETURN {task: v, before}
"""
BLOCKS = """
WITH tasks
FOR v, e, p IN 1..@depth OUTBOUND @id dependencies
  OPTIONS {order: "bfs", uniqueVertices: "global"}
  RETURN v
"""
CLAIM = """
FOR d IN @docs
  UPDATE {_key: d._key, _rev: d._rev} WITH {state: d.state} IN tasks
  OPTIONS {ignoreRevs: false}
  RETURN NEW
"""


@pytest.fixture
def session() -> MemorySession:
    session = MemorySession(is_cluster=True)
    tasks = [
        {"_key": "a", "region": "eu", "state": "done", "priority": 1, "seq": 1, "needs": 0},
        {"_key": "b", "region": "eu", "state": "skipped", "priority": 1, "seq": 2, "needs": 0},
        {"_key": "c", "region": "eu", "state": "pending", "priority": 2, "seq": 3, "needs": 2},
        {"_key": "d", "region": "us", "state": "pending", "priority": 9, "seq": 4, "needs": 2},
        {"_key": "e", "region": "eu", "state": "ready", "priority": 1, "seq": 5, "needs": 0},
        {"_key": "f", "region": "eu", "state": "ready", "priority": 1, "seq": 4, "needs": 0},
    ]
    edges = [("a", "c"), ("b", "c"), ("a", "d"), ("c", "d")]
    session.create("tasks", tasks)
    session.create(
        "dependencies",
        [{"_from": f"tasks/{one}", "_to": f"tasks/{two}"} for one, two in edges],
        is_edge=True,
    )
    return session


def test_the_ready_query_uses_the_index_and_sorts_the_rest(session: MemorySession) -> None:
    index = session.collection("tasks").add_index("region", "state")

    result = compile_query(READY).execute(
        session, {"region": "eu", "states": ["ready", "pending"], "k": 2}
    )

    assert [row["_key"] for row in result.rows] == ["c", "f"]
    assert index.lookup_count == 2
    assert result.statistics.scanned_full == 0
    assert result.statistics.scanned_index == 3


def test_the_ready_query_scans_without_an_index(session: MemorySession) -> None:
    result = compile_query(READY).execute(session, {"region": "us", "states": ["pending"], "k": 5})

    assert [row["_key"] for row in result.rows] == ["d"]
    assert result.statistics.scanned_full == 6


def test_what_a_completion_unlocks_is_found(session: MemorySession) -> None:
    result = compile_query(UNLOCKS).execute(session, {"id": "tasks/a"})

    (row,) = result.rows
    assert row["task"]["_key"] == "c"
    assert sorted(p["id"] for p in row["before"]) == ["tasks/a", "tasks/b"]


def test_the_transitive_closure_is_found(session: MemorySession) -> None:
    result = compile_query(BLOCKS).execute(session, {"id": "tasks/a", "depth": 100})

    assert sorted(row["_key"] for row in result.rows) == ["c", "d"]


def test_seven_thousand_steps_need_no_stack() -> None:
    session = MemorySession()
    session.create("tasks", [{"_key": str(n)} for n in range(7001)])
    session.create(
        "dependencies",
        [{"_from": f"tasks/{n}", "_to": f"tasks/{n + 1}"} for n in range(7000)],
        is_edge=True,
    )
    for options in ('{order: "bfs", uniqueVertices: "global"}', "{}", '{uniqueVertices: "path"}'):
        query = compile_query(
            f"FOR v IN 1..7000 OUTBOUND 'tasks/0' dependencies OPTIONS {options} RETURN v._key"
        )

        assert query.execute(session).rows[-1] == "7000"


def test_a_claim_needs_the_revision(session: MemorySession) -> None:
    document = session.collection("tasks").get("e")
    assert document is not None
    claim = {"_key": "e", "_rev": document["_rev"], "state": "claimed"}

    (new,) = compile_query(CLAIM).execute(session, {"docs": [claim]}).rows
    assert new["state"] == "claimed"

    with pytest.raises(ArangoError) as failure:
        compile_query(CLAIM).execute(session, {"docs": [claim]})
    assert failure.value.number == 1200


def test_a_cluster_needs_with(session: MemorySession) -> None:
    with pytest.raises(ArangoError) as failure:
        compile_query("FOR v IN 1..1 OUTBOUND 'tasks/a' dependencies RETURN v").execute(session)
    assert failure.value.number == 1521
