"""Typed access to the fields of a JSON document; every refusal names the place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from region_scheduler.domain.task import Json
from region_scheduler.errors import InvalidInput

E = TypeVar("E", bound=StrEnum)
NUMBER_MAX = 1e9  # as seconds it is 31 years
_WHOLE_MAX = 2**53
_SHOWN_MAX = 80


def an_object(
    value: object, place: str, known: Iterable[str] | None = None, needed: Iterable[str] = ()
) -> Mapping[str, Any]:
    """Return an object that has the `needed` keys, and no key but the `known` ones if given.

    Raises:
        InvalidInput: It is something else, or a key is unknown or missing.
    """
    if not isinstance(value, dict):
        raise refused(place, value, "an object is needed here")
    if known is not None and (unknown := sorted(value.keys() - set(known))):
        told = f"remove it; known keys are {', '.join(sorted(known))}"
        raise refused(f"{place}.{unknown[0]}", value[unknown[0]], told)
    for key in needed:
        if key not in value:
            raise refused(f"{place}.{key}", "", "it is missing")
    return value


def a_list(value: object, place: str) -> Sequence[object]:
    """Return a list.

    Raises:
        InvalidInput: It is something else.
    """
    if not isinstance(value, list):
        raise refused(place, value, "a list is needed here")
    return value


def a_text(value: object, place: str, *, may_be_empty: bool = False) -> str:
    """Return a text.

    Raises:
        InvalidInput: It is something else, or empty.
    """
    if not isinstance(value, str) or not (value or may_be_empty):
        raise refused(place, value, "a text is needed here")
    return value


def a_number(value: object, place: str, *, is_above_zero: bool = False) -> float:
    """Return a number of at least 0, small enough to be added to any date of this century.

    Raises:
        InvalidInput: It is something else, or 0 where it may not be.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= NUMBER_MAX:  # type: ignore[operator]
        raise refused(place, value, f"a number of at least 0 and at most {NUMBER_MAX:g} is needed")
    if is_above_zero and not value:
        raise refused(place, value, "it must be above 0")
    return float(value)  # type: ignore[arg-type]


def a_whole(value: object, place: str, minimum: int = 0, maximum: int = _WHOLE_MAX) -> int:
    """Return a whole number from `minimum` to `maximum`, by default what every store keeps.

    Raises:
        InvalidInput: It is something else.
    """
    is_whole = (
        isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    )
    if not is_whole or not minimum <= value <= maximum:  # type: ignore[operator]
        bound = f" and at most {maximum}" if maximum < _WHOLE_MAX else ""
        raise refused(place, value, f"a whole number of at least {minimum}{bound} is needed here")
    return int(value)  # type: ignore[call-overload,no-any-return]


def a_choice(value: object, place: str, choices: type[E]) -> E:
    """Return one of an enumeration's values.

    Raises:
        InvalidInput: It is none of them.
    """
    try:
        return choices(str(value))
    except ValueError as error:
        told = f"it must be one of {', '.join(choice.value for choice in choices)}"
        raise refused(place, value, told) from error


def texts(value: object, place: str) -> tuple[str, ...]:
    """Return a list of texts.

    Raises:
        InvalidInput: It is something else.
    """
    return tuple(a_text(item, f"{place}[{i}]") for i, item in enumerate(a_list(value, place)))


def refused(place: str, value: Json, expected: str) -> InvalidInput:
    """Return the refusal of a value, shown cut short."""
    text = str(value)
    shown = text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]}..."
    return InvalidInput(field=place, value=shown, expected=expected)
