"""Every order of events around a claim, with what goes wrong at whichever moment.

`pytest -s` prints how many states there are. A broken rule shows that a fault would be found, by
the fewest events that lead to it.
"""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pytest

from region_scheduler.cli.app import run as cli
from region_scheduler.simulation.claiming.model import ClaimModel
from region_scheduler.simulation.claiming.mutants import BREAKAGES, hunt
from region_scheduler.simulation.claiming.state import State, Trouble
from region_scheduler.simulation.exploration import Explored, explore
from region_scheduler.simulation.mutants import MUTANTS

QUICK = (Trouble.REQUEST_LOST, Trouble.ANSWER_LOST, Trouble.MESSAGE_TWICE)
LONG = (Trouble.WORKER_PAUSED, Trouble.MESSAGE_SLOW)
NOT_PAUSED = tuple(trouble for trouble in Trouble if trouble is not Trouble.WORKER_PAUSED)
OTHERS = tuple(trouble for trouble in Trouble if trouble not in QUICK + LONG)


def explored(*troubles: Trouble, is_chain: bool = True) -> Explored[State]:
    found = explore(ClaimModel(frozenset(troubles), is_chain))
    told = f"{' and '.join(troubles) or 'nothing goes wrong'}, {'chain' if is_chain else 'pair'}"
    print(f"{told}: {found.states:,} states, {found.steps:,} steps")  # noqa: T201
    return found


@pytest.mark.parametrize("is_chain", [True, False], ids=["chain", "pair"])
def test_nothing_is_broken_where_nothing_goes_wrong(is_chain: bool) -> None:
    found = explored(is_chain=is_chain)

    assert (found.broken, found.path, found.is_whole) == ("", (), True)
    assert found.states > 1_000


@pytest.mark.parametrize("trouble", QUICK)
def test_nothing_is_broken_by_one_trouble_at_whichever_moment(trouble: Trouble) -> None:
    found = explored(trouble)

    assert (found.broken, found.path) == ("", ())
    assert found.states > explored().states


@pytest.mark.slow
@pytest.mark.parametrize("trouble", OTHERS)
def test_nothing_is_broken_by_one_of_the_longer_troubles(trouble: Trouble) -> None:
    found = explored(trouble)

    assert (found.broken, found.path) == ("", ())
    assert found.states > explored().states


@pytest.mark.soak
@pytest.mark.parametrize("trouble", LONG)
def test_nothing_is_broken_by_one_of_the_longest_troubles(trouble: Trouble) -> None:
    assert explored(trouble).broken == ""


@pytest.mark.soak
@pytest.mark.parametrize("trouble", Trouble)
def test_nothing_is_broken_by_one_trouble_with_two_tasks_side_by_side(trouble: Trouble) -> None:
    assert explored(trouble, is_chain=False).broken == ""


@pytest.mark.soak
@pytest.mark.parametrize("troubles", list(combinations(Trouble, 2)), ids=" and ".join)
def test_nothing_is_broken_by_two_troubles(troubles: tuple[Trouble, Trouble]) -> None:
    assert explored(*troubles).broken == ""


@pytest.mark.slow
@pytest.mark.parametrize("troubles", list(combinations(NOT_PAUSED, 2)), ids=" and ".join)
def test_nothing_is_broken_by_two_troubles_with_one_task(troubles: tuple[Trouble, Trouble]) -> None:
    found = explore(ClaimModel(frozenset(troubles), tasks=1))

    assert (found.broken, found.path) == ("", ())


# ------------------------------------------------------------------- rules that are broken

SLOW = ("unlock-only-at-completion",)
"""To see that the model is green without it takes longer."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in BREAKAGES]
)
def test_a_broken_protocol_is_found_by_the_promise_that_it_breaks(name: str) -> None:
    found = hunt(name)

    print("\n".join(found.lines()))  # noqa: T201
    assert found.is_green_without, found.without
    assert found.is_killed, found.found
    assert 0 < len(found.found.path) < 30


def test_every_trouble_of_the_model_is_needed_by_a_mutant() -> None:
    needed = {trouble for one in BREAKAGES.values() for trouble in one.troubles}

    assert set(Trouble) - needed == {Trouble.APPLIED_LATE}


def test_mutants_of_both_kinds_have_different_names() -> None:
    assert set(BREAKAGES).isdisjoint(MUTANTS)


def test_the_command_tells_the_fewest_events_that_lead_to_harm(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli(["simulate", "--mutant", "write-without-revision", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)

    assert told["mutant"]["killed"] is True
    assert told["broken"].startswith("I1: ")
    assert len(told["path"]) == len(hunt("write-without-revision").found.path)
    assert cli(["simulate", "--mutant", "write-without-revision", "--seeds", "1"]) == 2
    assert "--seeds" in capsys.readouterr().err


@pytest.mark.parametrize("name", [*MUTANTS, *BREAKAGES])
def test_every_mutant_is_in_the_table_with_what_finds_it(name: str) -> None:
    mutant = MUTANTS.get(name) or BREAKAGES[name]
    page = Path(__file__).parents[2] / "docs/correctness.md"
    (row,) = [row for row in page.read_text().splitlines() if row.startswith(f"| `{name}` |")]

    assert row.split(" | ")[1] == mutant.what
    assert row.endswith(f" | {mutant.breaks} |")
