"""Schedulers that are killed or stopped, for real, at each of their writes: the work goes on.

The writes are those that an undisturbed scheduler is seen to make, each where it is first made. All
trials of a test run at once.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import product

import pytest

from region_scheduler.domain.lease import LOCAL_TIMINGS
from region_scheduler.domain.states import RunState
from tests.integration.admission.test_kill import is_stopped
from tests.integration.engine.server import EngineProcess
from tests.integration.local.running import all_done_once, eventually
from tests.integration.scheduling.trials import Place, Trial, all_going_on
from tests.integration.scheduling.victim import NEVER, Moment
from tests.services import valkey

pytestmark = pytest.mark.timeout(300)
RECOVERY_S = LOCAL_TIMINGS.lease_s + 3
PATIENCE_S = 120.0
TWENTY = [pytest.mark.soak, pytest.mark.timeout(3600)]
REPEATS = [pytest.param(1, id="once"), pytest.param(20, id="20 times", marks=TWENTY)]
POINTS = (
    "tasks.write by ResourceManager._lose",
    "regions.write by Owner.may_promote",
    "backlog.add by Batcher._discover",
    "metadata.record by Batcher._note",
    "tasks.write by Scheduler._claim",
    "slots.insert by make_units.<locals>.<listcomp>",
    "slots.write by _take_unit",
    "queue.publish by Scheduler._dispatch",
    "tasks.write by Scheduler._requeue",
    "backlog.add by Scheduler._give_back",
    "backlog.rest by Scheduler._give_back",
    "backlog.remove by Scheduler.tick",
    "conflicts.insert by record",
    "tasks.write by Settler._move_on",
    "slots.write by ResourceManager._sweep_slots",
    "runs.write by Settler._end",
    "backlog.prepare by Mender.tick",
    "metadata.record by Mender._record",
)
"""Every write of a scheduler: the port's method, and the function that calls it."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("scheduling")
    engine = EngineProcess(folder / "engine", "--cluster-rules")
    engine.start()
    try:
        with valkey(folder / "broker") as broker:
            yield Place(f"http://127.0.0.1:{engine.ports['local']}", broker.url, folder)
    finally:
        engine.end()


@pytest.mark.parametrize("times", REPEATS)
def test_killed_at_any_write_a_second_scheduler_goes_on_within_its_lease(
    place: Place, times: int
) -> None:
    # What is before one write is after another, but for the very first and what lies between.
    sides = (True,) if times == 1 else (False, True)
    for n, is_after in product(range(times), sides):
        moments = [Moment(point, is_after, signal.SIGKILL) for point in POINTS]
        with ExitStack() as opened:
            names = [f"kill{n}-{k}-{is_after:d}" for k, _ in enumerate(moments)]
            trials = [Trial(place, name, opened) for name in names]
            killed(trials, moments)
            tell("killed", trials, is_bound=times > 1)


@pytest.mark.parametrize("times", REPEATS)
def test_stopped_at_any_write_and_taken_over_a_scheduler_changes_nothing_when_it_goes_on(
    place: Place, times: int
) -> None:
    moments = [Moment(point, False, signal.SIGSTOP) for point in POINTS]
    for n in range(times):
        with ExitStack() as opened:
            trials = [Trial(place, f"stop{n}-{k}", opened) for k, _ in enumerate(moments)]
            stopped(trials, moments)
            tell("stopped", trials, is_bound=times > 1)


def test_these_are_all_writes_that_schedulers_make_for_a_run(place: Place) -> None:
    """A new one has to be named above, and is tried then."""
    with ExitStack() as opened:
        trial = Trial(place, "undisturbed", opened)
        with all_going_on([trial], place.broker_url):
            trial.launch(NEVER)
            assert trial.victim
            assert trial.told.poll(PATIENCE_S)
            points, _ = trial.told.recv()
            trial.process.join(PATIENCE_S)
        assert_all_done_once(trial)
    assert set(points) == set(POINTS)


def killed(trials: Sequence[Trial], moments: Sequence[Moment]) -> None:
    with all_going_on(trials, trials[0].place.broker_url):
        begin(trials, moments, lambda trial: trial.process.exitcode is not None)
        for trial in trials:
            assert trial.process.exitcode == -signal.SIGKILL, trial.name
            eventually(lambda: trial.graph.slots.taken() == [], PATIENCE_S)  # noqa: B023
            assert_all_done_once(trial)


def stopped(trials: Sequence[Trial], moments: Sequence[Moment]) -> None:
    with all_going_on(trials, trials[0].place.broker_url):
        begin(trials, moments, lambda trial: is_stopped(trial.process.pid or 0))
        for trial in trials:
            eventually(trial.is_taken_over, PATIENCE_S)
            eventually(lambda: trial.graph.slots.taken() == [], PATIENCE_S)  # noqa: B023
        before = [(trial.revisions(), len(trial.log.effects)) for trial in trials]
        for trial in trials:
            os.kill(trial.process.pid or 0, signal.SIGCONT)
        for trial in trials:
            assert_refused(trial)
        for trial in trials:
            eventually(lambda: trial.graph.slots.taken() == [], PATIENCE_S)  # noqa: B023
            assert_all_done_once(trial)
        assert [(trial.revisions(), len(trial.log.effects)) for trial in trials] == before


def begin(
    trials: Sequence[Trial], moments: Sequence[Moment], is_hit: Callable[[Trial], bool]
) -> None:
    """Launch the victims, let each second scheduler begin when its first is hit, await the ends."""
    for trial, moment in zip(trials, moments, strict=True):
        trial.launch(moment)
    waiting = list(trials)

    def all_are_hit() -> bool:
        for trial in [trial for trial in waiting if is_hit(trial)]:
            trial.go_on()
            waiting.remove(trial)
        return not waiting

    eventually(all_are_hit, PATIENCE_S)
    eventually(lambda: all(trial.ended_at for trial in trials), PATIENCE_S)


def assert_refused(trial: Trial) -> None:
    """Assert that what a scheduler had begun before it was taken for dead decides nothing."""
    victim = trial.victim
    assert trial.told.poll(PATIENCE_S), trial.name
    _, late = trial.told.recv()
    trial.process.join(PATIENCE_S)
    # What it still wins of a free slot holds nothing, and is swept.
    assert set(late) <= {"slots.write", "slots.insert", "conflicts.insert"}, trial.name
    for task in trial.tasks():
        writers = [entry.by for entry in task.history]
        later = writers[writers.index(trial.successor) :] if trial.successor in writers else []
        assert victim not in later, trial.name


def assert_all_done_once(trial: Trial) -> None:
    """Assert that the run is done, and that each step ran once."""
    assert trial.now().state is RunState.DONE, trial.name
    assert all_done_once(trial.tasks()), trial.name
    assert Counter(effect.name for effect in trial.log.effects) == Counter("abxyz"), trial.name


def tell(what: str, trials: Sequence[Trial], *, is_bound: bool) -> None:
    """Print how long the work stood still; on a quiet machine it is held to the promise."""
    stood_still_s = sorted(trial.went_on_at - trial.began_at for trial in trials)
    took_s = max(trial.ended_at - trial.began_at for trial in trials)
    slowest, median = stood_still_s[-1], stood_still_s[len(stood_still_s) // 2]
    print(  # noqa: T201
        f"{len(trials)} {what}: the work goes on after {slowest:.2f} s at the latest (median"
        f" {median:.2f} s) of {RECOVERY_S:g} s, the last run ends after {took_s:.2f} s"
    )
    assert slowest <= RECOVERY_S or not is_bound
