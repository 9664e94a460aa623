"""What every driver of `ports.backlog.Metadata` keeps."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, select

from region_scheduler.domain.ids import RunId, TaskId
from region_scheduler.drivers.sql.tables import task_metadata
from region_scheduler.errors import Unavailable
from region_scheduler.ports.backlog import Metadata, TaskRow

RUN = RunId("run")


def row(key: str, **changed: Any) -> TaskRow:
    values: dict[str, Any] = {
        "task": TaskId(f"tasks/{key}"),
        "run": RUN,
        "tenant": "acme",
        "name": key,
        "region": "eu-west",
        "state": "pending",
        "runner": "simulate",
        "pool": "default",
        "seq": 1,
        "priority": 0,
        "delay_tolerance_s": 1.0,
        "expected_s": 2.0,
        "remaining_s": 3.0,
        "cap_s": 4.0,
        "retry_limit": 3,
        "retries_used": 0,
        "losses_limit": 5,
        "losses": 1,
        "requirements": {"a": 1, "b": 2},
    }
    return TaskRow(**values | changed)


def test_states_are_counted_by_run(metadata: Metadata) -> None:
    metadata.record([row("a"), row("b"), row("c", state="done"), row("d", run=RunId("other"))])

    assert metadata.states(RUN) == {"pending": 2, "done": 1}
    assert metadata.states(RunId("nobody")) == {}
    assert metadata.count() == 4


def test_only_a_higher_seq_replaces(metadata: Metadata) -> None:
    metadata.record([row("a", seq=5, state="running")])
    metadata.record([row("a", seq=4, state="ready"), row("a", seq=5, state="claimed")])
    assert metadata.states(RUN) == {"running": 1}

    metadata.record([row("a", seq=6, state="done")])
    assert metadata.states(RUN) == {"done": 1}
    assert metadata.count() == 1


def test_a_row_is_stored_as_it_was_given(metadata: Metadata, engine: Engine) -> None:
    given = row(
        "a", name="ä \0 \ud800 \\0041", tenant="\\", requirements={"\0 ä": 3}, retries_used=2
    )

    metadata.record([given])

    with engine.connect() as connection:
        (found,) = connection.execute(select(task_metadata)).all()
    assert TaskRow(**found._mapping) == given


def test_a_batch_with_a_row_that_the_store_refuses_writes_nothing(metadata: Metadata) -> None:
    with pytest.raises(Unavailable):
        metadata.record([row("a"), row("b", region=None)])

    assert metadata.count() == 0


def test_a_row_is_removed_unless_its_seq_is_higher(metadata: Metadata) -> None:
    metadata.record([row("a", seq=3), row("b", seq=3), row("c", seq=3, run=RunId("other"))])

    metadata.remove([(TaskId("tasks/a"), 2), (TaskId("tasks/b"), 3), (TaskId("tasks/c"), 9)])
    metadata.remove([])

    assert metadata.marks(RUN) == {TaskId("tasks/a"): 3}
    assert metadata.marks(RunId("other")) == {}


def test_runs_are_found_by_the_states_of_their_rows(metadata: Metadata) -> None:
    metadata.record(
        [row("a"), row("b"), row("c", run=RunId("ended"), state="done"), row("d", state="ready")]
    )

    assert metadata.runs_in(["pending", "ready"]) == [RUN]
    assert metadata.runs_in(["done"]) == [RunId("ended")]
    assert metadata.runs_in([]) == []


def test_clear_drops_everything(metadata: Metadata) -> None:
    metadata.record([row("a", seq=9)])
    metadata.clear()
    assert metadata.count() == 0

    metadata.record([row("a", seq=1)])
    assert metadata.marks(RUN) == {TaskId("tasks/a"): 1}
