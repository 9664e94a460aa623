"""A stack run by `region-scheduler up` in a process of its own, and the commands that use it."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from arango.client import ArangoClient

from region_scheduler.assembly.operator import Operator
from region_scheduler.config.load import load
from region_scheduler.domain.ids import RunId, TaskId, task_id
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import Task
from region_scheduler.local.evidence import living, step_records
from region_scheduler.local.stack import Stack, load_stack
from region_scheduler.ports.records import GraphStores
from region_scheduler.verify.counters import Counters, count
from tests.engines import REAL_PASSWORD_VARIABLE, REAL_URL_VARIABLE
from tests.ties import tied

T = TypeVar("T")

MARK: Final = "STACK_UNDER_TEST"
"""In the environment of `up`, and so of everything that it starts."""
READY_S = 90.0
IS_ENGINE_OURS: Final = REAL_URL_VARIABLE not in os.environ
"""Whether stacks run an engine of their own, or use the server that the environment names."""
_DATABASE_VARIABLE: Final = "REGION_SCHEDULER_ARANGO_DATABASE"
COMMAND = [sys.executable, "-m", "region_scheduler"]


def eventually(look: Callable[[], T], within_s: float) -> T:
    """Return the first true answer of `look`; fail if there is none in time."""
    end = time.monotonic() + within_s
    while not (answer := look()):
        assert time.monotonic() < end, f"not within {within_s:g} s: {answer!r}"
        time.sleep(0.05)
    return answer


def command(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run one command of the CLI to its end."""
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=180, check=False, **options
    )


def descendants(mark: str) -> list[int]:
    """Return every living process that inherited `mark` from an `up`."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environ = (entry / "environ").read_bytes().split(b"\0")
                is_zombie = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
            except OSError:
                continue
            if wanted in environ and not is_zombie:
                found.append(int(entry.name))
    return found


@dataclass
class RunningStack:
    """A stack under test; `start` it, and `stop` it whatever happens.

    On a server of somebody else's it has a database of its own, which `drop` removes. `settings` go
    into the environment of all its parts.
    """

    state_dir: Path
    log_path: Path
    arguments: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    more: list[subprocess.Popen[bytes]] = field(default_factory=list)
    database: str = field(default_factory=lambda: f"rs_stack_{secrets.token_hex(4)}")
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        """The environment of `up` and of every command that uses the stack."""
        is_ours = REAL_URL_VARIABLE not in os.environ
        own_database = {} if is_ours else {_DATABASE_VARIABLE: self.database}
        return {**os.environ, MARK: str(self.state_dir), **own_database, **self.settings}

    def launch(self) -> subprocess.Popen[bytes]:
        """Begin to start it."""
        self.log_path.write_bytes(b"")
        self.process = self._popen(
            "up", "--state-dir", str(self.state_dir), "--concurrency", "2", *self.arguments
        )
        return self.process

    def start(self) -> None:
        """Start it; returns when all its parts are ready."""
        process = self.launch()

        def is_ready() -> bool:
            assert process.poll() is None, self.said()
            return "\nready: " in self.said()

        eventually(is_ready, READY_S)

    def stop(self) -> int:
        """Press Ctrl-C, and return the exit code."""
        for process in [*self.more, self.process]:
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process in self.more:
            process.wait(30)
        assert self.process is not None
        return self.process.wait(60)

    def drop(self) -> None:
        """Remove what is left of the stack on a server of somebody else's."""
        stack = load_stack(self.state_dir)
        if stack is None or stack.store is None:
            return
        password = os.environ.get(REAL_PASSWORD_VARIABLE, "")
        with closing(ArangoClient(stack.store.url)) as client:
            system = client.db("_system", stack.store.user, password)
            system.delete_database(self.database, ignore_missing=True)

    def said(self) -> str:
        """Return what `up` has printed."""
        return self.log_path.read_text()

    def stack(self) -> Stack:
        """Return what the state directory says."""
        stack = load_stack(self.state_dir)
        assert stack is not None
        return stack

    def pid(self, part: str) -> int:
        """Return the process id of a part."""
        return self.stack().processes[part].pid

    def kill(self, part: str) -> None:
        """Kill a part with -9, and wait until the supervisor has said that it is back."""
        pid, count_before = self.pid(part), self.said().count(f"{part} came back")
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: self.said().count(f"{part} came back") > count_before, READY_S)

    def worker(self, region: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start one more worker by hand."""
        where = ["--region", region, "--state-dir", str(self.state_dir)]
        process = self._popen("worker", *where, *arguments)
        self.more.append(process)
        return process

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command on the stack."""
        return command(*arguments, "--state-dir", str(self.state_dir), env=self.environ)

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Run a command with `--json`, and return the object on its last line."""
        ended = self.run(*arguments, "--json")
        assert ended.returncode == code, ended.stdout + ended.stderr
        return json.loads(ended.stdout.splitlines()[-1])

    def tasks(self, run: str) -> list[Task]:
        """Return the tasks of a run with their histories."""
        with self.graph() as graph:
            return graph.tasks.of_run(RunId(run))

    def done(self, run: str) -> int:
        """Return how many tasks of a run are done."""
        with self.graph() as graph:
            return graph.tasks.state_counts(RunId(run)).get(TaskState.DONE, 0)

    def workers(self, region: str) -> int:
        """Return how many workers of a region live."""
        with self.graph() as graph:
            return len(graph.instances.workers(region))

    def counters(self, run: str) -> Counters:
        """Hold the steps logs against the histories of a run."""
        with self.graph() as graph:
            tasks = graph.tasks.of_run(RunId(run))
            before: dict[TaskId, list[TaskId]] = {}
            for task in tasks:
                before[task.id] = [r.id for r in graph.tasks.ancestors(task.id) if r.distance == 1]
        facts = step_records(self.stack())
        return count(facts, tasks, before, living(facts))

    @contextmanager
    def graph(self) -> Iterator[GraphStores]:
        """Yield the graph store, as an operator reaches it."""
        stack = self.stack()
        settings = load(stack.settings(next(iter(stack.regions)))).settings
        with ExitStack() as closing:
            yield Operator(settings, closing, patience_s=30.0).graph

    def _popen(self, *arguments: str) -> subprocess.Popen[bytes]:
        with self.log_path.open("ab") as log:
            return subprocess.Popen(
                tied([*COMMAND, *arguments]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environ,
                start_new_session=True,
            )


def write_graph(path: Path, names: list[str], edges: list[list[str]], runtime_s: float) -> Path:
    """Write a graph file whose nodes all take the same time."""
    nodes = [{"id": name, "runtime_s": runtime_s} for name in names]
    path.write_text(json.dumps({"name": path.stem, "nodes": nodes, "edges": edges}))
    return path


def layered(width: int, depth: int) -> tuple[list[str], list[list[str]]]:
    """Return names and edges of a graph in which each task waits for two of the layer before."""
    names = [f"t{layer}.{n}" for layer in range(depth) for n in range(width)]
    edges = [
        [f"t{layer - 1}.{before}", f"t{layer}.{n}"]
        for layer in range(1, depth)
        for n in range(width)
        for before in {n, (n + 1) % width}
    ]
    return names, edges


def all_done_once(tasks: list[Task]) -> bool:
    """Say whether every task has exactly one accepted completion."""
    return all([entry.state.value for entry in t.history].count("done") == 1 for t in tasks)


def id_of(run: str, name: str) -> TaskId:
    """Return a task's id."""
    return task_id(RunId(run), name)
