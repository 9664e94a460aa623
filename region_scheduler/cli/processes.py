"""`up`, `serve`, `worker`, `demo`: commands that are, or run, processes of the stack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from region_scheduler.cli.edge import keep_private
from region_scheduler.cli.options import Json, Region, Regions, StateDir, words
from region_scheduler.cli.output import Output, print_line

if TYPE_CHECKING:
    from region_scheduler.local.up import LocalStack, PartLine

Concurrency = Annotated[
    int | None, typer.Option("--concurrency", min=1, max=1000, help="Attempts at once.")
]


def up(
    regions: Regions = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65000, help="First of its ports; 0 takes free ones.")
    ] = 0,
    concurrency: Concurrency = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Start the whole stack on this machine, and keep it up until Ctrl-C."""
    from region_scheduler.config.load import load
    from region_scheduler.local.leftovers import remove_dead_demos
    from region_scheduler.local.stack import store_of
    from region_scheduler.local.up import LocalStack, Wish
    from region_scheduler.runtime.service import Service
    from region_scheduler.runtime.system import SystemClock, UuidIds

    keep_private()
    output = Output(as_json)
    wanted = _checked(words(regions, "--regions"))
    settings = load().settings
    wish = Wish(
        state_dir=(state_dir or Path(settings.paths.state_dir)).absolute(),
        regions=wanted or settings.regions,
        port=port,
        broker_url=settings.broker.url,
        store=store_of(settings.arango),
        concurrency=concurrency or settings.worker.concurrency,
    )
    remove_dead_demos(output.note)
    stack = LocalStack(wish, SystemClock(), UuidIds(), output.note)
    output.note(f"starting {', '.join(stack.stack.regions)} in {wish.state_dir}")
    told = _Told(stack, output)
    Service([stack, told], stop_s=60.0).run()
    output.note("stopped")
    if not told.was_up:
        raise KeyboardInterrupt
    return 0


def serve(
    region: Region = None,
    port: Annotated[int | None, typer.Option("--port", min=0, max=65535)] = None,
    state_dir: StateDir = None,
) -> int:
    """Run a region's scheduler, resource manager, cluster manager and API."""
    from region_scheduler.cli import serve as process
    from region_scheduler.cli.session import flags_for

    return process.run(flags_for(state_dir, region, {"http": {"port": port}}))


def worker(
    region: Region = None,
    pool: Annotated[
        str | None, typer.Option("--pool", help="Queue pools to be fed from, with commas.")
    ] = None,
    concurrency: Concurrency = None,
    has_threads: Annotated[
        bool, typer.Option("--threads", help="Threads instead of child processes.")
    ] = False,
    state_dir: StateDir = None,
) -> int:
    """Run one more worker of a region; it joins the stack of the state directory."""
    from region_scheduler.cli import worker as process
    from region_scheduler.cli.session import flags_for

    wanted = {
        "pools": words(pool, "--pool") or None,
        "concurrency": concurrency,
        "kind": "threads" if has_threads else None,
    }
    return process.run(flags_for(state_dir, region, {"worker": wanted}))


def demo(
    is_quiet: Annotated[
        bool, typer.Option("--quiet", help="Let nothing go wrong: no fault is made.")
    ] = False,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> int:
    """Provision three landing zones over three regions, and lose one of these meanwhile."""
    from region_scheduler.cli.demonstration import run

    return run(Output(as_json), state_dir, is_quiet=is_quiet)


def _checked(regions: list[str]) -> list[str]:
    """Refuse names that could not be part of queue and file names, before anything is written."""
    from region_scheduler.config.load import load
    from region_scheduler.errors import InvalidInput, Misconfigured

    try:
        load({"regions": regions or None})
    except Misconfigured as refused:
        expected = "; ".join(refused.problems)
        typed = ",".join(regions)
        raise InvalidInput(field="--regions", value=typed, expected=expected) from refused
    return regions


class _Told:
    """A part of a service: tells what runs once all of it does."""

    name = "lines"

    def __init__(self, stack: LocalStack, output: Output) -> None:
        self._stack = stack
        self._output = output
        self.was_up = False

    def start(self) -> None:
        self.was_up = True
        lines = self._stack.lines()
        for line in lines:
            self._output.note(str(line))
        total = sum(line.memory.pss for line in lines)
        self._output.note(f"ready: {len(lines)} parts, {total:.0f} MiB; Ctrl-C stops them")
        if self._output.as_json:
            print_line(json.dumps({"items": [part_row(line) for line in lines]}))

    def stop(self) -> None:
        self._output.note("stopping")

    def join(self, timeout_s: float) -> bool:  # noqa: ARG002 - nothing runs
        return True


def part_row(line: PartLine) -> dict[str, Any]:
    """Return what is told of a part, for programs."""
    return {
        "part": line.name,
        "pid": line.pid,
        "pss_mib": round(line.memory.pss, 1),
        "rss_mib": round(line.memory.rss, 1),
        "url": line.url,
    }
