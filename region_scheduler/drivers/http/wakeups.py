"""Wake-ups for other regions: best effort, signed, through their APIs."""

from __future__ import annotations

import json
from collections.abc import Mapping

import httpx
import structlog

from region_scheduler.ports.queue import WakeUps
from region_scheduler.runtime.courier import Courier
from region_scheduler.runtime.signing import SIGNATURE_HEADER, WAKE, WAKE_PATH, signature_of

log = structlog.get_logger()


class HttpWakeUps:
    """`ports.queue.WakeUps` for the regions in `peers`; each has a thread of its own.

    A wake-up says nothing but "look": repeating an old one is harmless, so its signature needs
    neither time nor nonce.

    Args:
        peers: Base address of each region's API.
        key: Signs the wake-ups; the same in all regions.
        timeout_s: For connecting, and again for the answer.
    """

    def __init__(self, peers: Mapping[str, str], key: bytes, *, timeout_s: float = 2.0) -> None:
        self._peers = dict(peers)
        self._key = key
        # To load the authorities takes a tenth of a second, in every command: only who needs them.
        is_tls = any(not url.startswith("http://") for url in peers.values())
        self._client = httpx.Client(timeout=timeout_s, trust_env=False, verify=is_tls)
        self._couriers = {region: Courier(f"wake-{region}", self._deliver) for region in peers}

    def wake(self, region: str) -> None:
        """Wake the schedulers of `region`; returns at once; an unknown region is passed over."""
        courier = self._couriers.get(region)
        if courier is not None:
            courier.send(region)

    def close(self) -> None:
        """Send what waits, and end threads and connections."""
        for courier in self._couriers.values():
            courier.close()
        self._client.close()

    def _deliver(self, region: str) -> None:
        body = json.dumps({"region": region}).encode()
        headers = {
            "content-type": "application/json",
            SIGNATURE_HEADER: signature_of(self._key, WAKE, body),
        }
        url = self._peers[region].rstrip("/") + WAKE_PATH
        try:
            answer = self._client.post(url, content=body, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as failed:
            log.debug("wake-up lost", region=region, detail=str(failed))
            return
        if answer.is_error:
            log.warning("wake-up refused", region=region, status=answer.status_code)


class CompositeWakeUps:
    """`ports.queue.WakeUps`: the own region by one way, all others by another."""

    def __init__(self, region: str, own: WakeUps, others: WakeUps) -> None:
        self._region = region
        self._own = own
        self._others = others

    def wake(self, region: str) -> None:
        """Wake the schedulers of `region`; returns at once."""
        (self._own if region == self._region else self._others).wake(region)
