"""`simulate`: a seed is a world that can be lived again; a broken product is seen to be broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from region_scheduler.cli.app import run as cli
from region_scheduler.simulation import campaign
from region_scheduler.simulation.campaign import simulate
from region_scheduler.simulation.mutants import MUTANTS
from region_scheduler.simulation.seeded import play

SHORT = 0.2


@pytest.mark.parametrize("seed", [3, 6])
def test_a_seed_keeps_every_promise_though_much_goes_wrong(seed: int) -> None:
    outcome = play(seed, 0.5)

    assert list(outcome.report.lines())[-1].split(":")[0] == "14 promises checked, 0 violations"
    assert outcome.faults.total() > 0
    assert sum(outcome.runs.values()) > 0
    assert set(outcome.runs) <= {"done", "failed", "cancelled"}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_many_seeds_keep_every_promise() -> None:
    found = simulate(range(1, 21), 1.0)

    assert [one.command for one in found.failures] == []
    assert found.faults.total() > 500


def test_the_same_seed_is_the_same_world_whatever_the_hashes_of_texts() -> None:
    def hash_under(number: str) -> str:
        told = subprocess.run(
            [sys.executable, "-m", "region_scheduler", "simulate", "--seeds", "6", "--json",
             "--minutes", str(SHORT)],
            env={**os.environ, "PYTHONHASHSEED": number},
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        )  # fmt: skip
        found = json.loads(told.stdout)
        assert found["ok"] is True
        return str(found["trace_hash"])

    assert hash_under("0") == hash_under("4242")
    assert play(6, SHORT).trace_hash != play(7, SHORT).trace_hash


def test_with_none_of_its_faults_nothing_goes_wrong() -> None:
    outcome = play(6, SHORT, only=())

    assert (outcome.struck, outcome.faults.total()) == ({}, 0)


def test_a_mutant_is_found_by_the_promise_that_it_breaks_and_its_seed_is_green_without() -> None:
    mutant = MUTANTS["skip-fencing"]
    found = simulate(range(mutant.seed, mutant.seed + 20), 1.0, mutant="skip-fencing")

    assert found.is_killed
    (failure,) = found.failures
    seed = failure.outcome.seed
    assert failure.command.endswith(f"--seeds {seed} --minutes 1 --mutant skip-fencing")
    assert any(line.lstrip().startswith("entry ") for line in failure.lines())
    assert found.document()["mutant"] == {
        "name": "skip-fencing",
        "breaks": mutant.breaks,
        "killed": True,
        "green_without": True,
    }


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_found(name: str) -> None:
    first = MUTANTS[name].seed
    assert simulate(range(first, first + 20), 1.0, mutant=name).is_killed


def test_of_many_faults_the_few_that_matter_are_found() -> None:
    needed = {3, 17}
    smallest = list(range(40))
    for attempt in campaign.halved(range(40)):
        if needed <= set(attempt.left):
            attempt.is_enough = True
            smallest = attempt.left

    assert set(smallest) == needed


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_seed_that_fails_names_the_command_that_plays_it_again() -> None:
    """The product is broken behind its back."""
    mutant = MUTANTS["free-held-slots"]
    with mutant.at_work():
        found = simulate([mutant.seed], 1.0)
        (failure,) = found.failures
        again = play(mutant.seed, 1.0, list(failure.faults))

    assert mutant.breaks in failure.outcome.report.broken
    assert mutant.breaks in again.report.broken
    assert failure.command.startswith(f"region-scheduler simulate --seeds {mutant.seed} ")
    assert found.document()["failures"][0]["command"] == failure.command


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["--seeds", "9..3"], "--seeds"),
        (["--seeds", "many"], "--seeds"),
        (["--only", "3,x"], "--only"),
        (["--mutant", "no-such"], "--mutant"),
    ],
)
def test_bad_input_is_refused_by_name(
    arguments: list[str], field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(["simulate", *arguments]) == 2
    assert field in capsys.readouterr().err


def test_nothing_is_left_of_a_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("region_scheduler.simulation.seeded._MEMORY", tmp_path)

    play(6, SHORT)

    assert list(tmp_path.iterdir()) == []
