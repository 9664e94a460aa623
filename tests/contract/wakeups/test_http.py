"""Wake-ups across regions, on a real HTTP server."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from region_scheduler.drivers.http.wakeups import CompositeWakeUps, HttpWakeUps
from region_scheduler.runtime.signing import SIGNATURE_HEADER, WAKE, WAKE_PATH, is_signed
from tests.services import eventually, free_port

KEY = b"a key of this test only"


class Api(ThreadingHTTPServer):
    """What a region's API does with a wake-up, and whom it woke."""

    def __init__(self, delay_s: float = 0) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.delay_s = delay_s
        self.woken: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Api

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        time.sleep(self.server.delay_s)
        signature = self.headers[SIGNATURE_HEADER]
        is_ours = self.path == WAKE_PATH and is_signed(KEY, WAKE, body, signature)
        if is_ours:
            self.server.woken.append(json.loads(body)["region"])
        self.send_response(204 if is_ours else 401)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        pass


class Recorded:
    def __init__(self) -> None:
        self.regions: list[str] = []

    def wake(self, region: str) -> None:
        self.regions.append(region)


@contextmanager
def api(delay_s: float = 0) -> Iterator[Api]:
    server = Api(delay_s)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_peer_is_woken_by_a_signed_request() -> None:
    with api() as peer:
        wakeups = HttpWakeUps({"us-east": peer.url}, KEY)
        wakeups.wake("us-east")
        eventually(lambda: peer.woken)
        wakeups.close()

        assert peer.woken == ["us-east"]


def test_a_peer_with_another_key_is_not_woken_and_nobody_is_told() -> None:
    with api() as peer:
        wakeups = HttpWakeUps({"us-east": peer.url}, b"another key")
        wakeups.wake("us-east")
        wakeups.close()

        assert peer.woken == []


def test_waking_does_not_block_and_many_wake_ups_become_few() -> None:
    with api(delay_s=0.2) as slow, api() as quick:
        peers = {"us-east": slow.url, "ap-south": quick.url}
        wakeups = HttpWakeUps(peers, KEY)
        started = time.perf_counter()
        for _ in range(1000):
            wakeups.wake("us-east")
        wakeups.wake("ap-south")
        assert time.perf_counter() - started < 0.2

        eventually(lambda: quick.woken, timeout_s=5)
        eventually(lambda: slow.woken, timeout_s=5)
        wakeups.close()

        assert 1 <= len(slow.woken) <= 2


def test_a_peer_that_is_gone_or_unknown_costs_nothing() -> None:
    wakeups = HttpWakeUps({"us-east": f"http://127.0.0.1:{free_port()}", "x": "not a url"}, KEY)
    for region in ("us-east", "x", "nobody"):
        wakeups.wake(region)
    wakeups.close()


def test_the_own_region_goes_by_the_broker_and_others_by_http() -> None:
    own, others = Recorded(), Recorded()
    wakeups = CompositeWakeUps("eu-west", own, others)

    for region in ("eu-west", "us-east", "ap-south", "eu-west"):
        wakeups.wake(region)

    assert own.regions == ["eu-west", "eu-west"]
    assert others.regions == ["us-east", "ap-south"]
