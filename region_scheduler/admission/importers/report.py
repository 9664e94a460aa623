"""What a graph comes to in numbers, whether or not it would be admitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from region_scheduler.admission.importers.model import FoundGraph
from region_scheduler.domain.cycles import Cycle, components, cycle_in
from region_scheduler.domain.dag import Dag, Edge
from region_scheduler.domain.task import Json

_CYCLES_LOOKED_INTO = 100


@dataclass(frozen=True, slots=True)
class CycleFound:
    """A knot of tasks that wait on each other.

    Attributes:
        members: How many tasks are in the knot.
        cycle: One cycle in it, in order.
        edges: Its edges, each with the place in the source if that is known.
        is_shortest: No cycle in the knot is shorter.
    """

    members: int
    cycle: tuple[str, ...]
    edges: tuple[Mapping[str, str], ...]
    is_shortest: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was counted.

    Attributes:
        nodes: Distinct ids.
        edges: Distinct ones.
        edges_found: As many as the source has: repeated ones, too.
        repeated_edges: How many came again.
        self_loops: Edges from a node to itself, repeated ones, too.
        dangling: References to nowhere, by (before, after); those set aside too.
        duplicate_ids: Ids that more than one node has.
        isolated: Nodes without any edge.
        depth: Nodes on the longest path.
        width: Most nodes at the same distance from a root.
        is_condensed: Depth and width count each knot of a cycle as one node.
        critical_path: Of the longest expected duration, or of the most nodes if no duration is
            known; empty if there is a cycle.
        critical_path_s: Its duration, seconds.
        total_s: Of all nodes, seconds.
        regions: Nodes by target region.
        cycles: Every knot, the smallest first.
    """

    nodes: int
    edges: int
    edges_found: int
    repeated_edges: int
    self_loops: int
    dangling: tuple[Edge, ...]
    duplicate_ids: tuple[str, ...]
    isolated: int
    depth: int
    width: int
    is_condensed: bool
    critical_path: tuple[str, ...]
    critical_path_s: float
    total_s: float
    regions: Mapping[str, int]
    cycles: tuple[CycleFound, ...]

    def document(self) -> dict[str, Json]:
        """Return it as JSON has it."""
        return asdict(self)


def report_of(found: FoundGraph) -> Report:
    """Return the numbers of a graph; nothing is refused here."""
    names = dict.fromkeys(str(node["id"]) for node in found.nodes)
    distinct = dict.fromkeys(found.edges)
    dangling = [edge for edge in distinct if not (edge[0] in names and edge[1] in names)]
    closed = [edge for edge in distinct if edge[0] in names and edge[1] in names]
    edges = [edge for edge in closed if edge[0] != edge[1]]
    after: dict[str, list[str]] = {name: [] for name in names}
    for before, then in edges:
        after[before].append(then)
    groups = components(after)
    knots = sorted((group for group in groups if len(group) > 1), key=len)
    condensed = _condensed(groups, edges)
    weight = _weights(found.nodes)
    is_timed = any(weight.values())
    path = (
        Dag.checked(names, edges).critical_path(weight if is_timed else dict.fromkeys(names, 1.0))
        if not knots
        else ()
    )
    touched = {name for edge in closed for name in edge}
    return Report(
        nodes=len(names),
        edges=len(distinct),
        edges_found=len(found.edges),
        repeated_edges=len(found.edges) - len(distinct),
        self_loops=sum(before == then for before, then in found.edges),
        dangling=(*dangling, *found.dangling),
        duplicate_ids=_repeated(found.nodes),
        isolated=len(names) - len(touched),
        depth=condensed.depth,
        width=max(map(len, condensed.waves), default=0),
        is_condensed=bool(knots),
        critical_path=path,
        critical_path_s=sum(weight[name] for name in path),
        total_s=sum(weight.values()),
        regions=dict(Counter(str(n["region"]) for n in found.nodes if n.get("region"))),
        cycles=tuple(
            _cycle_found(len(knot), cycle_in(knot, after), found.places)
            for knot in knots[:_CYCLES_LOOKED_INTO]
        ),
    )


def _condensed(groups: Sequence[Sequence[str]], edges: Sequence[Edge]) -> Dag:
    """Return the graph in which each component is one node, named by its first member."""
    stands_for = {name: group[0] for group in groups for name in group}
    pairs = ((stands_for[before], stands_for[then]) for before, then in edges)
    between = dict.fromkeys((a, b) for a, b in pairs if a != b)
    return Dag.checked((group[0] for group in groups), between)


def _cycle_found(members: int, cycle: Cycle, places: Mapping[Edge, str]) -> CycleFound:
    edges = tuple(
        {"before": edge[0], "after": edge[1], "place": places.get(edge, "")} for edge in cycle.edges
    )
    return CycleFound(members, cycle.names, edges, cycle.is_shortest)


def _weights(nodes: Sequence[Mapping[str, Json]]) -> dict[str, float]:
    """Return the durations, 0 where none is given; the parser refuses what is no number."""
    found = {}
    for node in nodes:
        given = node.get("runtime_s", 0)
        found[str(node["id"])] = float(given) if isinstance(given, int | float) else 0.0
    return found


def _repeated(nodes: Sequence[Mapping[str, Json]]) -> tuple[str, ...]:
    counted = Counter(str(node["id"]) for node in nodes)
    return tuple(name for name, count in counted.items() if count > 1)
