"""Depth is no limit: a chain of 7,000 tasks, and a wide join."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import Task
from region_scheduler.drivers.arango.graph import ArangoGraph
from tests.contract.graph.samples import put_graph
from tests.engines import GraphServer, empty
from tests.unit.domain.samples import RUN

LENGTH = 7_000
NAMES = [f"n{n:05}" for n in range(LENGTH)]
Chain = tuple[ArangoGraph, dict[str, Task]]


@pytest.fixture(scope="module")
def chain(server: GraphServer) -> Iterator[Chain]:
    graph = server.open(database="deep", read_timeout_s=30.0)
    empty(graph)
    yield graph, put_graph(graph, pairwise(NAMES), dict.fromkeys(NAMES, TaskState.PENDING))
    empty(graph)


def test_everything_after_the_first(chain: Chain) -> None:
    graph, tasks = chain
    found = graph.tasks.blocks(tasks[NAMES[0]].id)

    assert [(r.name, r.distance) for r in found] == list(
        zip(NAMES[1:], range(1, LENGTH), strict=True)
    )


def test_everything_before_the_last(chain: Chain) -> None:
    graph, tasks = chain
    found = graph.tasks.ancestors(tasks[NAMES[-1]].id)

    assert [r.name for r in found] == NAMES[-2::-1]
    assert found[-1].distance == LENGTH - 1


def test_order_and_frontier(chain: Chain) -> None:
    graph, _ = chain

    assert [(wave, r.name) for wave, r in graph.tasks.order(RUN)] == list(enumerate(NAMES))
    assert [u.task.spec.name for u in graph.tasks.ready(RUN, 10)] == NAMES[:1]
    assert graph.tasks.counts(RUN) == (LENGTH, LENGTH - 1)
    assert len(graph.tasks.of_run(RUN)) == LENGTH


def test_a_join_of_many_is_unlocked_by_the_last(graph: ArangoGraph) -> None:
    before = NAMES[:1_500]
    states = dict.fromkeys(before, TaskState.DONE)
    tasks = put_graph(
        graph, [(name, "join") for name in before], states | {"join": TaskState.PENDING}
    )
    (unlockable,) = graph.tasks.unlocked_by([tasks[before[0]].id])

    assert unlockable.task.id == tasks["join"].id
    assert len(unlockable.seen) == 1_500
