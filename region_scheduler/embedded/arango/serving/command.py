"""The command line of the server."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from region_scheduler.embedded.arango.control import FaultControl
from region_scheduler.embedded.arango.engine import Engine
from region_scheduler.embedded.arango.serving.server import serve
from region_scheduler.embedded.arango.storage.log import LogDamaged

EXIT_OK = 0
EXIT_LOG_FAILED = 74
EXIT_MISCONFIGURED = 78
_PORT_MAX = 65_535


class _OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _OneLineParser(
        prog="python -m region_scheduler.embedded.arango",
        description="A test and single-machine server for ArangoDB's HTTP API. It is not ArangoDB.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--port", type=int, default=8529, help="port of the first region; the others follow it")
    add("--ports", help="one port for each region, with commas; instead of --port; 0 takes any")
    add("--host", default="127.0.0.1", help="address to listen on")
    add("--data", type=Path, help="directory of the data; without it they live in memory only")
    add("--regions", default="local", help="names of the regions, with commas")
    add("--lag-ms", type=float, default=0.0, help="how late followers in all regions but the first")
    add("--rtt-ms", type=float, default=0.0, help="round trip from all regions but the first")
    add("--cluster-rules", action="store_true", help="hold to the restrictions of a cluster")
    add("--fault-control", action="store_true", help="serve /_admin/faults")
    add("--root-password", default="", help="of the user root, when the data are new")
    add("--no-authentication", action="store_true", help="answer requests without a user")
    add("--jwt-secret", default="", help="key of the tokens")
    add("--seed", type=int, help="for everything that is left to chance")
    return parser


def _ports(parser: argparse.ArgumentParser, options: argparse.Namespace, count: int) -> list[int]:
    if options.ports is None:
        first = options.port
        ports = [first + place if first else 0 for place in range(count)]
    else:
        try:
            ports = [int(text) for text in options.ports.split(",")]
        except ValueError:
            parser.error(f"argument --ports: not a list of ports: {options.ports}")
    if len(ports) != count:
        parser.error(f"argument --ports: {len(ports)} ports for {count} regions")
    if not all(0 <= port <= _PORT_MAX for port in ports):
        parser.error(f"a port must be from 0 to {_PORT_MAX}: {ports}")
    return ports


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server and return its exit code.

    Returns:
        0 after SIGTERM or SIGINT, 74 if the log could not be written, 78 if a port or the data
        directory cannot be used. Bad arguments exit with 2.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    regions = options.regions.split(",")
    if not all(regions) or len(set(regions)) < len(regions):
        parser.error(f"argument --regions: names must differ and not be empty: {options.regions}")
    if options.lag_ms < 0 or options.rtt_ms < 0:
        parser.error("--lag-ms and --rtt-ms must not be negative")
    ports = _ports(parser, options, len(regions))
    try:
        engine = Engine(
            options.data,
            is_cluster=options.cluster_rules,
            regions=regions,
            seed=options.seed,
            root_password=options.root_password,
            is_authenticating=not options.no_authentication,
            jwt_secret=options.jwt_secret,
            has_fault_control=options.fault_control,
        )
    except LogDamaged as error:
        return _complain(str(error))
    control = FaultControl(engine)
    for region in regions[1:]:
        control.set_lag(region, options.lag_ms / 1000)
        control.set_rtt(region, options.rtt_ms / 1000)
    try:
        failure = _run(engine, options.host, ports)
    except OSError as error:
        engine.close()
        return _complain(f"cannot listen on {options.host}: {error.strerror or error}")
    if failure is not None:
        _complain(str(failure))
        return EXIT_LOG_FAILED
    engine.close()
    return EXIT_OK


def _run(engine: Engine, host: str, ports: Sequence[int]) -> Exception | None:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(serve(engine, host, ports, sys.stdout))
    return uvloop.run(serve(engine, host, ports, sys.stdout))


def _complain(text: str) -> int:
    print(text.replace("\n", " "), file=sys.stderr)  # noqa: T201  # a command speaks there
    return EXIT_MISCONFIGURED
