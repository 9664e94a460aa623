"""Many seeds, one after the other; of one that fails, the few faults that matter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from region_scheduler.domain.task import Json
from region_scheduler.errors import InvalidInput
from region_scheduler.simulation.claiming.mutants import BREAKAGES
from region_scheduler.simulation.mutants import MUTANTS, Mutant
from region_scheduler.simulation.seeded import Outcome, play

_TRIES_MAX: Final = 40
_HOUR_S: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A seed on which a promise is broken.

    Attributes:
        faults: Those that are needed for it, by number: as few as were found.
        command: Plays it again.
    """

    outcome: Outcome
    faults: dict[int, str]
    command: str

    def document(self) -> dict[str, Json]:
        """Return it for programs."""
        return {
            "seed": self.outcome.seed,
            "broken": [one.value for one in self.outcome.report.broken],
            "faults": {str(number): what for number, what in self.faults.items()},
            "command": self.command,
            "report": self.outcome.report.document(),
        }

    def lines(self) -> Iterator[str]:
        """Yield it for people."""
        yield f"seed {self.outcome.seed}: {', '.join(self.outcome.report.broken)} broken"
        for verdict in self.outcome.report.verdicts:
            if verdict.count:
                yield from (f"  {line}" for line in verdict.lines())
        yield from (f"  fault {number}: {what}" for number, what in self.faults.items())
        yield f"  again: {self.command}"


@dataclass(slots=True)
class Campaign:
    """What became of the seeds so far.

    Attributes:
        mutant: Name of what was broken; empty if nothing.
        is_green_without: Whether the seed that found a mutant is green without it.
    """

    mutant: str = ""
    seeds: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    virtual_s: float = 0.0
    turns: int = 0
    failures: list[Failure] = field(default_factory=list)
    is_green_without: bool | None = None
    _digest: Any = field(default_factory=lambda: blake2b(digest_size=8))

    @property
    def violations(self) -> int:
        """How often a promise was broken."""
        return sum(one.outcome.report.violations for one in self.failures)

    @property
    def is_killed(self) -> bool:
        """Whether the mutant was found by the promise that it breaks, and by nothing else."""
        if not self.mutant or not self.failures:
            return False
        broken = self.failures[-1].outcome.report.broken
        return MUTANTS[self.mutant].breaks in broken and self.is_green_without is True

    def add(self, outcome: Outcome) -> None:
        """Count a seed."""
        self.seeds += 1
        self.faults += outcome.faults
        self.runs += Counter(outcome.runs)
        self.virtual_s += outcome.virtual_s
        self.turns += outcome.turns
        self._digest.update(outcome.trace_hash.encode())

    def document(self) -> dict[str, Json]:
        """Return it for programs."""
        found: dict[str, Json] = {
            "ok": not self.failures,
            "seeds": self.seeds,
            "violations": self.violations,
            "faults": dict(sorted(self.faults.items())),
            "fault_count": self.faults.total(),
            "virtual_hours": round(self.virtual_s / _HOUR_S, 3),
            "turns": self.turns,
            "runs": dict(sorted(self.runs.items())),
            "trace_hash": self._digest.hexdigest(),
            "failures": [one.document() for one in self.failures],
        }
        if self.mutant:
            mutant = MUTANTS[self.mutant]
            found["mutant"] = {
                "name": self.mutant,
                "breaks": mutant.breaks.value,
                "killed": self.is_killed,
                "green_without": self.is_green_without,
            }
        return found

    def lines(self) -> Iterator[str]:
        """Yield it for people."""
        for failure in self.failures:
            yield from failure.lines()
        faults = ", ".join(f"{count} {kind}" for kind, count in self.faults.most_common())
        hours = self.virtual_s / _HOUR_S
        yield f"{self.seeds} seeds, {hours:.2f} virtual hours, {self.turns} turns"
        yield f"{self.faults.total()} faults: {faults or 'none'}"
        yield f"{self.violations} violations, trace {self._digest.hexdigest()}"
        if self.mutant:
            told = "found" if self.is_killed else "NOT found"
            yield f"mutant {self.mutant}: {told} by {MUTANTS[self.mutant].breaks}"


