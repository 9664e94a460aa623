from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from region_scheduler.runtime.lanes import side_by_side

PATIENCE_S = 30.0


def test_a_call_is_made_while_the_next_is_prepared_and_no_more_than_two_at_once() -> None:
    both, at_once, most = threading.Barrier(2), threading.Semaphore(2), []

    def call(number: int) -> None:
        assert at_once.acquire(blocking=False), "a third call at once"
        both.wait(PATIENCE_S)  # neither ends before the other has begun
        most.append(number)
        at_once.release()

    side_by_side(partial(call, number) for number in range(10))

    assert sorted(most) == list(range(10))


@pytest.mark.parametrize("is_call", [True, False], ids=["in a call", "in the preparation"])
def test_after_an_error_no_more_are_begun_and_all_have_ended(is_call: bool) -> None:
    ended: list[int] = []

    def call(number: int) -> None:
        if is_call and number == 3:
            raise ValueError("told to fail")
        ended.append(number)

    def calls() -> Iterator[Callable[[], None]]:
        for number in range(100):
            if not is_call and number == 3:
                raise ValueError("told to fail")
            yield partial(call, number)

    with pytest.raises(ValueError, match="told to fail"):
        side_by_side(calls())

    assert set(ended) - {4, 5} == {0, 1, 2}
