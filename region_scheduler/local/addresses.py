"""Loopback ports: which are free, and which one is taken."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import ExitStack

from region_scheduler.errors import Misconfigured

HOST = "127.0.0.1"
PORT_MAX = 65535


def free_ports(count: int) -> list[int]:
    """Return `count` different ports that nobody listens on just now."""
    with ExitStack() as held:
        ports = []
        for _ in range(count):
            listening = held.enter_context(socket.socket())
            listening.bind((HOST, 0))
            ports.append(int(listening.getsockname()[1]))
        return ports


def require_free(ports: Iterable[int]) -> None:
    """Go on if every port can be listened on.

    Raises:
        Misconfigured: Names each that cannot.
    """
    problems = []
    for port in ports:
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((HOST, port))
                trial.listen()
            except OSError as refused:
                reason = (refused.strerror or str(refused)).lower()
                problems.append(f"port {port} of {HOST} cannot be used: {reason}")
    if problems:
        raise Misconfigured(problems=problems)
