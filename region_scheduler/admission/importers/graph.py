"""The product's own graph form: `{"name", "nodes": [{"id", …}], "edges": [[before, after], …]}`.

docs/submission-schema.md describes it; submission.schema.json says the same to programs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
import orjson

from region_scheduler.admission.capacities import CapacityOf, known_to, none_known
from region_scheduler.admission.importers.fields import a_list, a_text, an_object, refused
from region_scheduler.admission.importers.model import (
    SOURCE_RUNNER,
    FoundGraph,
    Numbered,
    Unresolved,
)
from region_scheduler.admission.importers.node import TaskOptions, expected_s, task_of
from region_scheduler.admission.rules import (
    are_kept,
    id_problem,
    refuse,
    size_problems,
    value_problem,
)
from region_scheduler.catalog.parameters import checked_name
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.dag import Dag, Edge
from region_scheduler.domain.limits import LIMITS, Limits
from region_scheduler.domain.task import Json

TOP_KEYS: Final = frozenset(
    "name source licence kind nodes edges notes dangling_edges unresolved oddities"
    " module_paths".split()
)
_LOOKED_AT_TOGETHER: Final = 200
_WHOLE_MIN: Final = -(2**63)
_WHOLE_MAX: Final = 2**64 - 1
_DIGITS_MAX: Final = 20  # of either bound, with its sign
_MANY_DIGITS: Final = re.compile(rb"\d{19}")
_HANDED_ON: Final = ("licence", "oddities", "module_paths")


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """How a graph file becomes a plan.

    Attributes:
        tenant: Whose run it is.
        home_region: Where tasks without a served target region run.
        serves: Scheduler region by target region.
        regions: All scheduler regions that its tasks may run in.
        is_simulated: Every node runs the `simulate` runner, whatever it names.
        time_scale: Simulated durations are multiplied by this, at least 0.
        capacities: Tells the units of resources that exist already.
        limits: How big it may be.
    """

    tenant: str
    home_region: str
    regions: tuple[str, ...]
    serves: Mapping[str, str]
    is_simulated: bool = False
    time_scale: float = 1.0
    capacities: CapacityOf = none_known
    limits: Limits = LIMITS


def parsed(body: bytes, place: str, limits: Limits = LIMITS) -> Json:
    """Return the JSON document in `body`.

    Raises:
        InvalidInput: It is too big, not JSON, or holds a whole number beyond 64 bits; says where.
    """
    if len(body) > limits.body_bytes_max:
        told = f"at most {limits.body_bytes_max} bytes are read (limit body_bytes_max)"
        raise refused(place, f"{len(body)} bytes", told)
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        told = f"not JSON: line {error.lineno}, column {error.colno}: {error.msg.lower()}"
        raise refused(place, "", told) from error
    if _MANY_DIGITS.search(body):
        _refuse_huge(body, place)
    return document


def _refuse_huge(body: bytes, place: str) -> None:
    """Refuse whole numbers that the parser would round to something else without a word."""

    def whole(digits: str) -> int:
        if len(digits) > _DIGITS_MAX or not _WHOLE_MIN <= int(digits) <= _WHOLE_MAX:
            told = "a whole number has at most 64 bits here: make it a text, or a smaller one"
            raise refused(place, digits, told)
        return int(digits)

    json.loads(body, parse_int=whole)


def found_in(document: Json, limits: Limits = LIMITS) -> FoundGraph:
    """Return what a graph document says, as it says it.

    Raises:
        InvalidInput: It is not of the form; names the place.
        InvalidGraph: It is bigger than the limits.
    """
    top = _top(document, limits)
    edges = tuple(_edges(top, "edges"))
    return FoundGraph(
        name=a_text(top["name"], "name"),
        source=a_text(top.get("source", ""), "source", may_be_empty=True),
        kind=a_text(top.get("kind", ""), "kind", may_be_empty=True),
        nodes=tuple(_nodes(top, limits)),
        edges=edges,
        places=Numbered(edges),
        dangling=tuple(_edges(top, "dangling_edges")),
        unresolved=tuple(Unresolved(*pair) for pair in _edges(top, "unresolved")),
        notes=tuple(filter(None, [a_text(top.get("notes", ""), "notes", may_be_empty=True)])),
        more={key: top[key] for key in _HANDED_ON if key in top},
    )


def with_runners(found: FoundGraph) -> tuple[FoundGraph, int]:
    """Return the graph with a runner at every node, and at how many there was none.

    Many sources say in which order things come, not what is done. Their nodes get a step that
    changes nothing, which a person may replace before the graph is submitted.
    """
    bare = sum("runner" not in node for node in found.nodes)
    nodes = tuple({"runner": SOURCE_RUNNER, **node} for node in found.nodes)
    return replace(found, nodes=nodes), bare


def plan_of_graph(
    document: Json, options: GraphOptions, places: Mapping[Edge, str] | None = None
) -> Plan:
    """Return the plan of a graph document; repeated edges are kept once.

    Args:
        document: In the product's form.
        options: How it becomes a plan.
        places: Where the source says that an edge is; by default its place in the document.

    Raises:
        InvalidInput: The document is not of the form (names the place), or the tenant's name is no
            name.
        InvalidGraph, CyclicGraph: The graph is not one.
        Unavailable: What exists already is not known now.
    """
    checked_name("tenant", options.tenant)
    found = found_in(document, options.limits)
    numbered = list(enumerate(found.nodes))
    names = [node["id"] for node in found.nodes]
    dag = Dag.checked(names, found.edges, places or found.places)
    tasks = TaskOptions(
        home_region=options.home_region,
        regions=options.regions,
        serves=options.serves,
        capacities=known_to(found.nodes, options.capacities),
        declared=_declared(found.nodes),
        time_scale=options.time_scale if options.is_simulated else None,
    )
    expected = {n["id"]: expected_s(n, f"nodes[{i}]") for i, n in numbered}
    remaining = dag.remaining(expected)
    return Plan(
        name=found.name,
        tenant=options.tenant,
        home_region=options.home_region,
        regions=options.regions,
        tasks=tuple(
            task_of(n, f"nodes[{i}]", tasks, expected[n["id"]], remaining[n["id"]])
            for i, n in numbered
        ),
        edges=tuple((b, a) for a, befores in dag.before.items() for b in befores),
    )


def _top(document: Json, limits: Limits) -> Mapping[str, Any]:
    top = an_object(document, "graph", TOP_KEYS, needed=("name", "nodes", "edges"))
    nodes, edges = a_list(top["nodes"], "nodes"), a_list(top["edges"], "edges")
    refuse(size_problems(len(nodes), 0, limits))
    if len(edges) > limits.edges_max:
        pairs = {tuple(pair) for pair in edges if isinstance(pair, list) and len(pair) == 2}
        refuse(size_problems(len(nodes), len(pairs), limits))
    for key in top.keys() - {"nodes", "edges"}:
        if problem := value_problem(top[key], limits.body_bytes_max):
            raise refused(key, "", f"it {problem}")
    return top


def _nodes(top: Mapping[str, Any], limits: Limits) -> Iterator[Mapping[str, Json]]:
    nodes = top["nodes"]
    for begin in range(0, len(nodes), _LOOKED_AT_TOGETHER):
        together = nodes[begin : begin + _LOOKED_AT_TOGETHER]
        is_plain = are_kept(together, limits.task_bytes_max)
        for number, node in enumerate(together, begin):
            if not (isinstance(node, dict) and isinstance(name := node.get("id"), str) and name):
                an_object(node, f"nodes[{number}]", needed=("id",))
                raise refused(f"nodes[{number}].id", node["id"], "a text is needed here")
            if not is_plain or len(name) * 4 > limits.id_bytes_max:
                _refuse_unkept(node, f"nodes[{number}]", limits)
            yield node


def _refuse_unkept(node: Mapping[str, Json], place: str, limits: Limits) -> None:
    if problem := id_problem(node["id"], limits):
        raise refused(f"{place}.id", node["id"], f"it {problem}")
    for key, value in node.items():
        if problem := value_problem(value, limits.task_bytes_max):
            raise refused(f"{place}.{key}", value, f"it {problem}")
    if problem := value_problem(node, limits.task_bytes_max):
        raise refused(place, node["id"], f"it {problem}")


def _edges(top: Mapping[str, Any], key: str) -> list[Edge]:
    pairs = a_list(top.get(key, []), key)
    try:
        return msgspec.convert(pairs, list[Edge])  # all of them at once
    except msgspec.ValidationError:
        for number, pair in enumerate(pairs):
            match pair:
                case [str(), str()]:
                    continue
                case _:
                    raise refused(
                        f"{key}[{number}]", pair, 'it must be ["before", "after"]'
                    ) from None
        raise


def _declared(nodes: Sequence[Mapping[str, Json]]) -> dict[str, int]:
    """Return the capacities that the nodes themselves give, wherever they are well formed."""
    return {
        lock["resource"]: lock["capacity"]
        for node in nodes
        if isinstance(locks := node.get("locks"), list)
        for lock in locks
        if isinstance(lock, dict) and isinstance(lock.get("resource"), str)
        if isinstance(lock.get("capacity"), int)
    }
