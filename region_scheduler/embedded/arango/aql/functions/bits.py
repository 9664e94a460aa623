"""Bit functions over unsigned integers of 32 bits."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from region_scheduler.embedded.arango.aql.aggregates import BIT_MAX
from region_scheduler.embedded.arango.aql.convert import is_number
from region_scheduler.embedded.arango.aql.functions.registry import function
from region_scheduler.embedded.arango.aql.run import Run


def _is_bits(value: Any, most: int = BIT_MAX) -> bool:
    return is_number(value) and 0 <= value <= most and value == int(value)


def _refuse(run: Run, name: str) -> Any:
    run.warn(1542, name)
    return None


def _combined(
    run: Run, name: str, values: tuple[Any, ...], combine: Callable[[int, int], int]
) -> Any:
    if len(values) == 1:
        if type(values[0]) is not list:
            return _refuse(run, name)
        parts = [value for value in values[0] if value is not None]
    else:
        parts = list(values)
    if not all(_is_bits(part) for part in parts):
        return _refuse(run, name)
    return reduce(combine, map(int, parts)) if parts else None


@function("BIT_AND", 1, 2)
def _bit_and(run: Run, *values: Any) -> Any:
    return _combined(run, "BIT_AND", values, lambda a, b: a & b)


@function("BIT_OR", 1, 2)
def _bit_or(run: Run, *values: Any) -> Any:
    return _combined(run, "BIT_OR", values, lambda a, b: a | b)


@function("BIT_XOR", 1, 2)
def _bit_xor(run: Run, *values: Any) -> Any:
    return _combined(run, "BIT_XOR", values, lambda a, b: a ^ b)


@function("BIT_NEGATE", 2)
def _bit_negate(run: Run, value: Any, bits: Any) -> Any:
    if not _is_bits(value) or not _is_bits(bits, 32):
        return _refuse(run, "BIT_NEGATE")
    return ~int(value) & ((1 << int(bits)) - 1)


@function("BIT_TEST", 2)
def _bit_test(run: Run, value: Any, place: Any) -> Any:
    if not _is_bits(value) or not _is_bits(place, 31):
        return _refuse(run, "BIT_TEST")
    return bool(int(value) >> int(place) & 1)


@function("BIT_POPCOUNT", 1)
def _bit_popcount(run: Run, value: Any) -> Any:
    return int(value).bit_count() if _is_bits(value) else _refuse(run, "BIT_POPCOUNT")


@function("BIT_SHIFT_LEFT", 3)
def _bit_shift_left(run: Run, value: Any, shift: Any, bits: Any) -> Any:
    if not _is_bits(value) or not _is_bits(shift, 32) or not _is_bits(bits, 32):
        return _refuse(run, "BIT_SHIFT_LEFT")
    return int(value) << int(shift) & ((1 << int(bits)) - 1)


@function("BIT_SHIFT_RIGHT", 3)
def _bit_shift_right(run: Run, value: Any, shift: Any, bits: Any) -> Any:
    if not _is_bits(value) or not _is_bits(shift, 32) or not _is_bits(bits, 32):
        return _refuse(run, "BIT_SHIFT_RIGHT")
    return int(value) >> int(shift) & ((1 << int(bits)) - 1)


@function("BIT_CONSTRUCT", 1)
def _bit_construct(run: Run, places: Any) -> Any:
    if type(places) is not list or not all(_is_bits(place, 31) for place in places):
        return _refuse(run, "BIT_CONSTRUCT")
    return reduce(lambda bits, place: bits | 1 << int(place), places, 0)


@function("BIT_DECONSTRUCT", 1)
def _bit_deconstruct(run: Run, value: Any) -> Any:
    if not _is_bits(value):
        return _refuse(run, "BIT_DECONSTRUCT")
    return [place for place in range(32) if int(value) >> place & 1]


@function("BIT_FROM_STRING", 1)
def _bit_from_string(run: Run, text: Any) -> Any:
    if type(text) is not str or not text or len(text) > 32 or set(text) - {"0", "1"}:
        return _refuse(run, "BIT_FROM_STRING")
    return int(text, 2)


@function("BIT_TO_STRING", 2)
def _bit_to_string(run: Run, value: Any, bits: Any) -> Any:
    if not _is_bits(value) or not _is_bits(bits, 32):
        return _refuse(run, "BIT_TO_STRING")
    return f"{int(value) & ((1 << int(bits)) - 1):0{int(bits)}b}"
