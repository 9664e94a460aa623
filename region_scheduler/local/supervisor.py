"""Starts processes, starts those that died again, and stops them all in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from region_scheduler.assembly import tether
from region_scheduler.errors import Misconfigured, RegionSchedulerError, Unavailable
from region_scheduler.ports.time import Clock

_LOOK_S = 0.05
_PAUSE_FIRST_S = 0.2
_PAUSE_MAX_S = 10.0
_STEADY_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One process of the stack.

    Attributes:
        argv: Program and arguments, never a shell's text.
        environ: Its whole environment; may hold secrets.
        log_path: Its output is appended here.
        is_ready: Given its process id, says whether it can be used; must not raise, nor block long.
        ready_s: Longest wait for that, seconds.
        stop_s: How long it may take to end after SIGTERM before it is killed, seconds.
        stage: All start together and wait for each other; those of a higher stage stop first.
    """

    name: str
    argv: Sequence[str]
    environ: Mapping[str, str] = field(repr=False)
    log_path: Path
    is_ready: Callable[[int], bool]
    ready_s: float = 30.0
    stop_s: float = 10.0
    stage: int = 0


@dataclass(slots=True)
class _Child:
    program: Program
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    is_ready: bool = False
    failures: int = 0
    again_at: float = 0.0


class Supervisor:
    """Runs programs in a thread of its own; a part of a service.

    Every process is started from that thread, to which it is tied: when this process dies, so do
    they. Each has a session of its own, so that Ctrl-C reaches nobody but us, and what a dead one
    leaves behind is killed with its group.

    Args:
        programs: In the order in which they are awaited, which says who is blamed.
        clock: For pauses between two starts.
        say: Told in one line of what happens to a program.
        on_change: Told after every start that succeeded or ended.
    """

    name = "supervisor"

    def __init__(
        self,
        programs: Sequence[Program],
        clock: Clock,
        say: Callable[[str], None],
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._children = [_Child(program) for program in programs]
        self._clock = clock
        self._say = say
        self._on_change = on_change
        self._held: frozenset[str] = frozenset()
        self._stopping = threading.Event()
        self._started = threading.Event()
        self._failed: RegionSchedulerError | None = None
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)

    def pids(self) -> dict[str, int]:
        """Return the process id of each program that runs, by name."""
        return {
            child.program.name: child.process.pid
            for child in self._children
            if child.process is not None and child.process.returncode is None
        }

    def start(self) -> None:
        """Start every program; returns when all are ready.

        Raises:
            Misconfigured: One refused to start; says what it said. All are stopped again.
            Unavailable: One did not get ready in time. All are stopped again.
        """
        self._thread.start()
        self._started.wait()
        if self._failed is not None:
            self._thread.join()
            raise self._failed

    def hold(self, names: Collection[str]) -> None:
        """Kill these programs, all others go on; none of them is started again before `let_go`."""
        self._held |= frozenset(names)

    def let_go(self, names: Collection[str]) -> None:
        """Start programs again that were held; returns at once."""
        self._held -= frozenset(names)

    def stop(self) -> None:
        """Ask all to end; returns at once."""
        self._stopping.set()

    def join(self, timeout_s: float) -> bool:
        """Wait for the end of the last one; return whether it has ended."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._start_all()
            self._started.set()
            while not self._stopping.wait(_LOOK_S):
                for child in self._children:
                    self._look_after(child)
        except RegionSchedulerError as failed:
            self._failed = failed
        finally:
            self._stop_all()
            self._started.set()

    def _start_all(self) -> None:
        for child in self._children:
            self._spawn(child)
        for child in self._children:
            self._await_ready(child)

    def _await_ready(self, child: _Child) -> None:
        program, process = child.program, child.process
        while process is not None and not self._stopping.is_set():
            if process.poll() is not None:
                raise _refusal(program, process.returncode)
            if program.is_ready(process.pid):
                child.is_ready = True
                self._on_change()
                return
            if self._clock.monotonic() - child.started_at > program.ready_s:
                detail = f"it was not ready after {program.ready_s:g} s; see {program.log_path}"
                raise Unavailable(dependency=program.name, detail=detail)
            self._stopping.wait(_LOOK_S)

    def _spawn(self, child: _Child) -> None:
        program = child.program
        tied = [sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), *program.argv]
        try:
            with program.log_path.open("ab") as log:
                child.process = subprocess.Popen(
                    tied,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=dict(program.environ),
                    start_new_session=True,
                )
        except OSError as refused:
            where = f" {refused.filename}" if refused.filename else ""
            raise Misconfigured(
                problems=[f"{program.name}:{where} {(refused.strerror or str(refused)).lower()}"]
            ) from refused
        child.started_at = self._clock.monotonic()
        child.is_ready = False
        self._on_change()

    def _look_after(self, child: _Child) -> None:
        process, now = child.process, self._clock.monotonic()
        is_held = child.program.name in self._held
        if process is None:
            if now >= child.again_at and not is_held:
                self._spawn_again(child)
            return
        if process.poll() is not None:
            self._bury(child, process)
            return
        if is_held:
            _signal_group(process.pid, signal.SIGKILL)
            return
        if not child.is_ready and child.program.is_ready(process.pid):
            child.is_ready = True
            took_s = now - child.started_at
            self._say(f"{child.program.name} came back: pid {process.pid}, after {took_s:.1f} s")
            self._on_change()
        elif child.is_ready and now - child.started_at > _STEADY_S:
            child.failures = 0
        elif not child.is_ready and now - child.started_at > child.program.ready_s:
            process.kill()

    def _spawn_again(self, child: _Child) -> None:
        """Start it, or try again later: one part that cannot be started must not end the others."""
        try:
            self._spawn(child)
        except Misconfigured as refused:
            child.failures += 1
            child.again_at = self._clock.monotonic() + _PAUSE_MAX_S
            self._say(f"{'; '.join(refused.problems)}; trying again in {_PAUSE_MAX_S:g} s")

    def _bury(self, child: _Child, process: subprocess.Popen[bytes]) -> None:
        """Kill what a dead program left behind, and say when it is started again."""
        _signal_group(process.pid, signal.SIGKILL)
        child.process = None
        if child.program.name in self._held:
            self._say(f"{child.program.name} {_ending(process.returncode)}; it stays down")
            self._on_change()
            return
        pause_s = min(_PAUSE_MAX_S, _PAUSE_FIRST_S * 2**child.failures) if child.failures else 0.0
        child.failures += 1
        child.again_at = self._clock.monotonic() + pause_s
        again = f"starting it again in {pause_s:g} s" if pause_s else "starting it again"
        self._say(f"{child.program.name} {_ending(process.returncode)}; {again}")
        self._on_change()

    def _stop_all(self) -> None:
        for stage in sorted({child.program.stage for child in self._children}, reverse=True):
            running = [
                (child, child.process)
                for child in reversed(self._children)
                if child.program.stage == stage and child.process is not None
            ]
            for _, process in running:
                if process.poll() is None:
                    process.terminate()
            for child, process in running:
                try:
                    process.wait(child.program.stop_s)
                except subprocess.TimeoutExpired:
                    self._say(f"{child.program.name} did not end in time and is killed")
                _signal_group(process.pid, signal.SIGKILL)
                process.wait()
                child.process = None
        self._on_change()


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _refusal(program: Program, code: int) -> RegionSchedulerError:
    said = last_line(program.log_path)
    return Misconfigured(problems=[f"{program.name} {_ending(code)}: {said}"])


def _ending(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"


def last_line(path: Path) -> str:
    """Return the last line that is not blank, at most 400 characters of it."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    said = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
    return said[:400]
