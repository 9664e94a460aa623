"""Admissions: one key, one body, one run; an old epoch changes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from region_scheduler.domain.admission import (
    Admission,
    AdmissionState,
    Plan,
    admission_key,
    finished,
    same_or_refused,
    taken_over,
)
from region_scheduler.domain.ids import Incarnation, RunId
from region_scheduler.errors import Fenced, KeyReused
from tests.unit.domain.samples import AT, a_spec

PLAN = Plan(
    name="run", tenant="acme", home_region="eu", regions=("eu",), tasks=(a_spec(),), edges=()
)
ADMISSION = Admission(
    id=admission_key("client", "acme", "key-1"),
    tenant="acme",
    key="key-1",
    body_digest="abc",
    run=RunId("run1"),
    plan=PLAN,
    instance=Incarnation("api:1"),
    created_at=AT,
)


def test_the_same_body_is_the_same_run() -> None:
    assert same_or_refused(ADMISSION, "abc") is ADMISSION


def test_another_body_under_the_same_key_is_refused_and_told_the_run() -> None:
    with pytest.raises(KeyReused) as refused:
        same_or_refused(ADMISSION, "xyz")
    assert (refused.value.key, refused.value.run_id) == ("key-1", "run1")


def test_it_is_finished_by_its_epoch_only() -> None:
    assert finished(ADMISSION, 1, AdmissionState.DONE).state is AdmissionState.DONE
    handed_on = taken_over(ADMISSION, Incarnation("api:2"))
    with pytest.raises(Fenced):
        finished(handed_on, 1, AdmissionState.DONE)
    assert finished(handed_on, 2, AdmissionState.DONE).state is AdmissionState.DONE


def test_finishing_twice_changes_nothing_whatever_the_epoch() -> None:
    done = finished(ADMISSION, 1, AdmissionState.DONE)

    assert finished(done, 1, AdmissionState.DONE) is done
    assert finished(done, 7, AdmissionState.DONE) is done


def test_a_take_over_raises_the_epoch_and_names_the_new_instance() -> None:
    after = taken_over(ADMISSION, Incarnation("api:2"))

    assert (after.epoch, after.instance) == (2, "api:2")


@pytest.mark.parametrize("state", [AdmissionState.DONE, AdmissionState.REFUSED])
def test_what_is_over_is_not_taken_over(state: AdmissionState) -> None:
    over = replace(ADMISSION, state=state)

    assert taken_over(over, Incarnation("api:2")) is over


@given(st.tuples(st.text(), st.text(), st.text()), st.tuples(st.text(), st.text(), st.text()))
def test_keys_collide_only_for_the_same_names(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    assert (admission_key(*one) == admission_key(*other)) == (one == other)
    assert admission_key("client", one[0], one[1]) == admission_key("client", one[0], one[1])


def test_a_boundary_moved_between_the_parts_makes_another_key() -> None:
    assert admission_key("client", "ac", "me1") != admission_key("client", "acme", "1")
