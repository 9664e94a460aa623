"""Conversions between AQL's types, and AQL's way to write a value down."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

_NUMBER: Final = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1


def is_number(value: Any) -> bool:
    """Tell a number from everything else; a boolean is none."""
    kind = type(value)
    return kind is int or kind is float


def truthy(value: Any) -> bool:
    """Return the value as a condition: null, false, 0 and "" are false, all else is true."""
    if value is True:
        return True
    if value is None or value is False:
        return False
    kind = type(value)
    return True if kind is list or kind is dict else bool(value)


def as_number(value: Any) -> int | float | None:
    """Return the value as a number; None if it stands for none."""
    kind = type(value)
    if kind is int or kind is float:
        number: int | float = value
        return number
    if value is None or value is False:
        return 0
    if value is True:
        return 1
    if kind is str:
        text = value.strip(" \t\r\n\f\v")
        return parse_number(text) if _NUMBER.fullmatch(text) else None
    if kind is list:
        if not value:
            return 0
        return as_number(value[0]) if len(value) == 1 else None
    return None


def to_number(value: Any) -> int | float:
    """Return the value as a number; what stands for none is 0."""
    return as_number(value) or 0


def to_integer(value: Any) -> int:
    """Return the value as an integer, cut off towards zero."""
    return math.trunc(to_number(value))


def parse_number(text: str) -> int | float | None:
    """Return the number that a numeral stands for, None if it is too large for a double."""
    if text.lstrip("+-").isdigit():
        return narrow(int(text))
    number = float(text)
    return number if math.isfinite(number) else None


def narrow(number: int | float) -> int | float:
    """Return an integer outside 64 bits as a float, and a whole float of 53 bits as an integer."""
    if isinstance(number, int):
        return number if INT_MIN <= number <= INT_MAX else float(number)
    if number.is_integer() and number != 0 and -(2.0**53) <= number <= 2.0**53:
        return int(number)
    return number


def number_text(number: int | float) -> str:
    """Return a number as the server prints it: shortest digits, exponents without zeros."""
    if type(number) is int:
        return str(number)
    if number == 0:
        return "-0" if math.copysign(1, number) < 0 else "0"
    mantissa, _, exponent = f"{number!r}".partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    fraction = "" if fraction == "0" else fraction
    scale = int(exponent or 0) - len(fraction)
    digits = (whole + fraction).lstrip("0")
    stripped = digits.rstrip("0")
    scale += len(digits) - len(stripped)
    return sign + _place_point(stripped, scale)


def _place_point(digits: str, scale: int) -> str:
    """Write digits x 10^scale by the rules of the Grisu printer that the server uses."""
    count = len(digits)
    magnitude = abs(scale + count - 1)
    if scale >= 0 and magnitude < count + 7:
        return digits + "0" * scale
    if scale < 0 and (scale > -7 or magnitude < 4):
        point = count + scale
        if point <= 0:
            return "0." + "0" * -point + digits
        return digits[:point] + "." + digits[point:]
    exponent = scale + count - 1
    head = digits[0] + ("." + digits[1:] if count > 1 else "")
    return f"{head}e{'-' if exponent < 0 else '+'}{abs(exponent)}"


def json_text(value: Any) -> str:
    """Return the compact JSON text of a value."""
    kind = type(value)
    if kind is str:
        return json.dumps(value, ensure_ascii=False)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is float:
        return number_text(value)
    if kind is dict:
        parts = (f"{json.dumps(k, ensure_ascii=False)}:{json_text(v)}" for k, v in value.items())
        return "{" + ",".join(parts) + "}"
    return "[" + ",".join(json_text(item) for item in value) + "]"


def to_string(value: Any) -> str:
    """Return the value as a string: null is empty, arrays and objects are JSON."""
    if type(value) is str:
        return value
    return "" if value is None else json_text(value)


def to_array(value: Any) -> list[Any]:
    """Return the value as an array: null is empty, an object its values, a scalar alone."""
    if type(value) is list:
        return value
    if value is None:
        return []
    return list(value.values()) if type(value) is dict else [value]
