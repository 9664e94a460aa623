"""Dependency graphs: cycles, order, closure, critical path. Iterative: depth is no limit."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from region_scheduler.domain.cycles import cyclic_components, named_cycle
from region_scheduler.errors import CyclicGraph, InvalidGraph

Edge = tuple[str, str]
_PROBLEMS_SHOWN = 20
_NOTHING: tuple[str, ...] = ()


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
    def checked(
        cls, names: Iterable[str], edges: Iterable[Edge], places: Mapping[Edge, str] | None = None
    ) -> Dag:
        """Return the graph, or refuse it.

        Args:
            names: All node names; each once.
            edges: (before, after) pairs; a repeated pair is kept once and counted.
            places: Where the source says that an edge is, for refusals; e.g. file and line.

        Raises:
            InvalidGraph: Duplicate name, self-loop, or an edge that names no node.
            CyclicGraph: A cycle; its members and edges are named. It is a shortest one of its
                component unless that is very big.
        """
        listed, pairs = list(names), list(edges)
        before, after = dict.fromkeys(listed, _NOTHING), dict.fromkeys(listed, _NOTHING)
        distinct = dict.fromkeys(pairs)
        befores: dict[str, list[str]] = defaultdict(list)
        afters: dict[str, list[str]] = defaultdict(list)
        for first, then in distinct:
            befores[then].append(first)
            afters[first].append(then)
        has_loop = any(first == then for first, then in distinct)
        is_closed = befores.keys() <= before.keys() and afters.keys() <= before.keys()
        if has_loop or not is_closed or len(before) != len(listed):
            raise InvalidGraph(problems=_problems(listed, distinct, places or {}))
        before.update((name, tuple(preds)) for name, preds in befores.items())
        after.update((name, tuple(nexts)) for name, nexts in afters.items())
        dag = cls(before, after, len(pairs) - len(distinct))
        if len(dag.order) != len(before):
            dag._refuse(places or {})
        return dag

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Names in topological order (Kahn 1962), ties in the order given."""
        return tuple(name for layer in self._layers for name in layer)

    @property
    def depth(self) -> int:
        """How many names the longest path has."""
        return len(self._layers)

    @cached_property
    def waves(self) -> tuple[tuple[str, ...], ...]:
        """Names grouped by the length of the longest path from a root, each in the order given."""
        at = {name: index for index, name in enumerate(self.before)}
        return tuple(tuple(sorted(layer, key=at.__getitem__)) for layer in self._layers)

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

    @cached_property
    def _layers(self) -> list[list[str]]:
        """What becomes free together once all before it is gone; without members of cycles."""
        waiting = {name: len(preds) for name, preds in self.before.items() if preds}
        layer = [name for name, preds in self.before.items() if not preds]
        layers = []
        while layer:
            layers.append(layer)
            freed = []
            for name in layer:
                for then in self.after[name]:
                    left = waiting[then] = waiting[then] - 1
                    if not left:
                        freed.append(then)
            layer = freed
        return layers

    def _refuse(self, places: Mapping[Edge, str]) -> None:
        placed = set(self.order)
        left = {
            name: [then for then in nexts if then not in placed]
            for name, nexts in self.after.items()
            if name not in placed
        }
        cycle = named_cycle(cyclic_components(left), left)
        raise CyclicGraph(
            cycle=cycle.names,
            places=[places.get(edge, "") for edge in cycle.edges],
            is_shortest=cycle.is_shortest,
        )


def _problems(names: Sequence[str], edges: Iterable[Edge], places: Mapping[Edge, str]) -> list[str]:
    """Return what is wrong, each with its place, cut short."""
    problems = [f"id {name!r} occurs twice" for name, n in Counter(names).items() if n > 1]
    known = set(names)
    for edge in edges:
        first, then = edge
        what = ""
        if first not in known or then not in known:
            missing = then if first in known else first
            what = f"edge {first!r} -> {then!r} names {missing!r}, which is no node"
        elif first == then:
            what = f"{first!r} depends on itself"
        if what:
            place = places.get(edge)
            problems.append(f"{what} ({place})" if place else what)
    hidden = len(problems) - _PROBLEMS_SHOWN
    return problems[:_PROBLEMS_SHOWN] + ([f"and {hidden} more"] if hidden > 0 else [])
