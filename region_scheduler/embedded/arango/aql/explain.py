"""What /_api/explain shows of a query: its steps in order, the indexes they use, a rough cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.run import Run
from region_scheduler.embedded.arango.aql.scope import pattern_names

# Rows that a step lets through, out of those that reach it, when nothing better is known.
_FILTERED: Final = 0.5
_FANNED: Final = 10.0

_NODES: Final[dict[type, str]] = {
    syntax.For: "EnumerateListNode",
    syntax.Let: "CalculationNode",
    syntax.Filter: "FilterNode",
    syntax.Sort: "SortNode",
    syntax.Limit: "LimitNode",
    syntax.Return: "ReturnNode",
    syntax.Collect: "CollectNode",
    syntax.Window: "WindowNode",
    syntax.Traverse: "TraversalNode",
    syntax.Insert: "InsertNode",
    syntax.Update: "UpdateNode",
    syntax.Remove: "RemoveNode",
    syntax.Upsert: "UpsertNode",
}
_LOOPS: Final = frozenset(
    "EnumerateListNode TraversalNode ShortestPathNode EnumeratePathsNode".split()
)


@dataclass(frozen=True, slots=True)
class PlanNote:
    """One step of the plan as the compiler noted it; `describe` looks at indexes when asked."""

    describe: Callable[[Run], Sequence[dict[str, Any]]]


def note_of(clause: syntax.Clause) -> PlanNote:
    """Return the note of a clause that reads no collection through an index."""
    node = _described(clause)
    return PlanNote(lambda _run: [dict(node)])


def marker(kind: str) -> PlanNote:
    """Return the note of the beginning or the end of a subquery."""
    return PlanNote(lambda _run: [{"type": kind}])


def _described(clause: syntax.Clause) -> dict[str, Any]:
    if isinstance(clause, syntax.Paths):
        single = clause.kind == "shortest_path"
        return {
            "type": "ShortestPathNode" if single else "EnumeratePathsNode",
            "outVariables": list(clause.variables),
        }
    node: dict[str, Any] = {"type": _NODES[type(clause)]}
    if isinstance(clause, syntax.Update) and clause.is_replace:
        node["type"] = "ReplaceNode"
    if isinstance(clause, syntax.For | syntax.Let):
        node["outVariable"] = {"name": ", ".join(pattern_names(clause.target))}
    if isinstance(clause, syntax.Traverse):
        node |= {"outVariables": list(clause.variables), "direction": clause.direction}
    return node


def plan_of(
    notes: Sequence[PlanNote], run: Run, collections: Mapping[str, str], is_modification: bool
) -> dict[str, Any]:
    """Return the plan in the shape of /_api/explain."""
    nodes: list[dict[str, Any]] = [{"type": "SingletonNode"}]
    for note in notes:
        nodes.extend(note.describe(run))
    rules: list[str] = []
    cost, items = 1.0, 1.0
    for number, node in enumerate(nodes, start=1):
        rules += [rule for rule in node.pop("rules", ()) if rule not in rules]
        items = _rows_after(node, items)
        cost += items if number > 1 else 0
        node |= {
            "id": number,
            "dependencies": [number - 1] if number > 1 else [],
            "estimatedCost": cost,
            "estimatedNrItems": int(items),
        }
    outs = [node["outVariable"] for node in nodes if "outVariable" in node]
    return {
        "nodes": nodes,
        "rules": rules,
        "collections": [{"name": name, "type": collections[name]} for name in sorted(collections)],
        "variables": [{"id": place, **variable} for place, variable in enumerate(outs)],
        "estimatedCost": cost,
        "estimatedNrItems": int(items),
        "isModificationQuery": is_modification,
    }


def _rows_after(node: dict[str, Any], before: float) -> float:
    """Return roughly how many rows leave a node."""
    kind = node["type"]
    if "rows" in node:
        return max(1.0, before * float(node.pop("rows")))
    if kind in _LOOPS:
        return before * _FANNED
    return max(1.0, before * _FILTERED) if kind == "FilterNode" else before
