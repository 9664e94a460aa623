"""Ports, the lock of a directory, the broker's settings, memory."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from region_scheduler.errors import Misconfigured
from region_scheduler.local import broker
from region_scheduler.local.addresses import free_ports, require_free
from region_scheduler.local.lock import StateLock
from region_scheduler.local.memory import memory_of


def test_free_ports_differ_and_can_be_taken() -> None:
    ports = free_ports(20)

    assert len(set(ports)) == 20
    require_free(ports)


def test_every_taken_port_is_named() -> None:
    with socket.socket() as one, socket.socket() as other:
        taken = []
        for listening in (one, other):
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            taken.append(listening.getsockname()[1])

        with pytest.raises(Misconfigured) as refused:
            require_free([*taken, *free_ports(1)])

    assert len(refused.value.problems) == 2
    assert all(str(port) in str(refused.value) for port in taken)


def test_a_directory_is_held_by_one_and_names_it(tmp_path: Path) -> None:
    held = StateLock(tmp_path / "s")

    with pytest.raises(Misconfigured, match=f"pid {os.getpid()}"):
        StateLock(tmp_path / "s")

    held.release()
    held.release()
    StateLock(tmp_path / "s").release()


def test_a_dead_holder_holds_nothing(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path;"
        " from region_scheduler.local.lock import StateLock;"
        " lock = StateLock(Path(sys.argv[1])); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, timeout=30)

    StateLock(tmp_path).release()


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(Misconfigured, match="state directory"):
        StateLock(tmp_path / "file" / "s")


def test_a_server_on_path_comes_before_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    from_wheel = broker.find_server()
    own = tmp_path / "redis-server"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)

    assert from_wheel.endswith("valkey-server")
    assert broker.find_server() == str(own)


def test_the_brokers_password_is_for_its_owner_only(tmp_path: Path) -> None:
    path = broker.write_config(tmp_path / "with space", 7777, "s3cret")

    text = path.read_text()
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    assert "requirepass s3cret" in text
    assert f'dir "{tmp_path / "with space"}"' in text
    assert "appendonly yes" in text


def test_nobody_answers_where_nobody_listens() -> None:
    assert not broker.answers(free_ports(1)[0], "x")


def test_memory_of_a_tree_is_more_than_none_and_of_a_dead_one_none() -> None:
    mine = memory_of(os.getpid())

    assert 0 < mine.pss <= mine.rss
    assert memory_of(2**22 + 1).rss == 0
