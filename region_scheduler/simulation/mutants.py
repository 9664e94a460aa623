"""The product broken by name, to see that it is seen: patches that live here and run only here.

Production code has no switch for any of them. Each names the promise that it breaks, and a seed on
which that is found and which is green without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from region_scheduler.domain import transitions
from region_scheduler.domain.ids import ReceiptId
from region_scheduler.domain.instance import Instance
from region_scheduler.domain.lease import Instant, LeaseTimings
from region_scheduler.domain.slot import Slot
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import Task, Token
from region_scheduler.errors import Fenced
from region_scheduler.lifecycle import settle
from region_scheduler.membership.observer import Observer
from region_scheduler.operations.audit import Auditor
from region_scheduler.resources import sweep
from region_scheduler.simulation.chaos import Trouble
from region_scheduler.verify.invariants import Invariant

_FAR_S: Final = 1e9


@dataclass(frozen=True, slots=True)
class Mutant:
    """A way to break the product.

    Attributes:
        breaks: The promise that it is found by.
        what: What is left out.
        seed: The first on which it is looked for.
        patches: (module or class, name, what stands there instead).
        focus: What befalls the world in which it is looked for.
    """

    breaks: Invariant
    what: str
    seed: int
    patches: Sequence[tuple[Any, str, Any]]
    focus: tuple[Trouble, ...] = ()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Break the product for a while."""
        with patched(self.patches):
            yield


@contextmanager
def patched(patches: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    """Let something else stand at each (module or class, name) for a while."""
    with ExitStack() as undoing:
        for target, name, instead in patches:
            undoing.callback(setattr, target, name, vars(target)[name])
            setattr(target, name, instead)
        yield


def _only_the_state(
    task: Task, token: Token, state: TaskState, receipt_id: ReceiptId | None = None
) -> None:
    del receipt_id
    if task.state is not state:
        raise Fenced(held=str(token), current=f"{task.token} ({task.state})")


def _never_over(timings: LeaseTimings, asked_at: Instant) -> Instant:
    del timings
    return asked_at + _FAR_S


def _dead_at_second_sight(
    observer: Observer, instances: Sequence[Instance], now: Instant, unbroken_since: Instant
) -> list[Instance]:
    before = getattr(observer, "_beats", {})
    last = {one.id: (one.beat, now) for one in instances}
    setattr(observer, "_beats", last)  # noqa: B010 - it has another shape here
    del unbroken_since
    return [one for one in instances if before.get(one.id, (None,))[0] == one.beat]


def _is_any(slot: Slot, task: Task | None) -> bool:
    del task
    return slot.holder is not None


def _is_none(slot: Slot, task: Task | None) -> bool:
    del slot, task
    return False


def _nothing_done(*_: Any, **__: Any) -> None:
    return None


MUTANTS: Final[Mapping[str, Mutant]] = {
    "skip-fencing": Mutant(
        Invariant.FENCING,
        "a write is accepted under an old token",
        1,
        [(transitions, "_require", _only_the_state)],
        (Trouble.FREEZE_WORKER,),
    ),
    "lease-never-over": Mutant(
        Invariant.ONE_HOLDER,
        "a holder goes on for as long as it likes without a renewal",
        1,
        [(LeaseTimings, "deadline", _never_over)],
        (Trouble.FREEZE_WORKER,),
    ),
    "dead-at-second-sight": Mutant(
        Invariant.ONE_HOLDER,
        "an observer that sees the same beat twice calls it dead",
        2,
        [(Observer, "dead", _dead_at_second_sight)],
        (Trouble.FREEZE_WORKER,),
    ),
    "free-held-slots": Mutant(
        Invariant.CAPACITY,
        "the sweep frees whatever is held",
        1,
        [(sweep, "is_orphan", _is_any)],
    ),
    "keep-slots": Mutant(
        Invariant.NO_LEAK,
        "nobody releases what an ended task held",
        1,
        [(sweep, "is_orphan", _is_none), (settle, "is_orphan", _is_none)],
    ),
    "no-audit": Mutant(
        Invariant.AUDIT,
        "what people do is not written down",
        1,
        [(Auditor, "record", _nothing_done)],
        (Trouble.OPERATOR,),
    ),
}
"""By name."""
