"""The HTTP client sends once, and knows how far a failed request has come."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from arango.response import Response

from region_scheduler.drivers.arango.errors import AnswerLost, NotSent
from region_scheduler.drivers.arango.http_client import Coordinators, KeepAliveHTTPClient
from tests.contract.graph.scripted_server import (
    answering,
    answering_once,
    dying_at_the_second,
    raw_answer,
    reset_unread,
    serving,
    silent,
)

At: TypeAlias = "Callable[..., Caller]"
OK = raw_answer(b'{"result":true}')


class Caller:
    def __init__(self, url: str, read_timeout_s: float = 5.0) -> None:
        self.failures = 0
        self.client = KeepAliveHTTPClient(1.0, read_timeout_s, self._failed)
        self.session: Any = self.client.create_session(url)
        self.url = url

    def _failed(self) -> None:
        self.failures += 1

    def body(self) -> bytes:
        raw: Any = self.send().raw_body
        assert isinstance(raw, bytes)
        return raw

    def send(self, data: bytes | str = b"[]", **more: Any) -> Response:
        return self.client.send_request(
            self.session, "patch", f"{self.url}/_db/x/_api/document/tasks", data=data, **more
        )


@pytest.fixture
def at() -> Iterator[At]:
    """Return callers of a url, all closed in the end."""
    callers: list[Caller] = []

    def made(url: str, **more: Any) -> Caller:
        callers.append(Caller(url, **more))
        return callers[-1]

    yield made
    for caller in callers:
        caller.session.close()


def test_requests_share_a_connection(at: At) -> None:
    with serving(answering(OK)) as server:
        caller = at(server.url)

        assert [caller.body() for _ in range(5)] == [b'{"result":true}'] * 5
        assert server.connection_count == 1


def test_a_request_carries_all_it_was_given(at: At) -> None:
    with serving(answering(OK)) as server:
        at(server.url).send(
            data='{"name":"Zürich"}',
            params={"onlyget": "1", "x": "a b"},
            headers={"x-arango-allow-dirty-read": "true"},
            auth=("root", "pässword"),
        )
        head, _, body = server.requests[0].partition(b"\r\n\r\n")

    lines = head.decode().split("\r\n")
    assert lines[0] == "PATCH /_db/x/_api/document/tasks?onlyget=1&x=a+b HTTP/1.1"
    assert "x-arango-allow-dirty-read: true" in lines
    assert "authorization: Basic cm9vdDpww6Rzc3dvcmQ=" in lines
    assert body.decode() == '{"name":"Zürich"}'


def test_headers_of_an_answer_are_found_in_any_case(at: At) -> None:
    with serving(answering(raw_answer(b"{}", headers=b"X-Arango-Error-Codes: {}\r\n"))) as server:
        headers = at(server.url).send().headers

    assert headers["x-arango-error-codes"] == headers["X-Arango-Error-Codes"] == "{}"
    assert "X-ARANGO-ERROR-CODES" in headers
    assert headers.get("etag") is None


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        raw_answer(b"{}"),
        b"HTTP/1.1 100 Continue\r\n\r\n" + raw_answer(b"{}"),
    ],
    ids=["chunked", "with a length", "after a continue"],
)
def test_an_answer_is_read_to_its_end(raw: bytes, at: At) -> None:
    with serving(answering(raw)) as server:
        caller = at(server.url)

        assert caller.body() == b"{}"
        assert caller.body() == b"{}"


def test_a_large_answer_comes_whole(at: At) -> None:
    body = b'"' + b"x" * 3_000_000 + b'"'
    with serving(answering(raw_answer(body))) as server:
        assert at(server.url).body() == body


def test_no_listener_means_not_sent(at: At) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    caller = at(f"http://127.0.0.1:{port}")

    with pytest.raises(NotSent):
        caller.send()
    assert caller.failures == 1


def test_a_request_that_was_not_written_to_its_end_was_not_sent(at: At) -> None:
    with serving(reset_unread) as server, pytest.raises(NotSent):
        at(server.url).send(data=b"x" * 50_000_000)


def test_a_connection_that_dies_after_the_request_loses_the_answer(at: At) -> None:
    with serving(answering_once(b"")) as server:
        caller = at(server.url)
        with pytest.raises(AnswerLost) as lost:
            caller.send()

        assert not lost.value.is_stale
        assert caller.failures == 1
        assert len(server.requests) == 1


def test_half_an_answer_is_a_lost_one(at: At) -> None:
    with serving(answering_once(OK[:-3])) as server, pytest.raises(AnswerLost) as lost:
        at(server.url).send()

    assert not lost.value.is_stale


def test_silence_is_a_lost_answer(at: At) -> None:
    with serving(silent) as server, pytest.raises(AnswerLost):
        at(server.url, read_timeout_s=0.2).send()


def test_what_is_no_http_is_a_lost_answer(at: At) -> None:
    with serving(answering_once(b"SSH-2.0-OpenSSH\r\n\r\n")) as server, pytest.raises(AnswerLost):
        at(server.url).send()


def test_a_used_connection_that_dies_unanswered_may_have_acted_and_is_called_stale(at: At) -> None:
    with serving(dying_at_the_second(OK), answering(OK)) as server:
        caller = at(server.url)
        caller.send()
        with pytest.raises(AnswerLost) as lost:
            caller.send()

        assert lost.value.is_stale
        assert len(server.requests) == 2
        assert caller.send().status_code == 200


def test_an_idle_connection_that_the_server_closed_is_not_used(at: At) -> None:
    with serving(answering_once(OK), answering(OK)) as server:
        caller = at(server.url)
        caller.send()
        _until_closed_by_peer(caller)

        assert caller.send().status_code == 200
        assert server.connection_count == 2
        assert caller.failures == 0


def test_a_server_that_says_close_is_believed(at: At) -> None:
    closing = raw_answer(b"{}", headers=b"Connection: Close\r\n")
    with serving(answering_once(closing), answering_once(closing)) as server:
        caller = at(server.url)

        assert [caller.send().status_code for _ in range(2)] == [200, 200]


def test_503_never_makes_the_driver_send_again(at: At) -> None:
    """An answer that says 503 twice would: the driver takes it for a broken connection."""
    body = b'{"error":true,"code":503,"errorNum": 503,"errorMessage":"service unavailable"}'
    with serving(answering(raw_answer(body, "503 Service Unavailable"))) as server:
        caller = at(server.url)
        with pytest.raises(AnswerLost):
            caller.send()

        assert len(server.requests) == 1


def test_other_errors_are_answers(at: At) -> None:
    body = b'{"error":true,"code":503,"errorNum":1478,"errorMessage":"backend unavailable"}'
    with serving(answering(raw_answer(body, "503 Service Unavailable"))) as server:
        assert at(server.url).send().status_code == 503


def test_another_coordinator_is_taken_after_a_failure_and_never_within_a_request() -> None:
    resolver = Coordinators(3)

    assert resolver.max_tries == 1
    assert resolver.get_host_index({0}) == 0
    resolver.failed()
    assert resolver.get_host_index() == 1
    resolver.failed()
    resolver.failed()
    assert resolver.get_host_index() == 0


def _until_closed_by_peer(caller: Caller) -> None:
    (idle,) = caller.session._idle
    idle._socket.settimeout(5)
    assert idle._socket.recv(1, socket.MSG_PEEK) == b""
