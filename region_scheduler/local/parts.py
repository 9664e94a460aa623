"""The programs of a stack, as the supervisor runs them."""

from __future__ import annotations

import dataclasses
import http.client
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from region_scheduler.assembly.environment import inherited
from region_scheduler.assembly.working import READY_SUFFIX
from region_scheduler.config.load import to_environment
from region_scheduler.local import broker
from region_scheduler.local.addresses import HOST
from region_scheduler.local.stack import Stack
from region_scheduler.local.supervisor import Program

ENGINE = "engine"
_PROBE_S = 1.0


def programs(stack: Stack, concurrency: int) -> list[Program]:
    """Return every program: our engine and brokers, then each region's `serve`, then its worker.

    Args:
        stack: Its directories are there.
        concurrency: Attempts at once in each worker.

    Raises:
        Misconfigured: A broker is needed and there is no server for one.
    """
    engines = [] if stack.store else [_engine(stack)]
    brokers = [_broker(stack, region) for region, at in stack.regions.items() if at.broker]
    serving = [_serve(stack, region) for region in stack.regions]
    working = [_worker(stack, region, concurrency) for region in stack.regions]
    return [*engines, *brokers, *serving, *working]


def url_of(stack: Stack, part: str) -> str:
    """Return where a part answers, without secrets; empty for a worker."""
    kind, _, region = part.partition(" ")
    match kind:
        case "engine":
            return " ".join(stack.engine_url(region) for region in stack.regions)
        case "broker":
            return f"redis://{HOST}:{stack.regions[region].broker}"
        case "serve":
            return stack.api_url(region)
    return ""


def environment(stack: Stack, region: str) -> dict[str, str]:
    """Return the environment of a process of a region: ours, with the stack's settings on top."""
    return inherited() | to_environment(stack.settings(region))


def _engine(stack: Stack) -> Program:
    ports = [at.engine for at in stack.regions.values()]
    options = {
        "--ports": ",".join(map(str, ports)),
        "--host": HOST,
        "--data": str(stack.state_dir / "engine"),
        "--regions": ",".join(stack.regions),
    }
    module = [sys.executable, "-m", "region_scheduler.embedded.arango", "--cluster-rules"]
    return Program(
        name=ENGINE,
        argv=[*module, *(word for pair in options.items() for word in pair)],
        environ=inherited(),
        log_path=stack.logs / "engine.log",
        is_ready=lambda _pid: _says(ports[0], "/_api/version") in {200, 401},
    )


def _broker(stack: Stack, region: str) -> Program:
    port, password = stack.regions[region].broker, stack.secrets.broker_password
    config = broker.write_config(stack.directory(region) / "broker", port, password)
    return Program(
        name=f"broker {region}",
        argv=[broker.find_server(), str(config)],
        environ=inherited(),
        log_path=stack.logs / f"broker-{region}.log",
        is_ready=lambda _pid: broker.answers(port, password),
    )


def _serve(stack: Stack, region: str) -> Program:
    port = stack.regions[region].api
    return _ours(stack, region, "serve", 1, lambda _pid: _says(port, "/healthz") == 200)


def _worker(stack: Stack, region: str, concurrency: int) -> Program:
    work = stack.directory(region) / "work"
    more = {"worker": {"concurrency": concurrency}}
    program = _ours(stack, region, "worker", 2, partial(_is_marked, work))
    return dataclasses.replace(program, environ={**program.environ, **to_environment(more)})


def _ours(
    stack: Stack, region: str, command: str, stage: int, is_ready: Callable[[int], bool]
) -> Program:
    """Return one of our own processes, started without the command line's imports."""
    return Program(
        name=f"{command} {region}",
        argv=[sys.executable, "-m", f"region_scheduler.cli.{command}"],
        environ=environment(stack, region),
        log_path=stack.logs / f"{command}-{region}.log",
        is_ready=is_ready,
        stage=stage,
    )


def _is_marked(work: Path, pid: int) -> bool:
    return (work / f"{pid}{READY_SUFFIX}").exists()


def _says(port: int, path: str) -> int:
    """Return the status of an answer; 0 if there is none."""
    link = http.client.HTTPConnection(HOST, port, timeout=_PROBE_S)
    try:
        link.request("GET", path)
        return link.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        link.close()
