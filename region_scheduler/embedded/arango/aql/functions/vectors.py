"""Distances of vectors, and scores that decay with distance."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from region_scheduler.embedded.arango.aql.convert import is_number
from region_scheduler.embedded.arango.aql.functions.numbers import finite
from region_scheduler.embedded.arango.aql.functions.registry import function
from region_scheduler.embedded.arango.aql.run import Run

Vector = list[float]
Measure = Callable[[Vector, Vector], float]


def _is_vector(value: Any) -> bool:
    return type(value) is list and all(is_number(item) for item in value)


def _measure(run: Run, left: Any, right: Any, name: str, compute: Measure) -> Any:
    """Return the measure of two vectors, or of each row of a matrix and a vector."""
    for one, two in ((left, right), (right, left)):
        if type(one) is list and one and all(type(row) is list for row in one):
            rows = [_pair(row, two, compute) for row in one]
            if None not in rows:
                return rows
            run.warn(1542, name)
            return None
    result = _pair(left, right, compute)
    if result is None:
        run.warn(1542, name)
    return result


def _pair(left: Any, right: Any, compute: Measure) -> Any:
    if not _is_vector(left) or not _is_vector(right) or len(left) != len(right):
        return None
    try:
        return finite(compute(left, right))
    except ZeroDivisionError:
        return None


def _cosine(left: Vector, right: Vector) -> float:
    product = sum(a * b for a, b in zip(left, right, strict=True))
    return product / (math.hypot(*left) * math.hypot(*right))


@function("COSINE_SIMILARITY", 2)
def _cosine_similarity(run: Run, left: Any, right: Any) -> Any:
    return _measure(run, left, right, "COSINE_SIMILARITY", _cosine)


@function("L1_DISTANCE", 2)
def _l1_distance(run: Run, left: Any, right: Any) -> Any:
    def compute(one: Vector, two: Vector) -> float:
        return sum(abs(a - b) for a, b in zip(one, two, strict=True))

    return _measure(run, left, right, "L1_DISTANCE", compute)


@function("L2_DISTANCE", 2)
def _l2_distance(run: Run, left: Any, right: Any) -> Any:
    return _measure(run, left, right, "L2_DISTANCE", math.dist)


# --- decay: a score of 1 within the offset, of `decay` at `scale` behind it


def _decayed(
    run: Run, name: str, values: tuple[Any, ...], curve: Callable[[float, float, float], float]
) -> Any:
    value, origin, scale, offset, decay = values
    are_numbers = all(is_number(part) for part in (origin, scale, offset, decay))
    if not are_numbers or scale <= 0 or not 0 < decay < 1 or offset < 0:
        run.warn(1542, name)
        return None

    def score(point: Any) -> float | int | None:
        distance = max(0.0, abs(point - origin) - offset)
        return finite(curve(distance, scale, decay))

    if is_number(value):
        return score(value)
    if _is_vector(value):
        return [score(point) for point in value]
    run.warn(1542, name)
    return None


@function("DECAY_GAUSS", 5)
def _decay_gauss(run: Run, value: Any, origin: Any, scale: Any, offset: Any, decay: Any) -> Any:
    def curve(distance: float, scale: float, decay: float) -> float:
        return math.exp(distance**2 * math.log(decay) / scale**2)

    return _decayed(run, "DECAY_GAUSS", (value, origin, scale, offset, decay), curve)


@function("DECAY_EXP", 5)
def _decay_exp(run: Run, value: Any, origin: Any, scale: Any, offset: Any, decay: Any) -> Any:
    def curve(distance: float, scale: float, decay: float) -> float:
        return math.exp(distance * math.log(decay) / scale)

    return _decayed(run, "DECAY_EXP", (value, origin, scale, offset, decay), curve)


@function("DECAY_LINEAR", 5)
def _decay_linear(run: Run, value: Any, origin: Any, scale: Any, offset: Any, decay: Any) -> Any:
    def curve(distance: float, scale: float, decay: float) -> float:
        reach = scale / (1 - decay)
        return max(0.0, (reach - distance) / reach)

    return _decayed(run, "DECAY_LINEAR", (value, origin, scale, offset, decay), curve)
