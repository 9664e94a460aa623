"""A graph as an importer found it, before anything was decided about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from region_scheduler.admission.importers.fields import refused
from region_scheduler.domain.dag import Edge
from region_scheduler.domain.task import Json
from region_scheduler.errors import InvalidGraph

SOURCE_RUNNER = "simulate"
"""What a node without a runner gets at an import: a step that changes nothing."""


class Numbered(Mapping[Edge, str]):
    """Places of edges by their number in a list; counted only when one is asked for."""

    def __init__(self, edges: Sequence[Edge]) -> None:
        self._edges = edges

    @cached_property
    def _at(self) -> dict[Edge, str]:
        return {edge: f"edges[{n}]" for n, edge in reversed(list(enumerate(self._edges)))}

    def __getitem__(self, edge: Edge) -> str:
        return self._at[edge]

    def __iter__(self) -> Iterator[Edge]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._at)


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A reference that reading alone does not resolve; it is named, never guessed.

    Attributes:
        expression: As it stands in the source.
        unit: Whose reference it is.
        place: File and line.
    """

    expression: str
    unit: str
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundGraph:
    """What an importer read.

    Attributes:
        name: Of the graph.
        source: Where it came from.
        kind: What it came from.
        nodes: In the product's form, in the order found.
        edges: (before, after) as found: repeated ones, loops and references to nowhere included.
        places: Where the source says an edge; of repeated ones the first.
        dangling: References to nowhere that were set aside.
        unresolved: What reading could not resolve.
        notes: What else a person should know, a sentence each.
        more: Keys of the form that say nothing to the scheduler and are handed on.
    """

    name: str
    source: str = ""
    kind: str = ""
    nodes: tuple[Mapping[str, Json], ...]
    edges: tuple[Edge, ...]
    places: Mapping[Edge, str] = field(default_factory=dict)
    dangling: tuple[Edge, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()
    notes: tuple[str, ...] = ()
    more: Mapping[str, Json] = field(default_factory=dict)

    def document(self) -> dict[str, Json]:
        """Return it in the product's own form (docs/submission-schema.md)."""
        known: dict[str, Json] = {
            **self.more,
            "name": self.name,
            "source": self.source,
            "kind": self.kind,
            "nodes": [dict(node) for node in self.nodes],
            "edges": [list(edge) for edge in dict.fromkeys(self.edges)],
            "notes": "; ".join(self.notes),
            "dangling_edges": [list(edge) for edge in self.dangling],
            "unresolved": [[one.expression, one.unit] for one in self.unresolved],
        }
        return {key: value for key, value in known.items() if value or key in {"nodes", "edges"}}


@dataclass(frozen=True, slots=True)
class Leniency:
    """What a person lets pass.

    Attributes:
        drops_self_loops: Edges from a node to itself are left out.
        ignores_dangling: Edges that name no node are left out.
        is_strict: What the source says of references that lead nowhere, or that reading could not
            resolve, refuses the graph, too.
    """

    drops_self_loops: bool = False
    ignores_dangling: bool = False
    is_strict: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """A graph after a person's leniency was applied.

    Attributes:
        graph: What is left.
        self_loops_dropped: How many edges were loops and are left out.
        dangling_ignored: How many edges named no node and are left out.
    """

    graph: FoundGraph
    self_loops_dropped: int
    dangling_ignored: int


def settled(found: FoundGraph, leniency: Leniency) -> Settled:
    """Return the graph with what is let pass left out, and told.

    Raises:
        InvalidGraph: It is strict and something could not be resolved.
        InvalidInput: It is strict and lenient at once.
    """
    if leniency.is_strict and (leniency.ignores_dangling or leniency.drops_self_loops):
        told = "leave out --drop-self-loops and --ignore-dangling, or --strict"
        raise refused("--strict", "", told)
    names = {node["id"] for node in found.nodes}
    edges = list(found.edges)
    if leniency.is_strict:
        if found.unresolved:
            raise InvalidGraph(problems=[unresolved_text(one) for one in found.unresolved])
        edges += found.dangling
        found = replace(found, dangling=())
    loops = dangling = 0
    if leniency.drops_self_loops:
        kept = [edge for edge in edges if edge[0] != edge[1]]
        loops, edges = len(edges) - len(kept), kept
    if leniency.ignores_dangling:
        kept = [edge for edge in edges if edge[0] in names and edge[1] in names]
        gone = [edge for edge in edges if not (edge[0] in names and edge[1] in names)]
        dangling, edges = len(gone), kept
        found = replace(found, dangling=(*found.dangling, *gone))
    return Settled(replace(found, edges=tuple(edges)), loops, dangling)


def unresolved_text(one: Unresolved) -> str:
    """Return it as a person reads it."""
    place = f" ({one.place})" if one.place else ""
    return f"{one.unit!r} refers to {one.expression}, which reading alone does not resolve{place}"
