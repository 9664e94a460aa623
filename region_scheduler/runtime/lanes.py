"""Calls that do not wait for one another, made a few at a time by threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

_LANES: Final = 2


def side_by_side(calls: Iterable[Callable[[], None]]) -> None:
    """Make the calls, up to two at once, while the caller's thread prepares the next.

    All have ended when this returns or raises; after an error no more are begun. No more than those
    two and the one that is being prepared are in memory.

    Raises:
        Exception: Of the first call, in their order, that raised, or of the preparation.
    """
    with ThreadPoolExecutor(_LANES, thread_name_prefix="lane") as pool:
        begun: deque[Future[None]] = deque()
        for call in calls:
            if len(begun) == _LANES:
                begun.popleft().result()
            begun.append(pool.submit(call))
        for future in begun:
            future.result()
