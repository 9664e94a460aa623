"""`demo` from beginning to end."""

from __future__ import annotations

import shutil
import signal
from contextlib import ExitStack
from pathlib import Path

from region_scheduler.assembly.operator import Operator
from region_scheduler.cli import close_on_interrupt
from region_scheduler.cli.edge import keep_private
from region_scheduler.cli.output import Output
from region_scheduler.cli.progress import Glance
from region_scheduler.cli.watching import watch_until_ended
from region_scheduler.config.load import load
from region_scheduler.errors import OutcomeUnknown, Unavailable
from region_scheduler.identity.actors import Actor, ActorKind
from region_scheduler.local import demo
from region_scheduler.local.leftovers import demo_directory, remove_dead_demos
from region_scheduler.local.stack import store_of
from region_scheduler.local.up import LocalStack, Wish
from region_scheduler.runtime.logs import set_up_logging
from region_scheduler.runtime.system import SystemClock, UuidIds

_STOP_S = 60.0
EXIT_BAD = 1


def run(output: Output, state_dir: Path | None) -> int:
    """Run the demo; return 0 if every task was done and no promise was broken.

    Args:
        output: For lines and the result.
        state_dir: Kept if given; otherwise a temporary one, kept only if something went wrong.

    Raises:
        Misconfigured, Unavailable: The stack does not come up.
    """
    set_up_logging(level="error")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    keep_private()
    close_on_interrupt()
    remove_dead_demos(output.note)
    directory = state_dir or demo_directory()
    is_ok = False
    try:
        is_ok = _run(output, directory.absolute())
    finally:
        if state_dir is None and is_ok:
            shutil.rmtree(directory, ignore_errors=True)
        elif not is_ok:
            output.note(f"logs and states are in {directory}")
    return 0 if is_ok else EXIT_BAD


def _run(output: Output, directory: Path) -> bool:
    clock, ids = SystemClock(), UuidIds()
    began_at = clock.monotonic()
    terraform = demo.terraform_name()
    if terraform == "absent":
        output.note("no terraform is to be had on this machine: its steps are simulated")
    wish = Wish(
        state_dir=directory,
        store=store_of(load().settings.arango),
        concurrency=demo.CONCURRENCY,
    )
    stack = LocalStack(wish, clock, ids, output.note)
    output.note(f"starting {', '.join(stack.stack.regions)} in {directory}")
    try:
        stack.start()
        up_at = clock.monotonic()
        for line in stack.lines():
            output.note(str(line))
        output.note("kill any of these pids, at any time: the runs still end done")
        with ExitStack() as closing:
            first = next(iter(stack.stack.regions))
            settings = load(stack.stack.settings(first)).settings
            operator = Operator(settings, closing, Actor(ActorKind.ROLE, "demo"))
            submitted = demo.submit_zones(operator, operator.graph.regions.all(), terraform)
            answers = demo.AutoAnswer(operator, output.note)
            watch_until_ended(
                operator,
                [one.id for one, _ in submitted],
                output,
                None,
                lambda seen: _answer(answers, seen),
            )
            timing = demo.Timing(began_at=began_at, up_at=up_at, ended_at=clock.monotonic())
            memory_mib = sum(line.memory.pss for line in stack.lines())
            found = demo.report(operator, stack.stack, submitted, timing, terraform)
            found |= {"answered": answers.count, "memory_mib": round(memory_mib)}
    finally:
        stack.stop()
        stack.join(_STOP_S)
    output.result(found, lambda: demo.report_lines(found))
    return bool(found["ok"])


def _answer(answers: demo.AutoAnswer, seen: Glance) -> None:
    try:
        answers(seen.tasks)
    except (Unavailable, OutcomeUnknown):
        return  # somebody killed the engine, as invited; the next look asks again
