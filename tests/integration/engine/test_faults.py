"""Lag, cuts and faults as a client over HTTP meets them."""

from __future__ import annotations

import http.client
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.engine.server import Client, EngineProcess

DIRTY = {"x-arango-allow-dirty-read": "true"}
PATH = "/_api/document/c/k"


@pytest.fixture
def engine(make_engine: Callable[..., EngineProcess], tmp_path: Path) -> Iterator[EngineProcess]:
    options = ("--fault-control", "--lag-ms", "300", "--rtt-ms", "40")
    engine = make_engine(tmp_path / "data", *options, regions="eu,us")
    engine.start()
    client = engine.client("eu")
    client("POST", "/_api/collection", {"name": "c"})
    client("POST", "/_api/document/c", {"_key": "k", "n": 0})
    yield engine
    assert engine.end() == 0


def number(client: Client, headers: dict[str, str] | None = None) -> Any:
    return client("GET", PATH, headers=headers)[1].get("n")


def inject(engine: EngineProcess, **rule: Any) -> None:
    assert engine.client("eu")("POST", "/_admin/faults", {"times": 1, **rule})[0] == 201


def eventually(holds: Callable[[], bool], within_s: float = 5.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_follower_lags_and_the_leader_is_a_round_trip_away(engine: EngineProcess) -> None:
    eu, us = engine.client("eu"), engine.client("us")
    eventually(lambda: number(us, DIRTY) == 0)
    eu("PATCH", PATH, {"n": 1})
    assert number(us, DIRTY) == 0
    asked_at = time.perf_counter()
    assert number(us) == 1
    assert time.perf_counter() - asked_at >= 0.04
    eventually(lambda: number(us, DIRTY) == 1)


def test_a_request_that_is_not_sent_breaks_the_connection_and_does_nothing(
    engine: EngineProcess,
) -> None:
    inject(engine, kind="not_sent", method="PATCH")
    with pytest.raises((http.client.HTTPException, OSError)):
        engine.client("eu")("PATCH", PATH, {"n": 1})
    assert number(engine.client("eu")) == 0


def test_an_answer_that_is_dropped_breaks_the_connection_and_was_applied(
    engine: EngineProcess,
) -> None:
    inject(engine, kind="answer_dropped", method="PATCH")
    with pytest.raises((http.client.HTTPException, OSError)):
        engine.client("eu")("PATCH", PATH, {"n": 1})
    assert number(engine.client("eu")) == 1


def test_a_late_request_is_applied_though_its_sender_is_gone(engine: EngineProcess) -> None:
    inject(engine, kind="late", method="PATCH", seconds=0.3)
    with pytest.raises((http.client.HTTPException, OSError)):
        engine.client("eu")("PATCH", PATH, {"n": 1})
    client = engine.client("eu")
    assert number(client) == 0
    eventually(lambda: number(client) == 1)


def test_answers_keep_their_order_though_one_is_delayed(engine: EngineProcess) -> None:
    inject(engine, kind="delay", method="PATCH", seconds=0.2)
    client = engine.client("eu")
    assert client("PATCH", PATH, {"n": 1})[1]["_oldRev"]
    assert number(client) == 1


def test_a_cut_region_answers_nothing_but_dirty_reads(engine: EngineProcess) -> None:
    eu, us = engine.client("eu"), engine.client("us")
    eventually(lambda: number(us, DIRTY) == 0)
    cut = {"is_cut": True, "is_refusing": True}
    assert eu("PATCH", "/_admin/faults/us", cut)[0] == 200
    status, refused = us("PATCH", PATH, {"n": 1})
    assert (status, refused["errorNum"]) == (503, 1478)
    assert us("GET", PATH, headers=DIRTY)[0] == 200
    assert us("GET", "/_api/version")[0] == 200
    assert eu("PATCH", "/_admin/faults/us", {"is_cut": False})[0] == 200
    assert us("PATCH", PATH, {"n": 2})[0] == 202


@pytest.mark.parametrize(
    ("kind", "status", "error", "is_applied"),
    [
        ("conflict", 409, 1200, False),
        ("read_only", 403, 1004, False),
        ("not_leader", 503, 1496, False),
        ("resigned", 421, 1491, False),
        ("resigned", 421, 1491, True),
        ("unavailable", 503, 1478, False),
        ("unavailable", 503, 1478, True),
        ("timed_out", 500, 1457, True),
    ],
)
def test_errors_of_a_cluster(
    engine: EngineProcess, kind: str, status: int, error: int, is_applied: bool
) -> None:
    inject(engine, kind=kind, method="PATCH", is_applied=is_applied)
    client = engine.client("eu")
    got, answer = client("PATCH", PATH, {"n": 1})
    assert (got, answer["errorNum"]) == (status, error)
    assert number(client) == int(is_applied)
    assert client("PATCH", PATH, {"n": 2})[0] == 202


def test_a_deposed_leader_still_answers_reads(engine: EngineProcess) -> None:
    eu, us = engine.client("eu"), engine.client("us")
    assert eu("PATCH", "/_admin/faults/us", {"is_deposed": True})[0] == 200
    assert us("PATCH", PATH, {"n": 1})[0] == 202
    assert (number(us), number(eu)) == (0, 1)
    assert eu("PATCH", "/_admin/faults/us", {"is_deposed": False})[0] == 200
    assert number(us) == 1


def test_an_older_state_comes_back_and_outlives_a_kill(engine: EngineProcess) -> None:
    client = engine.client("eu")
    before = client("GET", PATH)[1]
    point = client("POST", "/_admin/faults/points")[1]["number"]
    assert client("PATCH", PATH, {"n": 1})[0] == 202
    assert client("POST", "/_api/document/c", {"_key": "new"})[0] == 202
    assert client("PUT", f"/_admin/faults/points/{point}")[0] == 200
    assert engine.end(signal.SIGKILL) == -signal.SIGKILL
    engine.start()
    client = engine.client("eu")
    assert client("GET", PATH)[1] == before
    assert client("GET", "/_api/document/c/new")[0] == 404


def test_requests_may_be_pipelined(engine: EngineProcess) -> None:
    client = engine.client("eu")
    parts = [
        f"PATCH {PATH} HTTP/1.1\r\nauthorization: Basic cm9vdDo=\r\ncontent-length: 7\r\n\r\n"
        + f'{{"n":{n}}}'
        for n in range(1, 6)
    ]
    parts.append(f"GET {PATH} HTTP/1.1\r\nauthorization: Basic cm9vdDo=\r\n\r\n")
    answers = client.raw("".join(parts).encode(), b'"n":5')
    assert answers.count(b"HTTP/1.1 202 Accepted") == 5
    assert answers.count(b"HTTP/1.1 200 OK") == 1
    assert answers.rindex(b"202 Accepted") < answers.index(b"200 OK")


@pytest.mark.parametrize("text", [b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"])
def test_what_is_no_http_is_refused_and_harms_nobody(engine: EngineProcess, text: bytes) -> None:
    assert engine.client("eu").raw(text, b"\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert number(engine.client("eu")) == 0
