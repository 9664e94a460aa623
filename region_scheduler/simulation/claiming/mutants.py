"""The protocol of a claim broken by name; each is found by the fewest events that lead to harm.

Like the mutants of the seeded worlds these are patches that live here and run only here. The model
is explored to its end without the mutant, which must be green, and then with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final

from region_scheduler.commit import gate
from region_scheduler.domain.task import Json
from region_scheduler.ports.documents import WriteResult
from region_scheduler.simulation.claiming import breaking, model
from region_scheduler.simulation.claiming.model import ClaimModel
from region_scheduler.simulation.claiming.roles import Roles, Rules
from region_scheduler.simulation.claiming.state import State, Trouble
from region_scheduler.simulation.exploration import Explored, explore
from region_scheduler.simulation.mutants import patched
from region_scheduler.verify.invariants import Invariant

_STATES_MAX: Final = 300_000


@dataclass(frozen=True, slots=True)
class Breakage:
    """A way to break the protocol.

    Attributes:
        breaks: The promise that it is found by.
        what: What is left out.
        troubles: What has to go wrong, each once.
        rules: The decisions; None for the product's own.
        patches: (module or class, name, what stands there instead).
        is_chain: It is about a second task that needs the first; else there is one task.
    """

    breaks: Invariant
    what: str
    troubles: tuple[Trouble, ...] = ()
    rules: Rules | None = None
    patches: Sequence[tuple[Any, str, Any]] = ()
    is_chain: bool = False

    def explored(self, *, is_broken: bool) -> Explored[State]:
        """Explore the model with or without the breakage."""
        with patched(self.patches) if is_broken else nullcontext():
            world = ClaimModel(
                frozenset(self.troubles),
                self.is_chain,
                self.rules if is_broken else None,
                tasks=2 if self.is_chain else 1,
                is_scanning=self.is_chain,
            )
            return explore(world, _STATES_MAX)


@dataclass(frozen=True, slots=True)
class Hunt:
    """What became of a mutant.

    Attributes:
        name: The mutant.
        found: With it.
        without: The same model without it.
    """

    name: str
    found: Explored[State]
    without: Explored[State]

    @property
    def is_killed(self) -> bool:
        """Whether it was found by the promise that it breaks, on a model that is green without."""
        is_named = self.found.broken.startswith(f"{BREAKAGES[self.name].breaks}:")
        return is_named and self.is_green_without

    @property
    def is_green_without(self) -> bool:
        """Whether every state was visited without the mutant, and none is broken."""
        return self.without.is_whole and not self.without.broken

    def document(self) -> dict[str, Json]:
        """Return it for programs."""
        return {
            "ok": not self.found.broken,
            "states": self.found.states,
            "states_without": self.without.states,
            "broken": self.found.broken,
            "path": list(self.found.path),
            "mutant": {
                "name": self.name,
                "breaks": BREAKAGES[self.name].breaks.value,
                "killed": self.is_killed,
                "green_without": self.is_green_without,
            },
        }

    def lines(self) -> Iterator[str]:
        """Yield it for people."""
        breakage = BREAKAGES[self.name]
        yield f"{breakage.what}; {' and '.join(breakage.troubles) or 'nothing else goes wrong'}"
        yield from (f"  {n}. {event}" for n, event in enumerate(self.found.path, 1))
        yield f"  {self.found.broken or 'no promise is broken'}"
        green = "none is broken" if self.is_green_without else "NOT green"
        yield f"without the mutant: {self.without.states:,} states, {green}"
        told = "found" if self.is_killed else "NOT found"
        yield f"mutant {self.name}: {told} by {breakage.breaks}"


def hunt(name: str) -> Hunt:
    """Look for a mutant of `BREAKAGES`."""
    breakage = BREAKAGES[name]
    return Hunt(name, breakage.explored(is_broken=True), breakage.explored(is_broken=False))


_ONE, _ORDER, _LOSS = Invariant.ONE_HOLDER, Invariant.ORDER, Invariant.NO_LOSS

BREAKAGES: Final[Mapping[str, Breakage]] = {
    "claim-whatever-state": Breakage(
        _ONE,
        "a claim takes a task that another has or runs",
        rules=Rules(claim=breaking.claim_whatever_state),
    ),
    "start-under-any-receipt": Breakage(
        _ONE,
        "a start takes over from the attempt that was started under the same token",
        (Trouble.MESSAGE_TWICE,),
        Rules(start=breaking.start_any_receipt),
    ),
    "start-known-by-worker": Breakage(
        _ONE,
        "a start is known as one's own by the worker's name, not by the receipt",
        (Trouble.MESSAGE_TWICE,),
        Rules(start=breaking.start_same_worker),
    ),
    "start-under-any-token": Breakage(
        Invariant.FENCING,
        "a message of an earlier claim starts the task",
        (Trouble.MESSAGE_SLOW,),
        Rules(start=breaking.start_any_token),
    ),
    "complete-for-another": Breakage(
        _ONE,
        "an attempt that was lost completes the one that runs",
        (Trouble.WORKER_PAUSED,),
        Rules(complete=breaking.complete_by_anyone),
    ),
    "complete-again": Breakage(
        Invariant.ONCE,
        "a completion does not look for its own receipt, and is accepted again",
        (Trouble.ANSWER_LOST,),
        Rules(complete=breaking.complete_again),
    ),
    "requeue-started": Breakage(
        _ONE,
        "the dispatch time-out takes a task that was started meanwhile",
        (Trouble.MESSAGE_SLOW,),
        Rules(requeue=breaking.requeue_started),
    ),
    "lose-by-token": Breakage(
        _ONE,
        "a loss names the token, and not the holder that was seen",
        (Trouble.SCHEDULER_KILLED,),
        Rules(lose=breaking.lose_by_token),
    ),
    "lose-whoever-holds": Breakage(
        _ONE,
        "a loss takes the task from whoever holds it by then",
        (Trouble.WORKER_PAUSED,),
        Rules(lose=breaking.lose_whoever_holds),
    ),
    "unlock-whatever-state": Breakage(
        _ONE,
        "a second unlock makes a task ready that is running",
        rules=Rules(unlock=breaking.unlock_whatever_state),
        is_chain=True,
    ),
    "unlock-without-in-degree": Breakage(
        _ORDER,
        "an unlock does not count the predecessors that are satisfied",
        rules=Rules(unlock=breaking.unlock_without_in_degree),
        is_chain=True,
    ),
    "write-without-revision": Breakage(
        _ONE,
        "a write does not look at the revision that was read",
        patches=[(ClaimModel, "_written", breaking.written_over)],
    ),
    "conflict-is-success": Breakage(
        _ONE,
        "the gate takes a conflict for a write of its own",
        (Trouble.MESSAGE_TWICE,),
        patches=[(gate._Try, "answered", breaking.taken_for_success(WriteResult.CONFLICT))],
    ),
    "lost-answer-is-success": Breakage(
        _ONE,
        "the gate takes a lost answer for a write that was done",
        (Trouble.REQUEST_LOST,),
        patches=[(gate._Try, "answered", breaking.taken_for_success(WriteResult.UNKNOWN))],
    ),
    "step-before-start": Breakage(
        _ONE,
        "a worker begins the step before its start is accepted",
        patches=[(Roles, "_attempt", breaking.step_first)],
    ),
    "begin-after-deadline": Breakage(
        _ONE,
        "a step begins without a look at its deadline",
        (Trouble.WORKER_PAUSED,),
        patches=[(ClaimModel, "_may_begin", breaking.always)],
    ),
    "steps-outlive-lease": Breakage(
        _ONE,
        "nobody ends a step whose lease is over",
        (Trouble.WORKER_PAUSED,),
        Rules(is_deadline_kept=False),
    ),
    "step-outlives-child": Breakage(
        _ONE,
        "a step goes on when its pool child is killed",
        (Trouble.CHILD_KILLED,),
        patches=[(model, "killed", breaking.killed_alone)],
    ),
    "renew-though-fenced": Breakage(
        _ONE,
        "a worker renews its lease though it is fenced",
        (Trouble.WORKER_PAUSED,),
        patches=[(ClaimModel, "_lease", breaking.renews_though_fenced)],
    ),
    "fence-at-first-silence": Breakage(
        _ONE,
        "an observer fences a worker that is silent before its lease is over",
        (Trouble.WORKER_PAUSED,),
        patches=[(ClaimModel, "_dead", breaking.dead_if_silent)],
    ),
    "judge-by-old-beat": Breakage(
        _ONE,
        "a receipt counts as missing in a beat that is older than its start",
        patches=[(ClaimModel, "_listed", breaking.lists_none)],
    ),
    "list-receipt-late": Breakage(
        _ONE,
        "a receipt enters the beats only when its step has begun",
        patches=[(ClaimModel, "_listed", breaking.lists_begun)],
    ),
    "never-miss-receipts": Breakage(
        _LOSS,
        "nobody misses the receipt of a dead child under a living worker",
        (Trouble.CHILD_KILLED,),
        patches=[(ClaimModel, "_listed", breaking.lists_all)],
    ),
    "no-dispatch-timeout": Breakage(
        _LOSS,
        "nobody requeues a claim whose message was lost",
        (Trouble.MESSAGE_LOST,),
        patches=[(ClaimModel, "_is_unpublished", breaking.never)],
    ),
    "fence-without-sweep": Breakage(
        _LOSS,
        "what a fenced worker ran is not taken from it",
        (Trouble.WORKER_PAUSED,),
        patches=[(ClaimModel, "_verdicts", breaking.no_sweep)],
    ),
    "unlock-only-at-completion": Breakage(
        _LOSS,
        "no reconciler unlocks what a worker that died after its completion did not",
        (Trouble.CHILD_KILLED,),
        patches=[(ClaimModel, "_is_unlockable", breaking.never)],
        is_chain=True,
    ),
}
"""By name."""