def simulate(
    seeds: Sequence[int],
    minutes: float,
    only: Collection[int] | None = None,
    mutant: str = "",
    *,
    on_trace: Callable[[str], None] | None = None,
    on_seed: Callable[[Outcome], None] = lambda _: None,
) -> Campaign:
    """Let worlds live, one a seed; a mutant's until it is found.

    Args:
        seeds: Which.
        minutes: How long faults rage in each, virtual.
        only: Numbers of the faults that strike; all if None.
        mutant: Name of what is broken; empty for nothing.
        on_trace: Given each line of the traces, if given.
        on_seed: Told what became of each.

    Raises:
        InvalidInput: There is no such mutant.
    """
    broken = _mutant(mutant)
    found = Campaign(mutant)
    for seed in seeds:
        outcome = _played(seed, minutes, only, broken, keeps_trace=on_trace is not None)
        if on_trace is not None:
            for line in outcome.trace:
                on_trace(line)
        found.add(outcome)
        on_seed(outcome)
        if not outcome.report.violations:
            continue
        if broken is None:
            found.failures.append(_failure(outcome, minutes, only))
            continue
        command = _command(seed, minutes, None, mutant)
        found.failures = [Failure(outcome=outcome, faults={}, command=command)]
        if broken.breaks in outcome.report.broken:
            found.is_green_without = not play(seed, minutes, only, broken.focus).report.violations
            break
    return found


def _failure(outcome: Outcome, minutes: float, only: Collection[int] | None) -> Failure:
    """Look for the few faults that break the same promise."""
    wanted = outcome.report.broken[0]
    kept, few = list(outcome.struck), outcome
    for attempt in halved(kept):
        tried = play(outcome.seed, minutes, attempt.left)
        if wanted in tried.report.broken:
            attempt.is_enough = True
            few = tried
    numbers = sorted(few.struck)
    command = _command(outcome.seed, minutes, numbers if few is not outcome else only)
    return Failure(outcome=few, faults={n: few.struck[n] for n in numbers}, command=command)


@dataclass(slots=True)
class Attempt:
    """Some of the faults; whether they are enough is said by who tries them."""

    left: list[int]
    is_enough: bool = False


def halved(all_of_them: Iterable[int]) -> Iterator[Attempt]:
    """Yield ever smaller parts to be tried (delta debugging, Zeller 1999), a bounded number."""
    kept, size, tries = list(all_of_them), 2, 0
    while len(kept) > 1 and tries < _TRIES_MAX:
        step = max(1, len(kept) // size)
        for begin in range(0, len(kept), step):
            attempt = Attempt([*kept[:begin], *kept[begin + step :]])
            tries += 1
            yield attempt
            if attempt.is_enough:
                kept, size = attempt.left, max(2, size - 1)
                break
            if tries >= _TRIES_MAX:
                return
        else:
            if step == 1:
                return
            size *= 2


def _played(
    seed: int,
    minutes: float,
    only: Collection[int] | None,
    mutant: Mutant | None,
    *,
    keeps_trace: bool,
) -> Outcome:
    focus = mutant.focus if mutant is not None else ()
    with mutant.at_work() if mutant is not None else nullcontext():
        return play(seed, minutes, only, focus, keeps_trace=keeps_trace)


def _mutant(name: str) -> Mutant | None:
    if name and name not in MUTANTS:
        expected = f"one of {', '.join((*MUTANTS, *BREAKAGES))}"
        raise InvalidInput(field="--mutant", value=name, expected=expected)
    return MUTANTS.get(name)


def _command(seed: int, minutes: float, only: Collection[int] | None, mutant: str = "") -> str:
    words = ["region-scheduler simulate", f"--seeds {seed}", f"--minutes {minutes:g}"]
    if only is not None:
        words.append(f"--only {','.join(map(str, only)) or 'none'}")
    if mutant:
        words.append(f"--mutant {mutant}")
    return " ".join(words)
