"""Dependency graphs: cycles, order, closure, critical path. Iterative: depth is no limit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from region_scheduler.errors import CyclicGraph, InvalidGraph

Edge = tuple[str, str]
_PROBLEMS_SHOWN = 20
_SHORTEST_CYCLE_NODES_MAX = 2_000


@dataclass(frozen=True)
class Dag:
    """A closed, acyclic graph of names; build it with `Dag.checked`.

    Attributes:
        before: Direct predecessors of each name, in the order given.
        after: Direct dependents of each name, in the order given.
        repeated_edges: How many edges came more than once (kept once).
    """

    before: Mapping[str, tuple[str, ...]]
    after: Mapping[str, tuple[str, ...]]
    repeated_edges: int = 0

    @classmethod
    def checked(cls, names: Iterable[str], edges: Iterable[Edge]) -> Dag:
        """Return the graph, or refuse it.

        Args:
            names: All node names; each once.
            edges: (before, after) pairs; a repeated pair is kept once and counted.

        Raises:
            InvalidGraph: Duplicate name, self-loop, or an edge that names no node.
            CyclicGraph: A cycle; its members are named, a shortest one where that is cheap.
        """
        before: dict[str, dict[str, None]] = {}
        problems: list[str] = []
        for name in names:
            if name in before:
                problems.append(f"id {name!r} occurs twice")
            before[name] = {}
        after: dict[str, dict[str, None]] = {name: {} for name in before}
        repeated = 0
        for first, then in edges:
            missing = [name for name in (first, then) if name not in before]
            if missing:
                problems.append(
                    f"edge {first!r} -> {then!r} names {missing[0]!r}, which is no node"
                )
            elif first == then:
                problems.append(f"{first!r} depends on itself")
            elif first in before[then]:
                repeated += 1
            else:
                before[then][first] = None
                after[first][then] = None
        if problems:
            hidden = len(problems) - _PROBLEMS_SHOWN
            shown = problems[:_PROBLEMS_SHOWN] + ([f"and {hidden} more"] if hidden > 0 else [])
            raise InvalidGraph(problems=shown)
        dag = cls(
            {name: tuple(preds) for name, preds in before.items()},
            {name: tuple(nexts) for name, nexts in after.items()},
            repeated,
        )
        dag._refuse_cycle()
        return dag

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Names in topological order (Kahn 1962), ties in the order given."""
        return tuple(self._peeled())

    @cached_property
    def waves(self) -> tuple[tuple[str, ...], ...]:
        """Names grouped by the length of the longest path from a root."""
        level: dict[str, int] = {}
        for name in self.order:
            level[name] = 1 + max((level[p] for p in self.before[name]), default=-1)
        waves: list[list[str]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
        for name in self.before:
            waves[level[name]].append(name)
        return tuple(tuple(wave) for wave in waves)

    def remaining(self, weight: Mapping[str, float]) -> dict[str, float]:
        """Return for each name the heaviest path that begins with it, itself included."""
        remaining: dict[str, float] = {}
        for name in reversed(self.order):
            remaining[name] = weight.get(name, 0.0) + max(
                (remaining[n] for n in self.after[name]), default=0.0
            )
        return remaining

    def critical_path(self, weight: Mapping[str, float]) -> tuple[str, ...]:
        """Return the heaviest path; equal ones are settled by name so that replays agree."""
        remaining = self.remaining(weight)
        path: list[str] = []
        choices: Sequence[str] = [name for name, preds in self.before.items() if not preds]
        while choices:
            heaviest = min(choices, key=lambda name: (-remaining[name], name))
            path.append(heaviest)
            choices = self.after[heaviest]
        return tuple(path)

    def closure(self, name: str) -> tuple[str, ...]:
        """Return everything that waits, directly or not, for `name`, nearest first."""
        found: dict[str, None] = {}
        queue = deque(self.after[name])
        while queue:
            current = queue.popleft()
            if current not in found:
                found[current] = None
                queue.extend(self.after[current])
        return tuple(found)

    def _peeled(self) -> list[str]:
        waiting = {name: len(preds) for name, preds in self.before.items()}
        queue = deque(name for name, count in waiting.items() if count == 0)
        order: list[str] = []
        while queue:
            name = queue.popleft()
            order.append(name)
            for then in self.after[name]:
                waiting[then] -= 1
                if waiting[then] == 0:
                    queue.append(then)
        return order

    def _refuse_cycle(self) -> None:
        order = self._peeled()
        if len(order) == len(self.before):
            return
        left = dict.fromkeys(name for name in self.before if name not in set(order))
        raise CyclicGraph(cycle=self._cycle_in(left))

    def _cycle_in(self, left: Mapping[str, None]) -> tuple[str, ...]:
        """Return a cycle among `left`, each of whose members has a predecessor in it."""
        some = self._some_cycle(left)
        if len(left) > _SHORTEST_CYCLE_NODES_MAX:
            return some
        best = some
        for start in left:
            found = self._shortest_through(start, left, len(best) - 1)
            if found:
                best = found
        return best

    def _some_cycle(self, left: Mapping[str, None]) -> tuple[str, ...]:
        seen: dict[str, int] = {}
        path: list[str] = []
        name = next(iter(left))
        while name not in seen:
            seen[name] = len(path)
            path.append(name)
            name = next(p for p in self.before[name] if p in left)
        return tuple(reversed(path[seen[name] :]))

    def _shortest_through(
        self, start: str, left: Mapping[str, None], length_max: int
    ) -> tuple[str, ...] | None:
        """Return a cycle through `start` of at most `length_max` names (breadth first), if any."""
        came: dict[str, str] = {}
        edge = [start]
        for _ in range(length_max):
            following: list[str] = []
            for name in edge:
                for then in self.after[name]:
                    if then == start:
                        path = [name]
                        while path[-1] != start:
                            path.append(came[path[-1]])
                        return tuple(reversed(path))
                    if then in left and then not in came:
                        came[then] = name
                        following.append(then)
            edge = following
        return None
