"""One client's connection: requests in order, answers in the same order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import cast

import httptools

from region_scheduler.embedded.arango.delivery import Delivery
from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.embedded.arango.http.message import Request, Response
from region_scheduler.embedded.arango.serving.wire import (
    BAD_REQUEST,
    CONTINUE,
    Incoming,
    response_bytes,
)


class _Slot:
    """The place of one answer in the order of a connection."""

    __slots__ = ("data", "is_head", "is_kept")

    def __init__(self, *, is_head: bool, is_kept: bool) -> None:
        self.data: bytes | None = None
        self.is_head = is_head
        self.is_kept = is_kept

    def fill(self, response: Response) -> None:
        self.data = response_bytes(response, is_head=self.is_head, is_kept=self.is_kept)


class Connection(asyncio.Protocol):
    """Speaks HTTP/1.1 with keep-alive; requests may be pipelined.

    Args:
        engine: Executes the requests.
        region: The region whose port this is.
        loop: For what is delayed.
        ask_flush: Asks for one flush at the end of this turn, after which `release` is called.
        open_connections: All connections, for a clean stop.
    """

    def __init__(
        self,
        engine: Engine,
        region: str,
        loop: asyncio.AbstractEventLoop,
        ask_flush: Callable[[Connection], None],
        open_connections: set[Connection],
    ) -> None:
        self._engine = engine
        self._region = region
        self._loop = loop
        self._ask_flush = ask_flush
        self._open = open_connections
        self._parser = httptools.HttpRequestParser(self)
        self._incoming = Incoming()
        self._slots: deque[_Slot] = deque()
        self._transport: asyncio.Transport | None = None

    # asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)  # of uvloop it is no subclass
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        """Forget whatever was still to be answered."""
        self._transport = None
        self._open.discard(self)

    def data_received(self, data: bytes) -> None:
        """Execute every request that is complete by now."""
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, ValueError):
            if self._transport is not None:
                self._transport.write(BAD_REQUEST)
                self._transport.close()

    def close(self) -> None:
        """Close the connection after what is already written."""
        if self._transport is not None:
            self._transport.close()

    # httptools.

    def on_url(self, url: bytes) -> None:
        """Take a part of the request's target."""
        self._incoming.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self._incoming.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Tell a client that waits before it sends the body to go on."""
        if "expect" in self._incoming.headers and self._transport is not None:
            self._transport.write(CONTINUE)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._incoming.body.append(body)

    def on_message_complete(self) -> None:
        """Execute the request."""
        incoming, self._incoming = self._incoming, Incoming()
        method = self._parser.get_method()
        slot = _Slot(is_head=method == b"HEAD", is_kept=self._parser.should_keep_alive())
        self._slots.append(slot)
        request = incoming.request(method, self._region)
        with self._engine.lock:
            delivery = self._engine.network.plan(request)
            if delivery is None:
                response = self._engine.execute(request)
                if not response.wait_s:
                    slot.fill(response)
                    self._ask_flush(self)
                    return
                self._engine.flush()
        if delivery is None:
            self._answer(slot, response, response.wait_s)
        else:
            self._deliver(request, slot, delivery)

    # Delayed and faulty deliveries.

    def _deliver(self, request: Request, slot: _Slot, delivery: Delivery) -> None:
        if delivery.late_s is not None:
            with self._engine.lock:
                self._engine.postpone(request, delivery.late_s)
            self._break()
        elif delivery.is_executed:
            self._after(delivery.wait_s, lambda: self._execute(request, slot, delivery))
        elif delivery.answer is not None:
            self._answer(slot, delivery.answer, delivery.wait_s + delivery.answer_wait_s)
        elif not delivery.is_hanging:
            self._break()

    def _execute(self, request: Request, slot: _Slot, delivery: Delivery) -> None:
        with self._engine.lock:
            response = self._engine.execute(request, is_disturbed=delivery.is_disturbed)
            self._engine.flush()
        if delivery.is_answered:
            wait_s = response.wait_s + delivery.answer_wait_s
            self._answer(slot, delivery.answer or response, wait_s)
        else:
            self._break()

    def _answer(self, slot: _Slot, response: Response, wait_s: float) -> None:
        def arrive() -> None:
            slot.fill(response)
            self.release()

        self._after(wait_s, arrive)

    def _after(self, wait_s: float, act: Callable[[], None]) -> None:
        if wait_s > 0:
            self._loop.call_later(wait_s, act)
        else:
            act()

    def _break(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # Answers.

    def release(self) -> None:
        """Send the answers that are ready and whose turn it is; the log must be flushed."""
        if self._transport is None:
            return
        ready: list[bytes] = []
        is_kept = True
        while self._slots and (data := self._slots[0].data) is not None:
            is_kept = self._slots.popleft().is_kept
            ready.append(data)
        if ready:
            self._transport.write(ready[0] if len(ready) == 1 else b"".join(ready))
            if not is_kept:
                self._transport.close()
