"""What this machine can do at all: the limits beside which the engine's figures are shown."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

import orjson

from region_scheduler.bench.engine_client import Round, echoes
from region_scheduler.bench.rounds import in_processes, summary
from region_scheduler.embedded.arango.storage.log import SqliteLog
from region_scheduler.embedded.arango.storage.record import Record
from region_scheduler.runtime.system import SystemClock

_ANSWER = b"HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


def json_us(document: object) -> float:
    """Return microseconds to decode and encode a document."""
    text = orjson.dumps(document)
    return 1e6 / _rate(lambda: orjson.dumps(orjson.loads(text)))


def commit_us(directory: Path, blob: bytes) -> float:
    """Return microseconds to commit one document to the engine's log, not forced to the disk."""
    log = SqliteLog(directory / "floor")
    row = 0

    def write() -> None:
        nonlocal row
        row = (row + 1) % 10_000
        log.put(Record(row, "key", "rev", blob, None), 1)
        log.flush()

    try:
        return 1e6 / _rate(write)
    finally:
        log.close()


def sync_ms(directory: Path, blob: bytes) -> float:
    """Return milliseconds to append to a file and force it to the disk."""
    with (directory / "floor.bin").open("ab", buffering=0) as file:

        def write() -> None:
            file.write(blob)
            os.fsync(file.fileno())

        return 1e3 / _rate(write)


def echo(seconds: float, clients: int) -> dict[str, float]:
    """Return rate and latency of a server that answers without looking, asked by processes."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    server = context.Process(target=_serve_echo, args=(sender,), daemon=True)
    server.start()
    try:
        port: int = receiver.recv()
        rounds: list[Round] = in_processes([(echoes, (port, seconds)) for _ in range(clients)])
    finally:
        server.terminate()
        server.join()
    return summary(rounds)


class _Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if data:
            self._transport.write(_ANSWER)


def _serve_echo(sender: Connection) -> None:
    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(_Echo, "127.0.0.1", 0)
        sender.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    try:
        import uvloop
    except ImportError:
        asyncio.run(serve())
    else:
        uvloop.run(serve())


def _rate(act: Callable[[], object], seconds: float = 0.4) -> float:
    clock = SystemClock()
    count = 0
    began_at = clock.monotonic()
    while clock.monotonic() - began_at < seconds:
        act()
        count += 1
    return count / (clock.monotonic() - began_at)
