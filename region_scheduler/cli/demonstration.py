"""`demo` from beginning to end."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event

from region_scheduler.assembly.operator import Operator
from region_scheduler.cli import close_on_interrupt
from region_scheduler.cli.edge import keep_private
from region_scheduler.cli.output import Output
from region_scheduler.cli.progress import Glance
from region_scheduler.cli.watching import watch_until_ended
from region_scheduler.config.load import load
from region_scheduler.errors import OutcomeUnknown, Unavailable
from region_scheduler.identity.actors import Actor, ActorKind
from region_scheduler.local.demo import work
from region_scheduler.local.demo.drill import Drill, Seen
from region_scheduler.local.demo.report import Timing, report, report_lines
from region_scheduler.local.leftovers import demo_directory, remove_dead_demos
from region_scheduler.local.stack import REGIONS, store_of
from region_scheduler.local.up import LocalStack, Wish
from region_scheduler.runtime.logs import set_up_logging
from region_scheduler.runtime.system import SystemClock, UuidIds

_STOP_S = 60.0
EXIT_BAD = 1


def run(output: Output, state_dir: Path | None, *, is_quiet: bool) -> int:
    """Run the demo; return 0 if it showed all that it is to show.

    Args:
        output: For lines and the result.
        state_dir: Kept if given; otherwise a temporary one, kept only if something went wrong.
        is_quiet: Whether nothing is to go wrong.

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
        is_ok = _run(output, directory.absolute(), is_quiet=is_quiet)
    finally:
        if state_dir is None and is_ok:
            shutil.rmtree(directory, ignore_errors=True)
        elif not is_ok:
            output.note(f"logs and states are in {directory}")
    return 0 if is_ok else EXIT_BAD


def _run(output: Output, directory: Path, *, is_quiet: bool) -> bool:
    clock = SystemClock()
    began_at = clock.monotonic()
    terraform = work.terraform_name()
    if terraform == "absent":
        output.note("no terraform is to be had on this machine: its steps are simulated")
    wish = Wish(
        state_dir=directory,
        regions=REGIONS,
        store=store_of(load().settings.arango),
        concurrency=work.CONCURRENCY,
        distant_ms=work.STALE_MS,
    )
    local = LocalStack(wish, clock, UuidIds(), output.note)
    output.note(f"starting {', '.join(REGIONS)} in {directory}")
    try:
        local.start()
        up_at = clock.monotonic()
        for line in local.lines():
            output.note(str(line))
        output.note("kill any of these pids, at any time: the runs still end done")
        with _opened(local) as operator:
            plans = work.plans(operator, operator.graph.regions.all(), terraform)
            submitted = work.submit(operator, plans)
            answers = work.AutoAnswer(operator, output.note)
            with _drilled(local, output, is_quiet=is_quiet) as drilled:
                _watch(operator, submitted, answers, output)
                seen = drilled.result() if drilled else None
            if seen is not None:
                submitted += seen.submitted
                _watch(operator, submitted, answers, output)
            timing = Timing(began_at=began_at, up_at=up_at, ended_at=clock.monotonic())
            memory_mib = sum(line.memory.pss for line in local.lines())
            found = report(operator, local.stack, submitted, seen, timing, terraform, output.note)
            found |= {"answered": answers.count, "memory_mib": round(memory_mib)}
    finally:
        local.stop()
        local.join(_STOP_S)
    output.result(found, lambda: report_lines(found))
    return bool(found["ok"])


@contextmanager
def _opened(local: LocalStack) -> Iterator[Operator]:
    """Yield an operator of the last region, to which nothing happens as a whole."""
    *_, last = local.stack.regions
    with ExitStack() as closing:
        settings = load(local.stack.settings(last)).settings
        yield Operator(settings, closing, Actor(ActorKind.ROLE, "demo"))


@contextmanager
def _drilled(local: LocalStack, output: Output, *, is_quiet: bool) -> Iterator[Future[Seen] | None]:
    """Let things go wrong in a thread of their own; none of it goes on afterwards."""
    if is_quiet:
        yield None
        return
    stopping = Event()

    def drill() -> Seen:
        with _opened(local) as operator:
            return Drill(operator, local, output.note, stopping).run()

    with ThreadPoolExecutor(1, "drill") as threads:
        try:
            yield threads.submit(drill)
        finally:
            stopping.set()


def _watch(
    operator: Operator,
    submitted: Sequence[work.Submitted],
    answers: work.AutoAnswer,
    output: Output,
) -> None:
    def answer(seen: Glance) -> None:
        try:
            answers(seen.tasks)
        except (Unavailable, OutcomeUnknown):
            return  # somebody killed the engine, as invited; the next look asks again

    watch_until_ended(operator, [run.id for run, _ in submitted], output, None, answer)
