"""Every order of events around a claim, with what goes wrong at whichever moment.

`pytest -s` prints how many states there are. A broken rule shows that a fault would be found, by
the fewest events that lead to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from region_scheduler.domain.task import Holder, Task, Token
from region_scheduler.domain.transitions import lose, start
from region_scheduler.simulation.claiming.model import ClaimModel
from region_scheduler.simulation.claiming.roles import Rules
from region_scheduler.simulation.claiming.state import State, Trouble
from region_scheduler.simulation.exploration import Explored, explore

QUICK = (Trouble.REQUEST_LOST, Trouble.ANSWER_LOST, Trouble.MESSAGE_TWICE)
LONG = (Trouble.WORKER_PAUSED, Trouble.MESSAGE_SLOW)
OTHERS = tuple(trouble for trouble in Trouble if trouble not in QUICK + LONG)
KEPT = Rules()


def explored(*troubles: Trouble, is_chain: bool = True, rules: Rules = KEPT) -> Explored[State]:
    found = explore(ClaimModel(frozenset(troubles), is_chain, rules))
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


# ------------------------------------------------------------------- rules that are broken


def lose_by_token_only(task: Task, token: Token, holder: Holder, **more: Any) -> Task:
    del holder
    return lose(task, token, task.holder, **more)


def start_whatever_the_receipt(task: Task, token: Token, holder: Holder, **more: Any) -> Task:
    if task.token == token and task.holder is not None and task.holder.receipt_id:
        task = replace(task, holder=holder)
    return start(task, token, holder, **more)


BROKEN: dict[str, tuple[Callable[[], Rules], Trouble, str]] = {
    "loss not tied to the holder seen": (
        lambda: Rules(lose=lose_by_token_only),
        Trouble.SCHEDULER_KILLED,
        "I1",
    ),
    "any receipt starts": (
        lambda: Rules(start=start_whatever_the_receipt),
        Trouble.MESSAGE_TWICE,
        "I1",
    ),
    "steps outlive their lease": (
        lambda: Rules(is_deadline_kept=False),
        Trouble.WORKER_PAUSED,
        "I1",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_rule_is_found_by_the_fewest_events(what: str) -> None:
    rules, trouble, invariant = BROKEN[what]

    found = explored(trouble, rules=rules())

    print("\n".join(found.path))  # noqa: T201
    assert found.broken.startswith(invariant), found
    assert found.path
