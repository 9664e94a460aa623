"""Runners that give their step up when the worker is told to end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from region_scheduler.domain.step import Found, Runner, StepJob, StopWish
from region_scheduler.domain.task import Exit, ExitKind, OnLoss

ENDING: Final = "the worker is ending"


def draining(runners: Mapping[str, Runner], is_ending: Callable[[], bool]) -> Mapping[str, Runner]:
    """Return the same runners, each of which stops its step once `is_ending` says so.

    A step that was stopped for that goes back and costs no retry; one that may have changed the
    world goes back in doubt, so that the next attempt looks first.
    """
    return _Draining(runners, is_ending)


class _Draining(Mapping[str, Runner]):
    def __init__(self, runners: Mapping[str, Runner], is_ending: Callable[[], bool]) -> None:
        self._runners = runners
        self._is_ending = is_ending

    def __getitem__(self, name: str) -> Runner:
        return _Drained(self._runners[name], self._is_ending, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._runners)

    def __len__(self) -> int:
        return len(self._runners)


@dataclass(slots=True)
class _Drained:
    inner: Runner
    is_ending: Callable[[], bool]
    name: str

    def run(self, job: StepJob, should_stop: StopWish) -> Exit:
        wishes: list[str] = []
        ended = self.inner.run(job, self._wish(should_stop, wishes))
        if ended.kind is not ExitKind.CANCELLED or wishes != [ENDING]:
            return ended
        is_repeatable = job.spec.on_loss is OnLoss.RETRY
        return replace(ended, kind=ExitKind.HAND_BACK if is_repeatable else ExitKind.IN_DOUBT)

    def inspect(self, job: StepJob, should_stop: StopWish) -> Found:
        # A look that was broken off would leave a question for a person; it is short, let it end.
        return self.inner.inspect(job, should_stop)

    def _wish(self, should_stop: StopWish, wishes: list[str]) -> StopWish:
        """Return a wish that remembers in `wishes` the first reason that it gave."""

        def ask() -> str:
            reason = should_stop() or (ENDING if self.is_ending() else "")
            if reason and not wishes:
                wishes.append(reason)
            return reason

        return ask
