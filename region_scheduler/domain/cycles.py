"""Cycles of a graph: its strongly connected components, and a short cycle in one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Nexts = Mapping[str, Iterable[str]]

SHORTEST_NODES_MAX: Final = 2_000
"""In components up to this size the cycle that is named is a shortest one."""
_STARTS_TRIED = 8


@dataclass(frozen=True, slots=True)
class Cycle:
    """A closed walk that names no node twice.

    Attributes:
        names: In order; the last leads to the first again.
        is_shortest: No cycle in the same component is shorter; else it is only a short one.
    """

    names: tuple[str, ...]
    is_shortest: bool

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Its edges in order, (before, after)."""
        return tuple(zip(self.names, (*self.names[1:], self.names[0]), strict=True))


def components(after: Nexts) -> list[list[str]]:
    """Return the strongly connected components (Tarjan 1972), dependents before what they need.

    Args:
        after: Dependents of every name.
    """
    found: list[list[str]] = []
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    open_: dict[str, None] = {}
    for root in after:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        open_[root] = None
        walk = [(root, iter(after[root]))]
        while walk:
            name, nexts = walk[-1]
            for then in nexts:
                if then not in number:
                    number[then] = low[then] = len(number)
                    open_[then] = None
                    walk.append((then, iter(after[then])))
                    break
                if then in open_:
                    low[name] = min(low[name], number[then])
            else:
                walk.pop()
                if walk:
                    above = walk[-1][0]
                    low[above] = min(low[above], low[name])
                if low[name] == number[name]:
                    found.append(_taken(open_, name))
    return found


def cyclic_components(after: Nexts) -> list[list[str]]:
    """Return the components of more than one name, the smallest first."""
    return sorted((c for c in components(after) if len(c) > 1), key=len)


def named_cycle(groups: Sequence[Sequence[str]], after: Nexts) -> Cycle:
    """Return the cycle to name for a whole graph.

    Args:
        groups: Its cyclic components, at least one, the smallest first.
        after: Dependents of every name.
    """
    best = cycle_in(groups[0], after)
    looked_at = len(groups[0])
    for group in groups[1:]:
        looked_at += len(group)
        if looked_at > SHORTEST_NODES_MAX:
            break
        best = min(best, cycle_in(group, after), key=lambda cycle: len(cycle.names))
    return best


def cycle_in(members: Sequence[str], after: Nexts) -> Cycle:
    """Return a cycle in a strongly connected component of at least two names."""
    search = _Search(members, after)
    is_small = len(members) <= SHORTEST_NODES_MAX
    return Cycle(search.shortest(len(members) if is_small else _STARTS_TRIED), is_small)


def _taken(open_: dict[str, None], last: str) -> list[str]:
    names = []
    while True:
        name, _ = open_.popitem()
        names.append(name)
        if name == last:
            return names


class _Search:
    """Breadth-first searches over sets of nodes kept as the bits of whole numbers.

    A node whose shortest cycle is known is taken out, and with it everything that no cycle goes
    through any more, so that a ring of any length costs one search.
    """

    def __init__(self, members: Sequence[str], after: Nexts) -> None:
        self._members = members
        at = {name: index for index, name in enumerate(members)}
        self._after = [[at[then] for then in after[name] if then in at] for name in members]
        self._before: list[list[int]] = [[] for _ in members]
        for index, nexts in enumerate(self._after):
            for then in nexts:
                self._before[then].append(index)
        self._nexts = [sum(1 << then for then in set(nexts)) for nexts in self._after]
        self._alive = (1 << len(members)) - 1
        self._ins = [len(befores) for befores in self._before]
        self._outs = [len(nexts) for nexts in self._after]

    def shortest(self, starts: int) -> tuple[str, ...]:
        """Return the shortest of the cycles through the first `starts` members that matter."""
        best: list[int] = []
        while self._alive and starts and len(best) != 2:  # there are no loops of one
            start = (self._alive & -self._alive).bit_length() - 1
            best = self._through(start, len(best) - 1 if best else len(self._members)) or best
            self._take_out(start)
            starts -= 1
        return tuple(self._members[index] for index in best)

    def _through(self, start: int, length_max: int) -> list[int]:
        """Return the members of a shortest cycle through `start`; none if it is longer."""
        goal = 1 << start
        levels = [goal]
        left = self._alive & ~goal
        while levels[-1] and len(levels) <= length_max:
            reached = 0
            for index in _bits(levels[-1]):
                reached |= self._nexts[index]
            if reached & goal:
                return self._back(levels, start)
            levels.append(reached & left)
            left &= ~reached
        return []

    def _back(self, levels: Sequence[int], start: int) -> list[int]:
        path: list[int] = []
        target = start
        for level in reversed(levels):
            target = next(index for index in self._before[target] if level >> index & 1)
            path.append(target)
        path.reverse()
        return path

    def _take_out(self, start: int) -> None:
        gone = [start]
        while gone:
            index = gone.pop()
            if not self._alive >> index & 1:
                continue
            self._alive ^= 1 << index
            for then in self._after[index]:
                self._ins[then] -= 1
                if not self._ins[then]:
                    gone.append(then)
            for before in self._before[index]:
                self._outs[before] -= 1
                if not self._outs[before]:
                    gone.append(before)


def _bits(number: int) -> Iterable[int]:
    """Return the places of the bits that are set, lowest first."""
    text = bin(number)[:1:-1]
    at = text.find("1")
    while at >= 0:
        yield at
        at = text.find("1", at + 1)
