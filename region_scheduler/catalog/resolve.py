"""Puts a type's subgraphs together: placeholders become the steps that they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from region_scheduler.catalog.load import clouds, frameworks, overlay, subgraph, zone_type
from region_scheduler.catalog.model import StepDefinition, Subgraph, ZoneType
from region_scheduler.domain.dag import Dag, Edge

LEAVES = "@leaves"


@dataclass(frozen=True, slots=True)
class Template:
    """A type's graph before its steps are multiplied by regions.

    Attributes:
        steps: By id, in the order of the subgraphs.
        edges: (before, after) ids, each pair once; the graph is closed and has no cycle.
    """

    steps: Mapping[str, StepDefinition]
    edges: tuple[Edge, ...]


@cache
def resolve(type_name: str, overlays: tuple[str, ...] = ()) -> Template:
    """Return the graph of a type.

    `@cloudgate` and `@backup` stand for one step of the cloud, `@cloudfw` for all steps of the
    framework on this cloud, `@evidence` for the framework's evidence step, `@leaves` for every step
    that no other depends on, the subgraph that says `@leaves` itself not counted.

    Args:
        type_name: Whose subgraphs are put together.
        overlays: Ids of overlays to add, out of those the type names.

    Raises:
        UnknownZoneType: There is no such type.
        CyclicGraph: The catalogue's files contradict each other; its tests keep that away.
        InvalidGraph: A step is defined twice or depends on one that is not there; likewise.
    """
    of_type = zone_type(type_name)
    parts = [*map(subgraph, of_type.subgraphs), *map(overlay, overlays)]
    meanings = _meanings(of_type, parts)
    edges = tuple(
        (before, step.id)
        for part in parts
        for step in part.steps
        for before in _resolved(step.after, meanings)
    )
    names = [step.id for part in parts for step in part.steps]
    dag = Dag.checked(names, edges)
    once = tuple((before, after) for after in names for before in dag.before[after])
    return Template({step.id: step for part in parts for step in part.steps}, once)


def _meanings(of_type: ZoneType, parts: Sequence[Subgraph]) -> dict[str, tuple[str, ...]]:
    cloud = clouds()[of_type.cloud]
    of_framework = subgraph(f"fw.{of_type.framework}.{of_type.cloud}")
    meanings = {
        "@cloudgate": (cloud.gate,),
        "@backup": (cloud.backup,),
        "@cloudfw": tuple(step.id for step in of_framework.steps),
        "@evidence": (frameworks()[of_type.framework].evidence,),
    }
    return {**meanings, LEAVES: _leaves(parts, meanings)}


def _leaves(parts: Sequence[Subgraph], meanings: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    body = [
        step
        for part in parts
        if not any(LEAVES in step.after for step in part.steps)
        for step in part.steps
    ]
    waited_for = {before for step in body for before in _resolved(step.after, meanings)}
    return tuple(step.id for step in body if step.id not in waited_for)


def _resolved(after: Sequence[str], meanings: Mapping[str, tuple[str, ...]]) -> list[str]:
    return [name for said in after for name in meanings.get(said, (said,))]
