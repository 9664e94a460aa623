"""Guards one step when everything above it may be gone; standalone, standard library only.

Started as `python -I -S shim.py NAME=VALUE… -- ARGV…` by `worker.execute` in the step's own
environment and directory. Standard input is its leash: `go` lets the step start, `stop` or `memory`
interrupts it, `kill` ends it, and the end of file means that the worker process is dead. Standard
output carries one line of JSON about the end (`worker.execute.Ended`).

What ends a step, each on CLOCK_BOOTTIME so that a suspended machine counts too:

- the lease: SIGINT at deadline - stop_s, SIGKILL to the whole tree at the deadline, whatever else
  is under way; the deadline is read again and again from the lease file, and an unreadable or
  revoked one has passed;
- the cap, or a word: SIGINT, then stop_grace_s or the deadline, whichever is sooner, then SIGKILL;
- the worker's death: SIGKILL at once;
- its own end: what it left running is killed.

The whole tree means every descendant: the shim is a subreaper, so children with a session of their
own, or without a parent, stay below it, and it does not report before the kernel says that none is
left. The step dies with the shim (parent-death signal); what else survives a shim killed with -9 is
found by its environment (`worker.processes`).

The shim has no parent-death signal of its own: that is tied to the *thread* that started a process,
so it would fire when a pool's thread retires. A fork of the worker could hold the leash open; hence
the shim also watches its parent's id. Without /proc and prctl (macOS) only the step's process group
is killed.

Imports are few on purpose (`signal` alone takes 6 ms): a start costs about 20 ms.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys
import time

LEASE_SLOT_BYTES = 24
LEASE_BYTES = 2 * LEASE_SLOT_BYTES
_MASK = (1 << 64) - 1
_NANO = 1_000_000_000

_GLANCE_S = 0.2  # how stale the lease and the parent's id may be
_TAIL_BYTES = 8192
# The same numbers on Linux and macOS; the last two are those that Python itself ignores.
_SIGHUP, _SIGINT, _SIGKILL, _SIGTERM, _SIGPIPE, _SIGXFSZ = 1, 2, 9, 15, 13, 25
_SIG_DFL, _SIG_IGN = 0, 1
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_TOO_NEAR = b"near"


def boottime() -> float:
    """Return seconds since boot, suspended time included where the platform can tell."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def read_deadline(fd: int) -> float:
    """Return the newest deadline in an open lease file; 0.0 if it holds none.

    A slot torn by a write under way fails its check; the other, one renewal older, counts.
    """
    try:
        data = os.pread(fd, LEASE_BYTES, 0)
    except OSError:
        return 0.0
    newest, deadline = 0, 0
    for at in range(0, len(data) - LEASE_SLOT_BYTES + 1, LEASE_SLOT_BYTES):
        sequence, nanos, check = (
            int.from_bytes(data[at + n : at + n + 8], "big") for n in (0, 8, 16)
        )
        if sequence > newest and check == ~(sequence ^ nanos) & _MASK:
            newest, deadline = sequence, nanos
    return deadline / _NANO


class Orders:
    """What the worker told the shim on its command line."""

    def __init__(self, arguments: list[str]) -> None:
        split = arguments.index("--")
        given = dict(argument.split("=", 1) for argument in arguments[:split])
        self.argv = arguments[split + 1 :]
        self.parent = int(given["parent"])
        self.lease_path = given["lease"]
        self.stop_s = float(given["stop_s"])
        self.stop_grace_s = float(given["stop_grace_s"])
        self.cap_s = float(given["cap_s"])
        self.log_path = given["log"]
        self.log_bytes_max = int(given["log_bytes_max"])
        self.steps_log = given["steps_log"]
        self.record = given["record"]  # a JSON object: who this is


