"""Measure what distance costs a task: `region-scheduler bench wide-area`.

A chain of two tasks in one region whose graph store has its leader far away. On the clock is the
way from the answer to the completion of the first to the answer to the start of the second: settle,
promote, claim, assign, dispatch, start. Everything runs one after the other in this process, and
each call that goes to the leader takes the injected round trip longer; what a follower answers, and
the broker, are near. So the figures are the product's own sequence of calls and their waiting, not
the work of machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, get_type_hints

from region_scheduler.bench.figures import Figure
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.states import TaskState
from region_scheduler.domain.task import LockNeed, TaskSpec
from region_scheduler.ports.records import GraphStores
from region_scheduler.runtime.system import SystemClock
from region_scheduler.simulation.world import World

HOME: Final = "eu-west"
ROUND_TRIPS: Final = 4
"""What the design allows from a completion to the start behind it; one more for each lock."""
RTTS_MS: Final = (0, 20, 80)
_DOCUMENTS: Final = frozenset({"read", "insert", "write", "remove"})


def leader_calls() -> frozenset[str]:
    """Return the calls of the graph store that go to its leader, as `store.method`."""
    found: set[str] = set()
    for store, prop in vars(GraphStores).items():
        if isinstance(prop, property):
            port = get_type_hints(prop.fget)["return"]
            found |= {f"{store}.{method}" for method in _DOCUMENTS}
            for method in [name for name in dir(port) if not name.startswith("_")]:
                hint = get_type_hints(getattr(port, method), include_extras=True).get("return")
                if getattr(hint, "__metadata__", ("",))[0] == "deciding":
                    found.add(f"{store}.{method}")
    return frozenset(found)


@dataclass(slots=True)
class Way:
    """A hook that follows one task from the completion before it to its start.

    Attributes:
        rtt_s: A call to the leader takes so much longer.
        trips: The calls to the leader on the way, in order.
        seconds: How long it took.
    """

    rtt_s: float = 0.0
    trips: list[str] = field(default_factory=list)
    seconds: float = 0.0
    _at: float | None = None
    _is_over: bool = False
    _leader: frozenset[str] = field(default_factory=leader_calls)
    _clock: SystemClock = field(default_factory=SystemClock)

    def __call__(self, point: str, call: partial[Any]) -> Any:
        """Make a call, counted and delayed while the way lasts."""
        is_sent = not call.args or call.args[0] != []  # nothing is asked about no documents
        if self._at is not None and not self._is_over and point in self._leader and is_sent:
            self.trips.append(point)
            self._clock.pause(self.rtt_s)
        answer = call()
        if point == "tasks.write":
            for task in [one.value for one in answer if one.value is not None]:
                self._note(task.spec.name, task.state)
        return answer

    def _note(self, name: str, state: TaskState) -> None:
        if (name, state) == ("first", TaskState.DONE):
            self._at = self._clock.monotonic()
        elif (name, state) == ("second", TaskState.RUNNING) and self._at is not None:
            self.seconds, self._is_over = self._clock.monotonic() - self._at, True


def travel(rtt_s: float, locks: int) -> Way:
    """Return the way of a task that needs so many locks, over such a distance."""
    way = Way(rtt_s)
    needs = tuple(LockNeed(f"acme/lock-{n}") for n in range(locks))
    given: dict[str, Any] = {"runner": "simulate", "region": HOME, "allowed_regions": (HOME,)}
    warm = TaskSpec(name="warm", locks=needs, **given)
    specs = (TaskSpec(name="first", **given), TaskSpec(name="second", locks=needs, **given))
    plan = Plan(name="g", tenant="acme", home_region=HOME, regions=(HOME,), tasks=(warm,), edges=())
    chain = Plan(
        name="g",
        tenant="acme",
        home_region=HOME,
        regions=(HOME,),
        tasks=specs,
        edges=(("first", "second"),),
    )
    with TemporaryDirectory() as text:
        world = World(Path(text), (HOME,), hook=way)
        intake = world.regions[HOME].services.intake
        intake.admit(plan, "warm")  # the locks are made, the tenant's level is known
        world.fast_path()
        intake.admit(chain, "chain")
        world.fast_path()
    return way


def measure(rtts_ms: Sequence[int] = RTTS_MS) -> list[Figure]:
    """Return the round trips, and what they take over each distance.

    Args:
        rtts_ms: Round trips from the region to the leader, milliseconds.
    """
    figures: list[Figure] = []
    for locks in (0, 1):
        told = "one lock" if locks else "no locks"
        for rtt_ms in rtts_ms:
            way = travel(rtt_ms / 1000, locks)
            if rtt_ms == rtts_ms[0]:
                name, most = f"round trips, {told}", ROUND_TRIPS + locks
                limit = ", ".join(way.trips)
                figures.append(Figure(name, len(way.trips), "calls", most, limit))
            bare = f"{len(way.trips)} round trips of {rtt_ms} ms"
            figures.append(Figure(f"  {rtt_ms} ms away", 1e3 * way.seconds, "ms", None, bare))
    return figures
