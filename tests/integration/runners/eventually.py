"""Waiting with a deadline, for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T], within_s: float = 5.0) -> T:
    """Return the first true answer of `look`; fail when there is none `within_s` seconds."""
    end = time.monotonic() + within_s
    while not (answer := look()):
        assert time.monotonic() < end, f"not within {within_s} s: {answer!r}"
        time.sleep(0.01)
    return answer
