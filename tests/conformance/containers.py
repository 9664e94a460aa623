"""ArangoDB in containers: a single server, or a cluster of 3 agents, 3 DB-servers, 3 coordinators.

The cluster is started by hand as ArangoDB's documentation shows (deploy/cluster, manual start),
each member in a container of its own on a network of their own.
"""

from __future__ import annotations

import http.client
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager

from tests.services import free_port

IMAGE = "arangodb:3.12"
_PORT = 8529
_START_S = 300.0
_MEMBERS = range(1, 4)


class NotStarted(Exception):
    """A container did not come up; says what the tool or the server printed last."""


def find_tool() -> str | None:
    """Return docker or podman, whichever is there and answers."""
    for tool in ("docker", "podman"):
        if shutil.which(tool):
            ended = subprocess.run([tool, "info"], capture_output=True, check=False, timeout=60)
            if ended.returncode == 0:
                return tool
    return None


@contextmanager
def single(tool: str, mark: str) -> Iterator[str]:
    """Run a single server and yield its URL.

    Args:
        tool: docker or podman.
        mark: Begins the names of all containers.

    Raises:
        NotStarted: It did not answer in time.
    """
    port = free_port()
    with _container(tool, f"{mark}-single", [f"--publish=127.0.0.1:{port}:{_PORT}"], []):
        _wait(tool, f"{mark}-single", port)
        yield f"http://root:@127.0.0.1:{port}"


@contextmanager
def cluster(tool: str, mark: str) -> Iterator[str]:
    """Run a cluster of 3+3+3 and yield the URL of its first coordinator; see `single`."""
    agents = [f"{mark}-agent{n}" for n in _MEMBERS]
    endpoints = [f"--cluster.agency-endpoint=tcp://{agent}:{_PORT}" for agent in agents]
    port = free_port()
    with ExitStack() as running:
        running.enter_context(_network(tool, mark))
        for agent in agents:
            options = [
                f"--agency.my-address=tcp://{agent}:{_PORT}",
                "--agency.activate=true",
                "--agency.size=3",
                "--agency.supervision=true",
                f"--agency.endpoint=tcp://{agents[0]}:{_PORT}",
            ]
            running.enter_context(_member(tool, mark, agent, [], options))
        for role in ("dbserver", "coordinator"):
            for n in _MEMBERS:
                name = f"{mark}-{role}{n}"
                is_first = role == "coordinator" and n == 1
                published = [f"--publish=127.0.0.1:{port}:{_PORT}"] if is_first else []
                options = [
                    f"--cluster.my-role={role.upper()}",
                    f"--cluster.my-address=tcp://{name}:{_PORT}",
                    *endpoints,
                ]
                running.enter_context(_member(tool, mark, name, published, options))
        _wait(tool, f"{mark}-coordinator1", port)
        yield f"http://root:@127.0.0.1:{port}"


@contextmanager
def _network(tool: str, mark: str) -> Iterator[None]:
    _run(tool, "network", "create", mark)
    try:
        yield
    finally:
        subprocess.run([tool, "network", "rm", mark], capture_output=True, check=False)


def _member(
    tool: str, network: str, name: str, published: list[str], options: list[str]
) -> AbstractContextManager[None]:
    common = ["arangod", f"--server.endpoint=tcp://0.0.0.0:{_PORT}"]
    return _container(
        tool,
        name,
        [f"--network={network}", *published],
        [*common, "--server.authentication=false", *options],
    )


@contextmanager
def _container(tool: str, name: str, placed: list[str], command: list[str]) -> Iterator[None]:
    _run(
        tool,
        "run",
        "--detach",
        f"--name={name}",
        "--env=ARANGO_NO_AUTH=1",
        *placed,
        IMAGE,
        *command,
    )
    try:
        yield
    finally:
        subprocess.run([tool, "rm", "--force", "--volumes", name], capture_output=True, check=False)


def _run(tool: str, *words: str) -> None:
    ended = subprocess.run([tool, *words], capture_output=True, text=True, check=False)
    if ended.returncode:
        raise NotStarted(f"{tool} {words[0]}: {ended.stderr.strip()[-400:]}")


def _wait(tool: str, name: str, port: int) -> None:
    deadline = time.monotonic() + _START_S
    while not _answers(port):
        if time.monotonic() > deadline:
            logs = subprocess.run([tool, "logs", name], capture_output=True, text=True, check=False)
            raise NotStarted(f"{name} does not answer: {(logs.stdout + logs.stderr)[-400:]}")
        time.sleep(0.5)


def _answers(port: int) -> bool:
    """Tell whether collections can be listed: a coordinator speaks before its cluster is there."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
        try:
            connection.request("GET", "/_api/collection")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
