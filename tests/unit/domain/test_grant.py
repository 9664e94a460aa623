"""Grants: who counted on something else than what stands counts again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from region_scheduler.domain.grant import (
    Grants,
    RunGrant,
    run_granted,
    run_revoked,
    runs_seen,
    zone_forgotten,
    zone_granted,
)
from region_scheduler.domain.ids import Incarnation, RunId
from region_scheduler.errors import LostRace
from tests.simulation.scenarios import a_zone

NONE = Grants(id="t", rev="1", tenant="t")


def a_grant(admission: str, id_: str = "") -> RunGrant:
    return RunGrant(
        id=id_ or f"try of {admission}",
        admission=admission,
        run=RunId(f"run of {admission}"),
        instance=Incarnation("cli:1"),
    )


def test_one_more_takes_the_place_of_what_is_there_and_of_an_earlier_try() -> None:
    three = replace(NONE, runs=(a_grant("seen"), a_grant("mine"), a_grant("other")))
    again = a_grant("mine", "second try")

    granted = run_granted(three, three, again, {"seen"})

    assert granted.runs == (a_grant("other"), again)
    assert run_granted(granted, NONE, again, set()) is granted, "a lost answer"


def test_what_was_counted_before_another_was_granted_something_is_counted_again() -> None:
    moved = replace(NONE, rev="2")

    with pytest.raises(LostRace):
        run_granted(moved, NONE, a_grant("a"), set())
    with pytest.raises(LostRace):
        zone_granted(moved, NONE, a_zone())


def test_only_the_very_try_is_revoked() -> None:
    two = replace(NONE, runs=(a_grant("a"), a_grant("b", "second try")))

    assert run_revoked(two, a_grant("a")).runs == two.runs[1:]
    assert run_revoked(two, a_grant("b", "first try")) is two
    assert runs_seen(two, {"b"}).runs == two.runs[:1]
    assert runs_seen(two, {"c"}) is two


def test_a_zone_is_granted_in_the_place_of_those_created_and_forgotten_once() -> None:
    zone, other = a_zone(), replace(a_zone(), id="other")
    granted = zone_granted(replace(NONE, zones=(other,)), replace(NONE, zones=(other,)), zone)

    assert granted.zones == (zone,)
    assert zone_granted(granted, NONE, zone) is granted
    assert zone_forgotten(granted, zone).zones == ()
    assert zone_forgotten(granted, other) is granted
