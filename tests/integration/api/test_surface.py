"""The HTTP surface as it is served: health, and wake-ups that only the cluster can send."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from region_scheduler.api.app import Health, build_api
from region_scheduler.api.surface import HttpSurface, listen
from region_scheduler.drivers.http.wakeups import HttpWakeUps
from region_scheduler.errors import Misconfigured
from region_scheduler.runtime.signing import (
    ATTEMPT,
    SIGNATURE_HEADER,
    WAKE,
    WAKE_PATH,
    signature_of,
)
from tests.services import eventually

KEY = b"sixteen bytes or more"


@dataclass
class Served:
    """A surface, and what it was told."""

    health: Health
    port: int = 0
    wakes: list[None] = field(default_factory=list)

    def ask(
        self, method: str, path: str, body: bytes = b"", **headers: str
    ) -> tuple[int, dict[str, Any]]:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        link.request(method, path, body, headers)
        answer = link.getresponse()
        said = answer.read()
        link.close()
        return answer.status, json.loads(said) if said else {}

    def wake(self, body: bytes, key: bytes = KEY, purpose: bytes = WAKE) -> int:
        signature = signature_of(key, purpose, body)
        return self.ask("POST", WAKE_PATH, body, **{SIGNATURE_HEADER: signature})[0]


@pytest.fixture
def served() -> Iterator[Served]:
    health = Health(
        is_ok=True, region="eu", instance="eu.serve:1", roles=("scheduler",), lease_left_s=3.5
    )
    served = Served(health)
    listening = listen("127.0.0.1", 0)
    app = build_api("eu", KEY, lambda: served.health, lambda: served.wakes.append(None))
    surface = HttpSurface(app, listening)
    served.port = int(surface.url.rpartition(":")[2])
    surface.start()
    yield served
    surface.stop()
    assert surface.join(5)


def test_health_is_that_of_the_lease(served: Served) -> None:
    assert served.ask("GET", "/healthz") == (
        200,
        {
            "status": "ok",
            "region": "eu",
            "instance": "eu.serve:1",
            "roles": ["scheduler"],
            "lease_left_s": 3.5,
        },
    )

    served.health = Health(
        is_ok=False, region="eu", instance="eu.serve:1", roles=(), lease_left_s=-1.0
    )

    status, said = served.ask("GET", "/healthz")
    assert (status, said["status"]) == (503, "no lease")


def test_a_genuine_wake_up_wakes(served: Served) -> None:
    assert served.wake(b'{"region": "eu"}') == 204
    assert len(served.wakes) == 1


def test_the_drivers_wake_ups_arrive(served: Served) -> None:
    wake_ups = HttpWakeUps({"eu": f"http://127.0.0.1:{served.port}"}, KEY)

    wake_ups.wake("eu")

    eventually(lambda: served.wakes)
    wake_ups.close()


@pytest.mark.parametrize(
    ("body", "key", "purpose", "status"),
    [
        (b'{"region": "eu"}', b"another cluster's key", WAKE, 403),
        (b'{"region": "eu"}', KEY, ATTEMPT, 403),
        (b'{"region": "us"}', KEY, WAKE, 421),
        (b'{"regions": "eu"}', KEY, WAKE, 422),
        (b"[" * 3000, KEY, WAKE, 422),
        (b"x" * 10_000, KEY, WAKE, 403),
    ],
    ids=["foreign key", "other purpose", "other region", "no region", "deep", "too long"],
)
def test_anything_else_wakes_nobody(
    served: Served, body: bytes, key: bytes, purpose: bytes, status: int
) -> None:
    assert served.wake(body, key, purpose) == status
    assert served.wakes == []


def test_a_wake_up_without_a_signature_is_refused(served: Served) -> None:
    assert served.ask("POST", WAKE_PATH, b'{"region": "eu"}')[0] == 403
    assert served.wakes == []


def test_a_port_in_use_is_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(Misconfigured, match=f"127.0.0.1:{port}: address already in use"):
            listen("127.0.0.1", port)
