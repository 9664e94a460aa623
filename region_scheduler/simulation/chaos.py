"""What goes wrong at the calls of a seeded world, drawn from its own chance.

Each fault has a number, in the order in which they are drawn. Which are drawn does not depend on
which of them strike: so a seed can be tried again with only some of its faults.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from hashlib import blake2b
from random import Random  # noqa: TID251 - a world is replayed by its seed
from typing import Any, Final

from region_scheduler.simulation.faults import Kind, kinds_of, struck
from region_scheduler.simulation.hub import Hub

_LATE: Final = "late"
_TRAVEL_S: Final = 0.02
_LATE_S: Final = 4.0
_OFTEN_S: Final = 3.0


class Trouble(StrEnum):
    """What happens to processes, links and stores, besides the faults of single calls."""

    FREEZE_SERVING = "freeze-serving"
    FREEZE_WORKER = "freeze-worker"
    KILL_SERVING = "kill-serving"
    KILL_WORKER = "kill-worker"
    KILL_CHILD = "kill-child"
    CUT = "cut"
    LAG = "lag"
    WIPE = "wipe-broker"
    REDELIVER = "redeliver"
    CLOCK = "clock"
    LOSE_STORE = "lose-relational-store"
    OPERATOR = "operator"


@dataclass(slots=True)
class Swarm:
    """Which kinds of faults one seed has, and how often; each seed has others."""

    kinds: frozenset[str]
    troubles: tuple[Trouble, ...]
    rate: float
    every_s: float

    @classmethod
    def of(cls, chance: Random) -> Swarm:
        """Draw it."""
        kinds = [*(kind.value for kind in Kind if kind is not Kind.STORE_GONE), _LATE]
        troubles = [one for one in Trouble if chance.random() < 0.6]
        return cls(
            frozenset(kind for kind in kinds if chance.random() < 0.7),
            tuple(troubles) or (Trouble.FREEZE_WORKER,),
            chance.choice([0.0, 0.005, 0.02, 0.05]),
            chance.choice([1.0, 3.0, 8.0]),
        )


@dataclass(slots=True)
class Chaos:
    """A hook that every port call of every process passes.

    Attributes:
        only: Numbers of the faults that strike; all if None.
        focus: What befalls the world, and nothing else; by chance if there is nothing.
        is_raging: Whether anything goes wrong.
        struck: What did, by number.
        lines: The trace, if it is kept.
    """

    seed: int
    only: Collection[int] | None = None
    focus: tuple[Trouble, ...] = ()
    keeps_trace: bool = False
    hub: Hub | None = None
    is_raging: bool = False
    drawn: int = 0
    struck: dict[int, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)
    swarm: Swarm = field(init=False)
    chance: Random = field(init=False)
    _travel: Random = field(init=False)
    _digest: Any = field(init=False)

    def __post_init__(self) -> None:
        """Draw the swarm."""
        self.chance = Random(f"faults {self.seed}")  # noqa: S311 - a replayable world
        self._travel = Random(f"travel {self.seed}")  # noqa: S311
        self._digest = blake2b(digest_size=8)
        drawn = Swarm.of(self.chance)
        self.swarm = Swarm(frozenset(), self.focus, 0.0, _OFTEN_S) if self.focus else drawn

    @property
    def trace_hash(self) -> str:
        """A digest of all that has happened so far, in its order."""
        return str(self._digest.hexdigest())

    def note(self, what: str) -> None:
        """Add a line to the trace."""
        now = self.hub.clock.seconds if self.hub is not None else 0.0
        line = f"{now:.6f} {what}"
        self._digest.update(line.encode() + b"\n")
        if self.keeps_trace:
            self.lines.append(line)

    def strikes(self, what: str) -> bool:
        """Draw a fault; say whether it is one of those that strike."""
        number = self.drawn
        self.drawn += 1
        if self.only is not None and number not in self.only:
            return False
        self.struck[number] = what
        self.counts[what.partition(" ")[0]] += 1
        self.note(f"fault {number}: {what}")
        return True

    def __call__(self, point: str, call: partial[Any]) -> Any:
        """Make a call, which travels there and back, well or not."""
        hub = self.hub
        if hub is None or (actor := hub.current) is None:
            return call()
        self.note(f"{actor.name} {point}")
        hub.sleep(self._travel.random() * _TRAVEL_S)
        kind = self._drawn(point) if self.is_raging else ""
        answer = self._struck(hub, point, kind, call) if kind else call()
        hub.sleep(self._travel.random() * _TRAVEL_S)
        return answer

    def _drawn(self, point: str) -> str:
        if self.chance.random() >= self.swarm.rate:
            return ""
        possible = [kind.value for kind in kinds_of(point) if kind is not Kind.STORE_GONE]
        if Kind.LOST_BEFORE.value in possible and point.partition(".")[0] == "tasks":
            possible.append(_LATE)
        kind = self.chance.choice(possible)
        if kind not in self.swarm.kinds:
            return ""
        return kind if self.strikes(f"{kind} {point}") else ""

    def _struck(self, hub: Hub, point: str, kind: str, call: partial[Any]) -> Any:
        if kind != _LATE:
            return struck(point, Kind(kind), call)
        after_s = self.chance.random() * _LATE_S
        hub.spawn(f"late {point}", partial(_quietly, call), after_s)
        return struck(point, Kind.LOST_BEFORE, call)


def _quietly(call: partial[Any]) -> None:
    try:
        call()
    except Exception:  # noqa: BLE001 - nobody waits for its answer any more
        return
