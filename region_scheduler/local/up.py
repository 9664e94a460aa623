"""Brings the stack of a state directory up, keeps it up, and takes it down."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from region_scheduler.errors import InvalidInput
from region_scheduler.local.addresses import PORT_MAX, require_free
from region_scheduler.local.directories import prepare
from region_scheduler.local.lock import StateLock
from region_scheduler.local.memory import Memory, memory_of
from region_scheduler.local.parts import parts_of, programs, url_of
from region_scheduler.local.stack import (
    PORTS_PER_REGION,
    REGIONS,
    Process,
    Stack,
    Store,
    load_stack,
    new_stack,
)
from region_scheduler.local.supervisor import Supervisor
from region_scheduler.ports.time import Clock, Ids
from region_scheduler.worker.processes import started_at

_LEFT_OVER_S = 5.0
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What kind of stack is wanted.

    Attributes:
        regions: Empty takes those that the state directory has, or the default ones.
        port: First of a new stack's ports; 0 takes free ones.
        broker_url: A broker that somebody else runs, for every region of a new stack.
        store: A graph store that somebody else runs.
        concurrency: Attempts at once in each worker.
        distant_ms: If given, no region has the leader of our own graph store: each sees a follower
            that is so late, milliseconds, and can be cut off (`local.links`).
    """

    state_dir: Path
    regions: Sequence[str] = ()
    port: int = 0
    broker_url: str = ""
    store: Store | None = None
    concurrency: int = 4
    distant_ms: float | None = None


@dataclass(frozen=True, slots=True)
class PartLine:
    """What is told of a part that runs."""

    name: str
    pid: int
    memory: Memory
    url: str

    def __str__(self) -> str:
        """Return it for people, in columns."""
        return f"{self.name:<16} pid {self.pid:<8} {self.memory!s:<30} {self.url}".rstrip()


class LocalStack:
    """A stack that this process runs; a part of a service.

    Args:
        wish: What is wanted.
        clock: This machine's clock.
        ids: Source of a new stack's secrets.
        say: Told in one line of what happens to a part.

    Raises:
        Misconfigured: The directory is damaged, in use or cannot be written, a port is taken, there
            is no server for a broker. Nothing was started.
        InvalidInput: The directory holds a stack with other regions, or on another graph store; or
            there are not as many ports as it takes.
    """

    name = "stack"

    def __init__(self, wish: Wish, clock: Clock, ids: Ids, say: Callable[[str], None]) -> None:
        self._lock, stack = _taken(wish, ids)
        try:
            _stop_left_overs(stack)
            require_free(_ports(stack))
            prepare(stack)
            me = os.getpid()
            self.stack = replace(stack, up=Process(pid=me, started_at=started_at(me)), processes={})
            self._supervisor = Supervisor(
                programs(self.stack, wish.concurrency, wish.distant_ms), clock, say, self._save
            )
            self.stack.save()
        except BaseException:
            self._lock.release()
            raise

    def start(self) -> None:
        """Start every part; returns when all are ready.

        Raises:
            Misconfigured: One refused to start. All are stopped again.
            Unavailable: One did not get ready in time. All are stopped again.
        """
        self._supervisor.start()

    def stop(self) -> None:
        """Ask every part to end; returns at once."""
        self._supervisor.stop()

    def join(self, timeout_s: float) -> bool:
        """Wait for the end of every part; return whether all have ended."""
        has_ended = self._supervisor.join(timeout_s)
        if has_ended:
            replace(self.stack, up=None, processes={}).save()
            self._lock.release()
        return has_ended

    def kill(self, region: str) -> None:
        """Kill every process of a region, and let none come back before `bring_back`."""
        self._supervisor.hold(parts_of(self.stack, region))

    def lives(self, region: str) -> bool:
        """Say whether any process of a region does."""
        return not self._supervisor.pids().keys().isdisjoint(parts_of(self.stack, region))

    def bring_back(self, region: str) -> None:
        """Start the processes of a region again that were killed; returns at once."""
        self._supervisor.let_go(parts_of(self.stack, region))

    def freeze(self, part: str) -> bool:
        """Let a part stand still, with all its children but the steps, as a frozen machine does.

        Returns:
            Whether it does; not if it is dead just now.
        """
        return self._signal(part, signal.SIGSTOP)

    def thaw(self, part: str) -> None:
        """Let a part go on; nothing happens if it is dead."""
        self._signal(part, signal.SIGCONT)

    def _signal(self, part: str, number: signal.Signals) -> bool:
        pid = self._supervisor.pids().get(part)
        if pid is None:
            return False
        with suppress(ProcessLookupError):
            os.killpg(pid, number)
            return True
        return False

    def lines(self) -> list[PartLine]:
        """Return what runs now."""
        return [
            PartLine(name, pid, memory_of(pid), url_of(self.stack, name))
            for name, pid in self._supervisor.pids().items()
        ]

    def _save(self) -> None:
        pids = self._supervisor.pids()
        running = {name: Process(pid=pid, started_at=started_at(pid)) for name, pid in pids.items()}
        replace(self.stack, processes=running).save()


def _taken(wish: Wish, ids: Ids) -> tuple[StateLock, Stack]:
    """Take the directory and return its stack, a new one if it has none."""
    stack = load_stack(wish.state_dir)
    if stack is None:
        regions = wish.regions or REGIONS
        _require_ports(wish.port, PORTS_PER_REGION * len(regions))
        stack = new_stack(wish.state_dir, regions, ids, wish.port, wish.broker_url, wish.store)
        require_free(_ports(stack))
    lock = StateLock(wish.state_dir)
    try:
        stack = load_stack(wish.state_dir) or stack  # another may have been first
        _require_same(wish, stack)
    except BaseException:
        lock.release()
        raise
    return lock, stack


def _require_ports(first: int, count: int) -> None:
    if first and first + count - 1 > PORT_MAX:
        expected = f"{count} ports in a row are taken, the last of them at most {PORT_MAX}"
        raise InvalidInput(field="--port", value=str(first), expected=expected)


def _require_same(wish: Wish, stack: Stack) -> None:
    """Refuse a directory whose stack is not the one that is wanted."""
    if wish.regions and tuple(wish.regions) != tuple(stack.regions):
        raise InvalidInput(
            field="--regions",
            value=",".join(wish.regions),
            expected=f"{wish.state_dir} has {','.join(stack.regions)}; name another directory",
        )
    if wish.store and wish.store != stack.store:
        there = str(stack.store or "an engine of its own")
        raise InvalidInput(
            field="arango.url",
            value=str(wish.store),
            expected=f"the stack in {wish.state_dir} uses {there}; name another directory",
        )


def _ports(stack: Stack) -> list[int]:
    return [
        port for at in stack.regions.values() for port in (at.engine, at.api, at.broker) if port
    ]


def _stop_left_overs(stack: Stack) -> None:
    """End what an earlier `up` on this directory left behind, should it have been killed."""
    left = [one for one in stack.processes.values() if _is_alive(one)]
    for number, wait_s in ((signal.SIGTERM, _LEFT_OVER_S), (signal.SIGKILL, _LEFT_OVER_S)):
        for process in left:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
        for _ in range(int(wait_s / _LOOK_S)):
            left = [process for process in left if _is_alive(process)]
            if not left:
                return
            threading.Event().wait(_LOOK_S)


def _is_alive(process: Process) -> bool:
    return process.started_at > 0 and started_at(process.pid) == process.started_at
