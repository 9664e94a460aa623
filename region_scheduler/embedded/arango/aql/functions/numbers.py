"""Functions of one number or two, and of arrays of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from region_scheduler.embedded.arango.aql.aggregates import variance
from region_scheduler.embedded.arango.aql.convert import is_number, narrow, to_number
from region_scheduler.embedded.arango.aql.functions.registry import function
from region_scheduler.embedded.arango.aql.order import sort_key
from region_scheduler.embedded.arango.aql.run import Run

Number = int | float


def finite(number: Number) -> Number | None:
    """Return a result as a number, or None where it is none."""
    return narrow(number) if math.isfinite(number) else None


def _of_one(names: str, compute: Callable[[float], Number]) -> None:
    @function(names, 1)
    def call(value: Any) -> Number | None:
        try:
            return finite(compute(to_number(value)))
        except (ValueError, OverflowError):
            return None

    del call


_SIMPLE: Final[dict[str, Callable[[float], Number]]] = {
    "ABS": abs,
    "ACOS": math.acos,
    "ASIN": math.asin,
    "ATAN": math.atan,
    "CEIL": math.ceil,
    "COS": math.cos,
    "DEGREES": math.degrees,
    "EXP": math.exp,
    "EXP2": lambda value: 2.0**value,
    "FLOOR": math.floor,
    "LOG": math.log,
    "LOG2": math.log2,
    "LOG10": math.log10,
    "RADIANS": math.radians,
    # Halves go up, also below zero.
    "ROUND": lambda value: math.floor(value + 0.5),
    "SIN": math.sin,
    "SQRT": math.sqrt,
    "TAN": math.tan,
}
for _name, _compute in _SIMPLE.items():
    _of_one(_name, _compute)


@function("ATAN2", 2)
def _atan2(y: Any, x: Any) -> Number | None:
    return finite(math.atan2(to_number(y), to_number(x)))


@function("POW", 2)
def _pow(base: Any, exponent: Any) -> Number | None:
    try:
        result = float(to_number(base)) ** to_number(exponent)
    except (OverflowError, ZeroDivisionError):
        return None
    return None if isinstance(result, complex) else finite(result)


@function("PI", 0)
def _pi() -> float:
    return math.pi


@function("RAND RANDOM", 0)
def _rand(run: Run) -> float:
    return run.options.chance.random()


# --- arrays of numbers


def _numbers(run: Run, array: Any, name: str) -> list[Number] | None:
    """Return the numbers of an array without its nulls; None (and a warning) if it has others."""
    if type(array) is not list:
        run.warn(1563, name)
        return None
    numbers = [value for value in array if value is not None]
    if not all(is_number(value) for value in numbers):
        run.warn(1561)
        return None
    return numbers


def _of_array(names: str, compute: Callable[[list[Number]], Number | None]) -> None:
    first = names.split(maxsplit=1)[0]

    @function(names, 1)
    def call(run: Run, array: Any) -> Number | None:
        numbers = _numbers(run, array, first)
        result = None if numbers is None else compute(numbers)
        return None if result is None else finite(result)

    del call


def _median(numbers: list[Number]) -> Number | None:
    if not numbers:
        return None
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    low, high = ordered[-middle - 1], ordered[middle]
    return low if len(ordered) % 2 else (low + high) / 2


_OF_ARRAYS: Final[dict[str, Callable[[list[Number]], Number | None]]] = {
    "SUM": sum,
    "PRODUCT": lambda numbers: math.prod(map(float, numbers)),
    "AVERAGE AVG": lambda numbers: sum(numbers) / len(numbers) if numbers else None,
    "MEDIAN": _median,
    "VARIANCE_POPULATION VARIANCE": lambda numbers: variance(numbers, 0, False),
    "VARIANCE_SAMPLE": lambda numbers: variance(numbers, 1, False),
    "STDDEV_POPULATION STDDEV": lambda numbers: variance(numbers, 0, True),
    "STDDEV_SAMPLE": lambda numbers: variance(numbers, 1, True),
}
for _names, _reduce in _OF_ARRAYS.items():
    _of_array(_names, _reduce)


@function("MIN", 1)
def _min(run: Run, array: Any) -> Any:
    return _extreme(run, array, "MIN", min)


@function("MAX", 1)
def _max(run: Run, array: Any) -> Any:
    return _extreme(run, array, "MAX", max)


def _extreme(run: Run, array: Any, name: str, choose: Callable[..., Any]) -> Any:
    if type(array) is not list:
        run.warn(1563, name)
        return None
    values = [value for value in array if value is not None]
    return choose(values, key=sort_key) if values else None


@function("PERCENTILE", 2, 3)
def _percentile(run: Run, array: Any, percent: Any, method: Any = "rank") -> Any:
    numbers = _numbers(run, array, "PERCENTILE")
    if numbers is None:
        return None
    if not is_number(percent) or not 0 <= percent <= 100 or method not in ("rank", "interpolation"):
        run.warn(1542, "PERCENTILE")
        return None
    if not numbers:
        return None
    ordered = sorted(numbers)
    if method == "rank":
        place = math.ceil(percent * len(ordered) / 100)
        return ordered[max(0, place - 1)]
    point = percent * (len(ordered) + 1) / 100
    below = math.floor(point)
    if below < 1:
        return ordered[0]
    if below >= len(ordered):
        return ordered[-1]
    low, high = float(ordered[below - 1]), float(ordered[below])
    return finite(low + (high - low) * (point - below))
