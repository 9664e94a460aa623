"""One fault at every port call of a run: whatever happens at it, the run comes to its end.

A failure names each fault that did harm, e.g. `chain tasks.write#3:lost-after`; to replay it:
`play(CHAIN, directory, Fault.of("tasks.write#3:lost-after"))`.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from region_scheduler.simulation.faults import Fault, FaultyWorld, Kind
from tests.simulation.scenarios import (
    APPROVAL,
    CHAIN,
    CONTENDED,
    DIAMOND,
    FAILING,
    HOME,
    LOST,
    REGIONS,
    Scenario,
    a_plan,
    covering,
    graph_of,
    is_over,
    play,
    spec,
    submit,
    survey,
)

_MEMORY = Path("/dev/shm")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    made = Path(mkdtemp(dir=_MEMORY)) if _MEMORY.is_dir() else tmp_path
    yield made
    shutil.rmtree(made, ignore_errors=True)


def harmful(scenario: Scenario, place: Path, every: int) -> list[str]:
    """Return every fault of a covering sample that did harm, with what is wrong then."""
    found: list[str] = []
    faults = survey(scenario, place / "survey")
    sample = covering(faults, every)
    assert len(sample) > 100, "the run is long enough to be worth it"
    assert {fault.kind for fault in sample} == set(Kind)
    for fault in sample:
        directory = place / str(fault)
        struck, problems = play(scenario, directory, fault)
        shutil.rmtree(directory)
        if not struck.has_struck:
            problems = [*problems, "the fault never happened: the run is not replayable"]
        if problems:
            found.append(f"{scenario.name} {fault}: {'; '.join(problems)}")
    return found


def test_a_chain_with_a_lock_survives_a_fault_at_every_point(place: Path) -> None:
    assert harmful(CHAIN, place, every=4) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario", [DIAMOND, CONTENDED, FAILING, APPROVAL, LOST], ids=lambda s: s.name
)
def test_every_scenario_survives_a_fault_at_every_point(scenario: Scenario, place: Path) -> None:
    assert harmful(scenario, place, every=3) == []


@pytest.mark.soak
@pytest.mark.parametrize(
    "scenario", [CHAIN, DIAMOND, CONTENDED, FAILING, APPROVAL, LOST], ids=lambda s: s.name
)
def test_every_scenario_survives_every_single_fault(scenario: Scenario, place: Path) -> None:
    assert harmful(scenario, place, every=1) == []


@pytest.mark.parametrize(
    "scenario", [DIAMOND, CONTENDED, FAILING, APPROVAL, LOST], ids=lambda s: s.name
)
def test_every_scenario_ends_well_without_a_fault(scenario: Scenario, place: Path) -> None:
    assert survey(scenario, place) != []


def test_nothing_is_lost_with_the_relational_stores_at_whichever_moment(place: Path) -> None:
    """The files of all regions are deleted under their processes, before each call to one."""
    losses = [f for f in survey(DIAMOND, place / "survey") if f.kind is Kind.STORE_GONE]
    assert {fault.point.partition(".")[0] for fault in losses} == {"backlog", "metadata"}

    harmful = {}
    for fault in losses:
        struck, problems = play(DIAMOND, place / str(fault), fault)
        shutil.rmtree(place / str(fault))
        if problems or not struck.has_struck:
            harmful[str(fault)] = problems

    assert harmful == {}


@pytest.mark.parametrize("is_waking", [True, False], ids=["woken", "never woken"])
def test_a_region_that_loses_its_store_after_every_attempt_runs_each_task_once(
    place: Path, is_waking: bool
) -> None:
    world = FaultyWorld(place, REGIONS, None)
    world.is_waking = is_waking
    names = [f"t{n:02}" for n in range(24)]
    tasks = [spec(name, REGIONS[n % 2]) for n, name in enumerate(names)]
    edges = [f"{names[n]}>{names[n + 9]}" for n in range(15)]
    submit(world, graph_of(world), a_plan(tasks, *edges))

    for _ in range(200):
        for file in place.glob(f"{HOME}.db*"):
            file.unlink()
        world.clock.advance(world.timings.renew_every_s / 2)
        world.renew()
        world.slow_path()
        for region in world.regions.values():
            world.perform(region, region.workers[0].work, region.workers[0])

    assert is_over(graph_of(world))
    assert Counter(effect.name for effect in world.log.effects) == dict.fromkeys(names, 1)


@pytest.mark.parametrize(
    ("scenario", "fault"),
    [
        # Units of a semaphore half made: tasks that need two of it were never picked again.
        (CONTENDED, "slots.insert#0:crash-after"),
        (CONTENDED, "slots.insert#1:unavailable"),
    ],
    ids=["made but one", "made but none"],
)
def test_faults_that_once_did_harm(scenario: Scenario, fault: str, place: Path) -> None:
    struck, problems = play(scenario, place, Fault.of(fault))

    assert struck.has_struck
    assert problems == []
