"""Typed parameters of zone types: defaults, and refusals that say what would be accepted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Network, NetmaskValueError

from region_scheduler.domain.task import Json
from region_scheduler.errors import InvalidInput

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
NAME_HINT = (
    "give letters, digits, dots, dashes and underscores, at most 63, a letter or digit first"
)
REGION = re.compile(r"(?=.{1,63}\Z)[a-z][a-z0-9]*(-[a-z0-9]+)*")
REGION_HINT = "a region is written in small letters, digits and single dashes, such as eu-west"
_EMAIL = re.compile(r"[^@\s,;<>\"]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One thing that a zone type asks for.

    Attributes:
        type: `name`, `text`, `email`, `cidr`, `integer`, `enum`, `names` or `regions`.
        default: Used when none is given; `{tenant}` in it is replaced.
        values: What an `enum` or `names` accepts.
        pattern: Regular expression that a whole `text` must match.
        hint: The pattern in words.
        min: Smallest `integer`; largest network of a `cidr` by its prefix length.
        max: Largest `integer`; smallest network of a `cidr` by its prefix length.
    """

    name: str
    type: str
    purpose: str
    default: Json
    values: tuple[str, ...] = ()
    pattern: str = ""
    hint: str = ""
    min: int = 0
    max: int = 0


def checked_name(field: str, value: str) -> str:
    """Return `value` if it can stand in lock names and state keys.

    Raises:
        InvalidInput: It cannot.
    """
    if not NAME.fullmatch(value):
        raise InvalidInput(field=field, value=value, expected=NAME_HINT)
    return value


def checked_parameters(
    declared: tuple[Parameter, ...], given: Mapping[str, Json], tenant: str
) -> dict[str, Json]:
    """Return a value for every declared parameter: the given one, or the default.

    Args:
        declared: What the zone type asks for.
        given: By name; text from a command line is understood (`"12"`, `"a,b"`).
        tenant: Replaces `{tenant}` in defaults.

    Raises:
        InvalidInput: A name the type does not know, or a value its type does not accept.
    """
    known = {parameter.name: parameter for parameter in declared}
    for name, value in given.items():
        if name not in known:
            expected = f"this zone type takes {', '.join(known)}"
            raise InvalidInput(field=f"parameter {name}", value=str(value), expected=expected)
    return {
        name: _CHECKS[parameter.type](parameter, given[name])
        if name in given
        else _default(parameter, tenant)
        for name, parameter in known.items()
    }


def _default(parameter: Parameter, tenant: str) -> Json:
    if isinstance(parameter.default, str):
        return parameter.default.replace("{tenant}", tenant)
    return list(parameter.default) if isinstance(parameter.default, list) else parameter.default


def _refused(parameter: Parameter, value: Json, expected: str) -> InvalidInput:
    return InvalidInput(field=f"parameter {parameter.name}", value=str(value), expected=expected)


def _name(parameter: Parameter, value: Json) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise _refused(parameter, value, NAME_HINT)
    return value


def _text(parameter: Parameter, value: Json) -> str:
    if not isinstance(value, str) or not re.fullmatch(parameter.pattern, value):
        raise _refused(parameter, value, f"give {parameter.hint}")
    return value


def _email(parameter: Parameter, value: Json) -> str:
    if not isinstance(value, str) or len(value) > 254 or not _EMAIL.fullmatch(value):
        raise _refused(parameter, value, "give one mail address, such as team@acme.example")
    return value


def _cidr(parameter: Parameter, value: Json) -> str:
    way_out = (
        f"give an IPv4 network from /{parameter.min} to /{parameter.max} with its host bits zero,"
        f" such as {parameter.default}"
    )
    if not isinstance(value, str) or "/" not in value:
        raise _refused(parameter, value, way_out)
    try:
        network = IPv4Network(value)
    except (AddressValueError, NetmaskValueError, ValueError) as refused:
        raise _refused(parameter, value, way_out) from refused
    if not parameter.min <= network.prefixlen <= parameter.max:
        raise _refused(parameter, value, way_out)
    return str(network)


def _integer(parameter: Parameter, value: Json) -> int:
    number = int(value) if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value) else value
    if (
        isinstance(number, bool)
        or not isinstance(number, int)
        or not parameter.min <= number <= parameter.max
    ):
        way_out = f"give a whole number from {parameter.min} to {parameter.max}"
        raise _refused(parameter, value, way_out)
    return number


def _enum(parameter: Parameter, value: Json) -> str:
    if not isinstance(value, str) or value not in parameter.values:
        raise _refused(parameter, value, f"give one of {', '.join(parameter.values)}")
    return value


def _listed(parameter: Parameter, value: Json, way_out: str) -> list[str]:
    items = [item.strip() for item in value.split(",")] if isinstance(value, str) else value
    if items == [""]:
        return []
    if (
        not isinstance(items, list | tuple)
        or not all(isinstance(item, str) for item in items)
        or len(set(items)) != len(items)
    ):
        raise _refused(parameter, value, way_out)
    return list(items)


def _names(parameter: Parameter, value: Json) -> list[str]:
    way_out = f"give some of {', '.join(parameter.values)}, each once"
    names = _listed(parameter, value, way_out)
    if not set(names) <= set(parameter.values):
        raise _refused(parameter, value, way_out)
    return names


def _regions(parameter: Parameter, value: Json) -> list[str]:
    way_out = f"give regions separated by commas, each once; {REGION_HINT}"
    words = _listed(parameter, value, way_out)
    if not all(REGION.fullmatch(word) for word in words):
        raise _refused(parameter, value, way_out)
    return words


_CHECKS: Mapping[str, Callable[[Parameter, Json], Json]] = {
    "name": _name,
    "text": _text,
    "email": _email,
    "cidr": _cidr,
    "integer": _integer,
    "enum": _enum,
    "names": _names,
    "regions": _regions,
}
