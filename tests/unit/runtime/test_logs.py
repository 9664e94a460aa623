from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from region_scheduler.runtime.logs import set_up_logging

SECRET = "hunter2-hunter2"


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_stream_that_is_no_terminal_gets_one_json_object_a_line() -> None:
    stream = io.StringIO()
    set_up_logging(stream=stream, region="eu-west", role="scheduler")

    structlog.get_logger().info("task claimed", task="tasks/1", name="\ud800 ä")
    logging.getLogger("celery.worker").warning("broker %s is gone", "x")
    logging.getLogger("celery.worker").info("not heard")

    ours, theirs = lines(stream)
    assert ours["event"] == "task claimed"
    assert (ours["task"], ours["region"], ours["role"]) == ("tasks/1", "eu-west", "scheduler")
    assert ours["level"] == "info"
    assert theirs["event"] == "broker x is gone"
    assert theirs["region"] == "eu-west"


def test_a_terminal_gets_text() -> None:
    stream = io.StringIO()
    set_up_logging(stream=stream, is_human=True)

    structlog.get_logger().info("task claimed", task="tasks/1")

    assert "task claimed" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


@pytest.mark.parametrize("is_human", [True, False])
def test_secrets_are_hidden_wherever_they_stand(is_human: bool) -> None:
    stream = io.StringIO()
    set_up_logging(stream=stream, is_human=is_human)

    structlog.get_logger().warning(
        "cannot connect",
        password=SECRET,
        settings={"arango": {"signing_key": SECRET, "url": f"http://me:{SECRET}@host/db"}},
        headers=[{"Authorization": SECRET}],
        url=f"redis://:{SECRET}@localhost",
    )

    assert SECRET not in stream.getvalue()
    assert "***" in stream.getvalue()


def test_a_traceback_for_machines_is_filtered_too() -> None:
    stream = io.StringIO()
    set_up_logging(stream=stream)

    try:
        raise OSError(f"no route to redis://:{SECRET}@localhost/0")
    except OSError:
        structlog.get_logger().exception("failed")

    (line,) = lines(stream)
    assert "OSError" in line["exception"]
    assert SECRET not in stream.getvalue()
