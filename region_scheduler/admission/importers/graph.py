"""The product's own graph form: `{"name", "nodes": [{"id", …}], "edges": [[before, after], …]}`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from region_scheduler.domain.admission import Plan
from region_scheduler.domain.dag import Dag, Edge
from region_scheduler.domain.task import OnLoss, TaskSpec
from region_scheduler.errors import InvalidInput

_TOP_KEYS: Final = frozenset(
    {
        "name",
        "source",
        "licence",
        "kind",
        "nodes",
        "edges",
        "notes",
        "dangling_edges",
        "unresolved",
        "oddities",
        "module_paths",
    }
)
_NODE_KEYS: Final = frozenset(
    {"id", "runtime_s", "region", "labels", "purpose", "runner", "inputs", "priority", "cap_s"}
)


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
    """

    tenant: str
    home_region: str
    regions: tuple[str, ...]
    serves: Mapping[str, str]
    is_simulated: bool = False
    time_scale: float = 1.0


def plan_of_graph(document: object, options: GraphOptions) -> Plan:
    """Return the plan of a graph document.

    Raises:
        InvalidInput: The document is not of the form; names the place.
        InvalidGraph, CyclicGraph: The graph is not one.
    """
    top = _object(document, "graph", _TOP_KEYS)
    nodes = _list(top.get("nodes"), "nodes")
    edges = [_edge(pair, f"edges[{i}]") for i, pair in enumerate(_list(top.get("edges"), "edges"))]
    specs = [_spec(node, f"nodes[{i}]", options) for i, node in enumerate(nodes)]
    dag = Dag.checked([spec.name for spec in specs], edges)
    remaining = dag.remaining({spec.name: spec.expected_s for spec in specs})
    return Plan(
        name=_text(top.get("name"), "name"),
        tenant=options.tenant,
        home_region=options.home_region,
        regions=options.regions,
        tasks=tuple(replace(spec, remaining_s=remaining[spec.name]) for spec in specs),
        edges=tuple((b, a) for a, befores in dag.before.items() for b in befores),
    )


def _spec(node: object, place: str, options: GraphOptions) -> TaskSpec:
    fields = _object(node, place, _NODE_KEYS)
    runtime_s = _number(fields.get("runtime_s", 0), f"{place}.runtime_s")
    target = fields.get("region", "")
    home = options.serves.get(target, options.home_region)
    runner, inputs = fields.get("runner", ""), fields.get("inputs", {})
    if options.is_simulated:
        runner, inputs = "simulate", {"duration_s": runtime_s * options.time_scale}
    elif not runner:
        raise InvalidInput(
            field=f"{place}.runner",
            value="",
            expected="name a runner, or submit with --simulate to run no step for real",
        )
    return TaskSpec(
        name=_text(fields.get("id"), f"{place}.id"),
        purpose=str(fields.get("purpose", "")),
        runner=str(runner),
        inputs=_object(inputs, f"{place}.inputs"),
        region=home,
        allowed_regions=options.regions,
        target_region=str(target),
        on_loss=OnLoss.RETRY if options.is_simulated else OnLoss.INSPECT,
        cap_s=_number(fields.get("cap_s", 3600), f"{place}.cap_s"),
        expected_s=runtime_s,
        priority=int(_number(fields.get("priority", 0), f"{place}.priority")),
    )


def _object(value: object, place: str, known: Iterable[str] | None = None) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(field=place, value=_shown(value), expected="an object is needed here")
    unknown = sorted(set(value) - set(known)) if known is not None else []
    if unknown:
        allowed = ", ".join(sorted(known or ()))
        raise InvalidInput(
            field=f"{place}.{unknown[0]}",
            value=_shown(value[unknown[0]]),
            expected=f"remove it; known keys are {allowed}",
        )
    return value


def _list(value: object, place: str) -> Sequence[object]:
    if not isinstance(value, list):
        raise InvalidInput(field=place, value=_shown(value), expected="a list is needed here")
    return value


def _edge(pair: object, place: str) -> Edge:
    match pair:
        case [str(before), str(after)]:
            return before, after
    raise InvalidInput(field=place, value=_shown(pair), expected='it must be ["before", "after"]')


def _text(value: object, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInput(field=place, value=_shown(value), expected="a text is needed here")
    return value


def _number(value: object, place: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
        raise InvalidInput(
            field=place, value=_shown(value), expected="a number of at least 0 is needed here"
        )
    return float(value)


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
