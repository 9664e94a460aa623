"""A loop is judged by when it last said that it goes round."""

from __future__ import annotations

from region_scheduler.runtime.pulse import Pulse


class Hand:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_loop_is_stuck_that_was_not_heard_of_in_time_and_not_before_its_first_beat() -> None:
    clock = Hand()
    pulse = Pulse(5.0, clock)
    clock.now += 60
    assert not pulse.is_stuck

    pulse.beat()
    clock.now += 5
    assert not pulse.is_stuck
    clock.now += 0.1
    assert pulse.is_stuck
    pulse.beat()
    assert not pulse.is_stuck


def test_what_waits_for_something_outside_is_judged_from_its_next_beat_on() -> None:
    clock = Hand()
    pulse = Pulse(5.0, clock)
    pulse.beat()

    pulse.rest()
    clock.now += 60
    assert not pulse.is_stuck

    pulse.beat()
    clock.now += 6
    assert pulse.is_stuck


def test_what_is_ending_is_judged_no_more_whatever_it_still_says() -> None:
    clock = Hand()
    pulse = Pulse(5.0, clock)
    pulse.beat()

    pulse.end()
    pulse.beat()
    clock.now += 60

    assert not pulse.is_stuck
