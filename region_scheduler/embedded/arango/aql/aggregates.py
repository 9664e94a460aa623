"""The functions that AGGREGATE may call, each as a state that values are added to."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, Protocol

from region_scheduler.embedded.arango.aql.convert import is_number, narrow
from region_scheduler.embedded.arango.aql.order import equal_key, less, sort_key

BIT_MAX: Final = 2**32 - 1


class Aggregate(Protocol):
    """The state of one aggregate of one group."""

    def add(self, value: Any) -> None:
        """Take in the value of one row."""
        ...

    def result(self) -> Any:
        """Return the aggregate of all values so far."""
        ...


class Length:
    """LENGTH, COUNT: rows, whatever their value."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, value: Any) -> None:
        del value
        self.count += 1

    def result(self) -> int:
        return self.count


class Extreme:
    """MIN and MAX over all types; null does not count."""

    def __init__(self, is_better: Callable[[Any, Any], bool]) -> None:
        self._is_better = is_better
        self._value: Any = None

    def add(self, value: Any) -> None:
        if value is not None and (self._value is None or self._is_better(value, self._value)):
            self._value = value

    def result(self) -> Any:
        return self._value


class Numbers:
    """Base of what is computed from numbers: null is left out, any other type gives null."""

    def __init__(self) -> None:
        self.values: list[int | float] = []
        self.is_invalid = False
        self.is_asked = False

    def add(self, value: Any) -> None:
        self.is_asked = True
        if is_number(value):
            self.values.append(value)
        elif value is not None:
            self.is_invalid = True

    def result(self) -> Any:
        if self.is_invalid or not self.is_asked:
            return None
        number = self.compute(self.values)
        return narrow(number) if number is not None and math.isfinite(number) else None

    def compute(self, values: list[int | float]) -> int | float | None:
        """Return the aggregate of valid numbers."""
        return sum(values)


class Average(Numbers):
    """AVERAGE, AVG."""

    def compute(self, values: list[int | float]) -> float | None:
        return sum(values) / len(values) if values else None


class Variance(Numbers):
    """VARIANCE_POPULATION, VARIANCE_SAMPLE and, as roots, the standard deviations."""

    def __init__(self, is_sample: bool, is_root: bool) -> None:
        super().__init__()
        self._spare = 1 if is_sample else 0
        self._is_root = is_root

    def compute(self, values: list[int | float]) -> float | None:
        return variance(values, self._spare, self._is_root)


def variance(values: list[int | float], spare: int, is_root: bool) -> float | None:
    """Return the variance (or its root) with `len(values) - spare` in the denominator."""
    if len(values) <= spare:
        return None
    mean = math.fsum(values) / len(values)
    square = math.fsum((value - mean) ** 2 for value in values) / (len(values) - spare)
    return math.sqrt(square) if is_root else square


class Distinct:
    """UNIQUE, SORTED_UNIQUE and COUNT_DISTINCT."""

    def __init__(self, finish: Callable[[list[Any]], Any]) -> None:
        self._finish = finish
        self._values: dict[Any, Any] = {}

    def add(self, value: Any) -> None:
        self._values.setdefault(equal_key(value), value)

    def result(self) -> Any:
        return self._finish(list(self._values.values()))


class Bits:
    """BIT_AND, BIT_OR, BIT_XOR over integers of 32 bits; null does not count."""

    def __init__(self, combine: Callable[[int, int], int]) -> None:
        self._combine = combine
        self._value: int | None = None
        self._is_invalid = False

    def add(self, value: Any) -> None:
        if value is None:
            return
        if not is_number(value) or not 0 <= value <= BIT_MAX or value != int(value):
            self._is_invalid = True
        elif self._value is None:
            self._value = int(value)
        else:
            self._value = self._combine(self._value, int(value))

    def result(self) -> int | None:
        return None if self._is_invalid else self._value


class Push:
    """PUSH: all values in order."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def add(self, value: Any) -> None:
        self._values.append(value)

    def result(self) -> list[Any]:
        return self._values[:]


def _variance(is_sample: bool, is_root: bool) -> Callable[[], Aggregate]:
    return lambda: Variance(is_sample, is_root)


AGGREGATES: Final[dict[str, Callable[[], Aggregate]]] = {
    "LENGTH": Length,
    "COUNT": Length,
    "MIN": lambda: Extreme(less),
    "MAX": lambda: Extreme(lambda a, b: less(b, a)),
    "SUM": Numbers,
    "AVERAGE": Average,
    "AVG": Average,
    "VARIANCE": _variance(False, False),
    "VARIANCE_POPULATION": _variance(False, False),
    "VARIANCE_SAMPLE": _variance(True, False),
    "STDDEV": _variance(False, True),
    "STDDEV_POPULATION": _variance(False, True),
    "STDDEV_SAMPLE": _variance(True, True),
    "UNIQUE": lambda: Distinct(list),
    "SORTED_UNIQUE": lambda: Distinct(lambda values: sorted(values, key=sort_key)),
    "COUNT_DISTINCT": lambda: Distinct(len),
    "COUNT_UNIQUE": lambda: Distinct(len),
    "BIT_AND": lambda: Bits(lambda a, b: a & b),
    "BIT_OR": lambda: Bits(lambda a, b: a | b),
    "BIT_XOR": lambda: Bits(lambda a, b: a ^ b),
    "PUSH": Push,
}
