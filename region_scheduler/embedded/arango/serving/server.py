"""The server: listens on one port per region until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Sequence
from functools import partial
from typing import TextIO

from region_scheduler.embedded.arango import aql
from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.embedded.arango.serving.connection import Connection
from region_scheduler.embedded.arango.storage.log import LogFailed

_TICK_S = 0.05


class Server:
    """Serves an engine over HTTP on the running event loop.

    Args:
        engine: The engine.
        host: Address to listen on.
        ports: One for each of the engine's regions, in their order; 0 picks a free one.
    """

    def __init__(self, engine: Engine, host: str, ports: Sequence[int]) -> None:
        self._engine = engine
        self._host = host
        self._ports = ports
        self._servers: list[asyncio.Server] = []
        self._connections: set[Connection] = set()
        self._waiting: dict[Connection, None] = {}
        self._stopped = asyncio.Event()
        self.failure: LogFailed | None = None

    async def start(self) -> list[tuple[str, int]]:
        """Listen on all ports and return region and port of each.

        Raises:
            OSError: A port is in use, or may not be used.
        """
        loop = asyncio.get_running_loop()
        found: list[tuple[str, int]] = []
        try:
            for region, port in zip(self._engine.regions.names, self._ports, strict=True):
                make = partial(
                    Connection, self._engine, region, loop, self._ask_flush, self._connections
                )
                server = await loop.create_server(make, self._host, port, backlog=512)
                self._servers.append(server)
                found.append((region, server.sockets[0].getsockname()[1]))
        except OSError:
            for server in self._servers:
                server.close()
            raise
        loop.call_later(_TICK_S, self._tick)
        return found

    async def run(self) -> None:
        """Serve until `stop` is called or the log fails; then close all connections."""
        await self._stopped.wait()
        for server in self._servers:
            server.close()
        for connection in list(self._connections):
            connection.close()
        await asyncio.sleep(0)

    def stop(self) -> None:
        """Let `run` end."""
        self._stopped.set()

    def _ask_flush(self, connection: Connection) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        self._waiting[connection] = None

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, {}
        try:
            with self._engine.lock:
                self._engine.flush()
        except LogFailed as error:
            self.failure = error
            self.stop()
            return
        for connection in waiting:
            connection.release()

    def _tick(self) -> None:
        try:
            with self._engine.lock:
                self._engine.tick()
                self._engine.flush()
        except LogFailed as error:
            self.failure = error
            self.stop()
            return
        asyncio.get_running_loop().call_later(_TICK_S, self._tick)


async def serve(engine: Engine, host: str, ports: Sequence[int], out: TextIO) -> LogFailed | None:
    """Serve until SIGTERM or SIGINT; print a line per region when all listen.

    Returns:
        Why it had to stop, if the log failed.

    Raises:
        OSError: A port is in use, or may not be used.
    """
    aql.compile_query("RETURN 1")  # builds the parser, so that the first query need not
    server = Server(engine, host, ports)
    listening = await server.start()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    # What was loaded stays; without this the collector would walk it again and again.
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)
    for region, port in listening:
        print(f"ready {host}:{port} {region}", file=out, flush=True)  # its one output
    await server.run()
    return server.failure
