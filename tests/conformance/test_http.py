"""ArangoDB's own answers to HTTP requests, asked of the engine, in process and over its server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.embedded.arango.serving.server import Server
from tests.conformance.engine_sender import engine_sender
from tests.conformance.http_runner import Send, load_cases, load_own_cases, run_case
from tests.conformance.http_sender import http_sender
from tests.conformance.ratchet import known_misses, misses


def test_every_request_is_answered_as_arangodb_does_but_for_the_known_misses() -> None:
    found = misses(load_cases(), run_case, engine_sender())

    assert {name: found[name] for name in found if name not in known_misses("http")} == {}
    assert sorted(found) == sorted(known_misses("http")), "a known miss passes: take it off"


def test_the_server_answers_as_the_engine_in_process_does() -> None:
    with served() as send:
        found = misses([*load_cases(), *load_own_cases()], run_case, send)

    assert sorted(found) == sorted(known_misses("http"))


def test_the_cases_are_all_there() -> None:
    assert len({case["id"] for case in load_cases()}) >= 99


@contextmanager
def served() -> Iterator[Send]:
    """Serve a new engine on a thread of this process; yield a sender over one connection."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = Server(Engine(is_cluster=False, seed=1), "127.0.0.1", [0])
    [(_, port)] = asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
    running = asyncio.run_coroutine_threadsafe(server.run(), loop)
    try:
        with http_sender(f"http://127.0.0.1:{port}") as send:
            yield send
    finally:
        loop.call_soon_threadsafe(server.stop)
        running.result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
