"""The programs of a stack, as the supervisor runs them."""

from __future__ import annotations

import http.client
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from region_scheduler.assembly.environment import inherited
from region_scheduler.assembly.working import READY_SUFFIX
from region_scheduler.config.load import Values, to_environment
from region_scheduler.local import broker
from region_scheduler.local.addresses import HOST, free_ports
from region_scheduler.local.stack import Stack
from region_scheduler.local.supervisor import Program

ENGINE = "engine"
_PROBE_S = 1.0


def programs(stack: Stack, concurrency: int, distant_ms: float | None = None) -> list[Program]:
    """Return every program: our engine and brokers, then each region's `serve`, then its worker.

    Args:
        stack: Its directories are there.
        concurrency: Attempts at once in each worker.
        distant_ms: See `engine`.

    Raises:
        Misconfigured: A broker is needed and there is no server for one.
    """
    engines = [] if stack.store else [engine(stack, distant_ms)]
    brokers = [broker_of(stack, region) for region, at in stack.regions.items() if at.broker]
    serving = [serving_of(stack, region) for region in stack.regions]
    worker = {"concurrency": concurrency}
    working = [worker_of(stack, region, {"worker": worker}) for region in stack.regions]
    return [*engines, *brokers, *serving, *working]


def parts_of(stack: Stack, region: str) -> list[str]:
    """Return the names of a region's parts: all of its processes."""
    kinds = ("broker", "serve", "worker") if stack.regions[region].broker else ("serve", "worker")
    return [f"{kind} {region}" for kind in kinds]


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


def engine(stack: Stack, distant_ms: float | None = None) -> Program:
    """Return our own engine.

    Args:
        stack: Its directories are there.
        distant_ms: If given, all writes are decided in a place apart from the stack's regions, and
            the followers of these are so late, milliseconds; each region can be cut off from it.
    """
    ports, regions = [at.engine for at in stack.regions.values()], list(stack.regions)
    options = {"--host": HOST, "--data": str(stack.state_dir / "engine")}
    if distant_ms is not None:
        ports, regions = [*free_ports(1), *ports], ["elsewhere", *regions]
        options["--lag-ms"] = f"{distant_ms:g}"
    options |= {"--ports": ",".join(map(str, ports)), "--regions": ",".join(regions)}
    module = [sys.executable, "-m", "region_scheduler.embedded.arango", "--cluster-rules"]
    module += ["--fault-control"] if distant_ms is not None else []
    return Program(
        name=ENGINE,
        argv=[*module, *(word for pair in options.items() for word in pair)],
        environ=inherited(),
        log_path=stack.logs / "engine.log",
        is_ready=lambda _pid: _says(ports[0], "/_api/version") in {200, 401},
    )


def broker_of(stack: Stack, region: str) -> Program:
    """Return the broker of a region; its settings are written here.

    Raises:
        Misconfigured: There is no server for it.
    """
    port, password = stack.regions[region].broker, stack.secrets.broker_password
    config = broker.write_config(stack.directory(region) / "broker", port, password)
    return Program(
        name=f"broker {region}",
        argv=[broker.find_server(), str(config)],
        environ=inherited(),
        log_path=stack.logs / f"broker-{region}.log",
        is_ready=lambda _pid: broker.answers(port, password),
    )


def serving_of(stack: Stack, region: str, more: Values | None = None, number: int = 1) -> Program:
    """Return a serving process of a region.

    Args:
        stack: Its directories are there.
        region: Its region.
        more: Settings on top of the stack's; those after the first need a port of their own.
        number: Which of its region, from 1.
    """
    port = (more or {}).get("http", {}).get("port", stack.regions[region].api)
    return _ours(
        stack, region, "serve", 1, lambda _pid: _says(port, "/healthz") == 200, more, number
    )


def worker_of(stack: Stack, region: str, more: Values | None = None) -> Program:
    """Return a worker of a region, with settings on top of the stack's."""
    work = stack.directory(region) / "work"
    return _ours(stack, region, "worker", 2, partial(_is_marked, work), more)


def _ours(
    stack: Stack,
    region: str,
    command: str,
    stage: int,
    is_ready: Callable[[int], bool],
    more: Values | None,
    number: int = 1,
) -> Program:
    """Return one of our own processes, started without the command line's imports."""
    which = "" if number == 1 else f"-{number}"
    return Program(
        name=f"{command}{which} {region}",
        argv=[sys.executable, "-m", f"region_scheduler.cli.{command}"],
        environ=environment(stack, region) | to_environment(more or {}),
        log_path=stack.logs / f"{command}{which}-{region}.log",
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
