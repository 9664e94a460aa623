"""Serves the API in a thread of its own, as a part of a service."""

from __future__ import annotations

import socket
import threading

import uvicorn
from fastapi import FastAPI

from region_scheduler.errors import Misconfigured


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on `port`, or on a free one if that is 0.

    Raises:
        Misconfigured: The port is in use, or not ours to take.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)
    except OSError as refused:
        listening.close()
        reason = (refused.strerror or str(refused)).lower()
        raise Misconfigured(problems=[f"cannot listen on {host}:{port}: {reason}"]) from refused
    return listening


class HttpSurface:
    """A part of a service that answers HTTP.

    Args:
        app: What answers.
        listening: From `listen`; closed at the end.
    """

    name = "http"

    def __init__(self, app: FastAPI, listening: socket.socket) -> None:
        self._listening = listening
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=2,
            )
        )
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)

    @property
    def url(self) -> str:
        """Where it answers."""
        host, port = self._listening.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end; returns at once."""
        self._server.should_exit = True

    def join(self, timeout_s: float) -> bool:
        """Wait for its end; return whether it has ended."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self._server.run(sockets=[self._listening])
