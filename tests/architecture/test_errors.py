"""Errors cross process borders, and tell people and programs apart what happened."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any, get_type_hints

import pytest

from region_scheduler.errors import BrokenInvariant, RegionSchedulerError

EXIT_CODES = {1, 2, 4, 5, 69, 70, 75, 78}  # what the CLI documents for a failure
VALUES: dict[object, Any] = {str: "told-7", int: 7, float: 7.5, bool: True}


def classes(root: type[Any] = RegionSchedulerError) -> list[type[Any]]:
    return [root, *(found for child in root.__subclasses__() for found in classes(child))]


def built(error: type[Any]) -> Any:
    """Make one with a value in each field."""
    if not dataclasses.is_dataclass(error):
        return error()
    hints = get_type_hints(error)
    names = [field.name for field in dataclasses.fields(error)]
    return error(**{name: VALUES.get(hints[name], ["told-7", "told-8"]) for name in names})


def test_the_tree_is_looked_at() -> None:
    assert {"Rejected", "Unavailable", "OutcomeUnknown", "Fenced"} <= {
        c.__name__ for c in classes()
    }


@pytest.mark.parametrize("error", classes(), ids=lambda error: error.__name__)
def test_an_error_survives_a_process_border(error: type[Any]) -> None:
    sent = built(error)

    received = pickle.loads(pickle.dumps(sent))

    assert type(received) is error
    assert vars(received) == vars(sent)
    assert str(received) == str(sent)


@pytest.mark.parametrize("error", classes(), ids=lambda error: error.__name__)
def test_an_error_has_an_exit_code_of_the_table(error: type[Any]) -> None:
    assert error.exit_code in EXIT_CODES


@pytest.mark.parametrize(
    "error", [c for c in classes() if dataclasses.is_dataclass(c)], ids=lambda error: error.__name__
)
def test_an_error_says_what_its_fields_hold(error: type[Any]) -> None:
    assert "told-7" in str(built(error))


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [error.code for error in classes()]

    assert sorted(codes) == sorted(set(codes))


def test_a_broken_invariant_survives_a_process_border_and_is_no_error_of_a_caller() -> None:
    received = pickle.loads(pickle.dumps(BrokenInvariant("one holder")))

    assert str(received) == "one holder"
    assert not isinstance(received, RegionSchedulerError)