class Log:
    """The step's output on disk: its head, and its last lines once it outgrows the limit."""

    def __init__(self, path: str, bytes_max: int) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._room = max(0, bytes_max - _TAIL_BYTES)
        self._tail = b""
        self._left_out = 0

    def write(self, data: bytes) -> None:
        """Keep `data`; a full disk costs output, never the step."""
        head, rest = data[: self._room], data[self._room :]
        self._room -= len(head)
        self._put(head)
        if rest:
            held = self._tail + rest
            self._tail = held[-_TAIL_BYTES:]
            self._left_out += len(held) - len(self._tail)

    def close(self) -> None:
        """Say what was left out, and add the last lines."""
        if self._left_out:
            self._put(f"\n[{self._left_out} bytes of output left out]\n".encode())
        self._put(self._tail)
        os.close(self._fd)

    def _put(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:
            self._room = 0


class Guardian:
    """One step and everything it starts."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._lease = _open_lease(orders.lease_path)
        self._output, self._output_in = os.pipe()
        os.set_blocking(self._output, False)
        self._log = Log(orders.log_path, orders.log_bytes_max)
        self._pid = 0
        self._code: int | None = None  # of the step's first process
        self._why = ""  # what ended it, if anything but itself did
        self._kill_at = float("inf")
        self._is_killed = False
        self._started_at = 0.0
        self._poller = select.poll()

    def run(self) -> str:
        """Run the step to the death of its last process; return the report, a line of JSON."""
        refusal = self._start()
        os.close(self._output_in)
        if not refusal:
            self._watch()
            self._end_tree()
        while self._copy():
            pass
        self._log.close()
        how = self._why or "exited"
        if refusal:
            how = "hand-back" if refusal == _TOO_NEAR else "not-started"
        code = "null" if self._code is None else str(self._code)
        ended_at = boottime()
        if how != "hand-back":
            self._note("end", f',"exit":"{how}","code":{code}')
        errno = int(refusal) if how == "not-started" else 0
        return (
            f'{{"how":"{how}","code":{code},"errno":{errno},"is_killed":{int(self._is_killed)},'
            f'"started_at":{self._started_at!r},"ended_at":{ended_at!r}}}\n'
        )

    def _start(self) -> bytes:
        """Fork and execute; return why nothing runs, or nothing."""
        verdict, verdict_in = os.pipe()
        self._started_at = boottime()
        shim = os.getpid()
        self._pid = os.fork()
        if not self._pid:
            self._become_step(shim, verdict_in)
        os.close(verdict_in)
        refusal = os.read(verdict, 64)  # empty once the step's program has replaced the fork
        os.close(verdict)
        if refusal:
            os.waitpid(self._pid, 0)
        return refusal

    def _become_step(self, shim: int, verdict: int) -> None:
        """Turn this fork into the step. The deadline is judged last, as late as can be."""
        try:
            os.setpgid(0, 0)
            _prctl(_PR_SET_PDEATHSIG, _SIGKILL)
            if os.getppid() != shim:
                os._exit(1)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(self._output_in, 1)
            os.dup2(self._output_in, 2)
            _handle((_SIGHUP, _SIGINT, _SIGTERM, _SIGPIPE, _SIGXFSZ), _SIG_DFL)
            if read_deadline(self._lease) - boottime() <= self._orders.stop_s:
                os.write(verdict, _TOO_NEAR)
                os._exit(1)
            self._note("start", "")
            os.execvp(self._orders.argv[0], self._orders.argv)  # noqa: S606 -- never a shell
        except OSError as error:
            os.write(verdict, str(error.errno or 0).encode())
        os._exit(127)

    def _watch(self) -> None:
        """Return when the step's first process is dead, by itself or by us."""
        for fd in (0, self._output):
            self._poller.register(fd, select.POLLIN)
        exit_fd = os.pidfd_open(self._pid) if hasattr(os, "pidfd_open") else -1
        if exit_fd >= 0:
            self._poller.register(exit_fd, select.POLLIN)
        while not self._has_exited():
            pause_s = self._judge()
            if exit_fd < 0:
                pause_s = min(pause_s, 0.02)
            for fd, _ in self._poller.poll(pause_s * 1000 + 1):
                if fd == self._output:
                    if self._copy() == b"":
                        self._poller.unregister(fd)  # closed by the step, which may run on
                elif fd == 0:
                    self._obey(os.read(0, 64))

    def _has_exited(self) -> bool:
        """Reap whoever died below us; say whether the step's first process is among the dead."""
        while self._code is None:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return False
            if pid == self._pid:
                self._code = os.waitstatus_to_exitcode(status)
        return True

    def _judge(self) -> float:
        """End what is due; return how long nothing else can be, in seconds."""
        now = boottime()
        deadline = read_deadline(self._lease)
        cap_at = self._started_at + self._orders.cap_s
        if os.getppid() != self._orders.parent:
            self._kill("parent")
        elif now >= deadline:
            self._kill("lease")
        elif self._why:
            if now >= self._kill_at:
                self._kill(self._why)
        elif now >= deadline - self._orders.stop_s:
            self._interrupt("lease", now)
        elif now >= cap_at:
            self._interrupt("cap", now)
        if self._is_killed:
            return _GLANCE_S
        next_at = self._kill_at if self._why else min(cap_at, deadline - self._orders.stop_s)
        return max(0.0, min(next_at - now, deadline - now, _GLANCE_S))

    def _obey(self, words: bytes) -> None:
        if not words:
            self._poller.unregister(0)
            self._kill("parent")
        elif b"kill" in words:
            self._kill(self._why or "memory")
        elif not self._why:
            self._interrupt("memory" if b"memory" in words else "stop", boottime())

    def _interrupt(self, why: str, now: float) -> None:
        """Ask the step's group to end, once; terraform takes a second SIGINT for a forced stop."""
        self._why = why
        self._kill_at = now + self._orders.stop_grace_s
        _signal_group(self._pid, _SIGINT)

    def _kill(self, why: str) -> None:
        self._why = why
        self._is_killed = True
        self._kill_everything()

    def _kill_everything(self) -> None:
        _signal_group(self._pid, _SIGKILL)
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, _SIGKILL)
            except OSError:
                continue  # gone, or not ours to kill: the caller looks again

    def _end_tree(self) -> None:
        """Kill and reap until the kernel says that we have no child; we inherit every orphan."""
        pause_s = 0.001
        while True:
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            self._kill_everything()
            self._copy()
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _GLANCE_S)

    def _copy(self) -> bytes | None:
        """Move one piece of output to the log; return it, empty at its end, None if none is due."""
        try:
            data = os.read(self._output, 65536)
        except BlockingIOError:
            return None
        self._log.write(data)
        return data

    def _note(self, event: str, more: str) -> None:
        """Append to the steps log: one write to a file in append mode is never torn."""
        line = (
            f'{self._orders.record[:-1]},"event":"{event}","at":{time.time()!r},'
            f'"boot":{boottime()!r},"shim_pid":{os.getpid() if self._pid else os.getppid()}'
            f"{more}}}\n"
        )
        fd = os.open(self._orders.steps_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(fd, line.encode())
        finally:
            os.close(fd)


def _open_lease(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return -1  # reads as a lease that has run out


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _handle(numbers: tuple[int, ...], action: int) -> None:
    set_action = ctypes.CDLL(None).signal
    set_action.argtypes = (ctypes.c_int, ctypes.c_void_p)
    for number in numbers:
        set_action(number, action)


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except OSError:
        return  # nobody left in it


def descendants(root: int) -> list[int]:
    """Return the ids of all processes below `root`; empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            try:
                fd = os.open(f"/proc/{name}/stat", os.O_RDONLY)
            except OSError:
                continue
            try:
                parent = int(os.read(fd, 1024).rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue
            finally:
                os.close(fd)
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    unseen = [root]
    while unseen:
        below = children.get(unseen.pop(), [])
        found += below
        unseen += below
    return found


def _is_let_go(parent: int) -> bool:
    """Wait for the worker's `go`; its death ends the wait."""
    poller = select.poll()
    poller.register(0, select.POLLIN)
    while os.getppid() == parent:
        if poller.poll(_GLANCE_S * 1000):
            return os.read(0, 3) == b"go\n"
    return False


def main(arguments: list[str]) -> int:
    """Guard one step; return 0 once its end was reported, 1 if the worker died before it began."""
    orders = Orders(arguments)
    # The worker decides; its own death is seen through the leash.
    _handle((_SIGHUP, _SIGINT, _SIGTERM), _SIG_IGN)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if not _is_let_go(orders.parent):
        return 1
    report = Guardian(orders).run()
    try:
        os.write(1, report.encode())
    except OSError:
        return 1  # nobody is left to read it
    return 0


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # tearing the interpreter down would take another 5 ms
