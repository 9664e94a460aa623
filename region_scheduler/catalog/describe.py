"""Says what a zone type or an expanded graph is: JSON values for `--json`, lines for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Final

from region_scheduler.catalog import compose, load
from region_scheduler.catalog.inputs import RUNNERS
from region_scheduler.catalog.model import StepDefinition, ZoneType
from region_scheduler.catalog.resolve import Template, resolve
from region_scheduler.domain.admission import Plan
from region_scheduler.domain.dag import Dag
from region_scheduler.domain.task import Json, TaskSpec

GRAPH_FORMS: Final = ("dot", "mermaid", "json")
_PREVIEW: Final = "preview"


def preview(type_name: str, regions: Sequence[str]) -> Plan:
    """Return the graph that a zone of this type would have, all parameters at their defaults.

    Raises:
        UnknownZoneType: There is no such type.
        InvalidInput: A region word that is not accepted.
    """
    home = regions[0] if regions else ""
    return compose.expand(type_name, {}, regions, zone=_PREVIEW, tenant=_PREVIEW, home_region=home)


def type_row(of_type: ZoneType) -> dict[str, Json]:
    """Return what a list of types says of each: counts, and the longest path in minutes."""
    template = resolve(of_type.id)
    steps = list(template.steps.values())
    kinds = Counter(step.kind.value for step in steps)
    weight = {step.id: float(step.p50_min) for step in steps}
    dag = _dag(template)
    return {
        "type": of_type.id,
        "version": of_type.version,
        "cloud": load.clouds()[of_type.cloud].name,
        "framework": load.frameworks()[of_type.framework].name,
        "steps": len(steps),
        "per_region": sum(step.is_per_region for step in steps),
        "terraform": kinds["terraform"],
        "approvals": sum(step.needs_approval for step in steps),
        "irreversible": sum(step.is_irreversible for step in steps),
        "waves": len(dag.waves),
        "critical_path_min": sum(weight[name] for name in dag.critical_path(weight)),
    }


def type_view(type_name: str) -> dict[str, Json]:
    """Return everything that `zones show TYPE` tells of a type.

    Raises:
        UnknownZoneType: There is no such type.
    """
    of_type = compose.zone_type(type_name)
    template = resolve(type_name)
    steps = template.steps.values()
    catalogue = load.lock_catalogue()
    keys = dict.fromkeys(key for step in steps for key in step.locks if key in catalogue)
    framework = load.frameworks()[of_type.framework]
    return {
        **type_row(of_type),
        "catalog_version": load.catalog_version(),
        "framework_version": framework.version,
        "residency": framework.residency,
        "retention": framework.retention,
        "subgraphs": [
            {
                "id": name,
                "purpose": load.subgraph(name).purpose,
                "steps": [_step_view(step, template) for step in load.subgraph(name).steps],
            }
            for name in of_type.subgraphs
        ],
        "overlays": list(of_type.overlays),
        "parameters": [
            {"name": p.name, "type": p.type, "default": p.default, "purpose": p.purpose}
            | ({"values": list(p.values)} if p.values else {})
            for p in of_type.parameters
        ],
        "locks": [
            {
                "key": key,
                "scope": catalogue[key].scope.value,
                "capacity": catalogue[key].capacity,
                "when_holder_lost": catalogue[key].when_holder_lost.value,
                "reason": catalogue[key].reason,
            }
            for key in keys
        ],
    }


def type_lines(view: dict[str, Json]) -> list[str]:
    """Return `type_view` as lines for people."""
    lines = [
        f"{view['type']} {view['version']}: {view['framework']} {view['framework_version']}"
        f" on {view['cloud']}",
        f"{view['steps']} steps ({view['per_region']} per region), {view['waves']} waves,"
        f" longest path {view['critical_path_min']:g} min, {view['terraform']} terraform,"
        f" {view['approvals']} approvals, {view['irreversible']} irreversible",
        f"residency: {view['residency']}; evidence: {view['retention']}",
        "",
        "parameters (zones create NAME --type T --set name=value)",
    ]
    lines += [
        f"  {p['name']} = {_shown(p['default'])}  {p['purpose']}"
        + (f" ({', '.join(p['values'])})" if "values" in p else "")
        for p in view["parameters"]
    ]
    lines += ["", "locks"]
    lines += [
        f"  {lock['key']}  {lock['scope']}, {lock['capacity']} at once: {lock['reason']}"
        for lock in view["locks"]
    ]
    for part in view["subgraphs"]:
        lines += ["", f"{part['id']}: {part['purpose']}"]
        lines += [f"  {_step_line(step)}" for step in part["steps"]]
    return lines


def graph_text(plan: Plan, form: str) -> str:
    """Return the graph as `dot`, `mermaid` or `json` (one line); other forms are a caller's bug."""
    return {"dot": _dot, "mermaid": _mermaid, "json": _json}[form](plan)


def waves(plan: Plan) -> list[dict[str, Json]]:
    """Return the topological order by wave: what could run at once if nothing else were scarce.

    Each wave says its tasks and the longest expected duration among them, minutes.
    """
    specs = {task.name: task for task in plan.tasks}
    dag = Dag.checked(specs, plan.edges)
    return [
        {
            "wave": number,
            "minutes": max(specs[name].expected_s for name in names) / 60,
            "tasks": list(names),
        }
        for number, names in enumerate(dag.waves, start=1)
    ]


def wave_lines(plan: Plan) -> list[str]:
    """Return `waves` as lines for people, then the longest path."""
    specs = {task.name: task for task in plan.tasks}
    weight = {name: spec.expected_s for name, spec in specs.items()}
    path = Dag.checked(specs, plan.edges).critical_path(weight)
    lines = [
        f"{wave['wave']:>3}  {wave['minutes']:>4g} min  {'  '.join(wave['tasks'])}"
        for wave in waves(plan)
    ]
    total = sum(weight[name] for name in path) / 60
    return [*lines, "", f"longest path, {total:g} min: {' -> '.join(path)}"]


def _dag(template: Template) -> Dag:
    return Dag.checked(template.steps, template.edges)


def _step_view(step: StepDefinition, template: Template) -> dict[str, Json]:
    return {
        "id": step.id,
        "purpose": step.purpose,
        "kind": step.kind.value,
        "runner": RUNNERS[step.kind],
        "after": [before for before, after in template.edges if after == step.id],
        "minutes": {"p50": step.p50_min, "p90": step.p90_min},
        "per_region": step.is_per_region,
        "irreversible": step.is_irreversible,
        "needs_approval": step.needs_approval,
        "locks": list(step.locks),
        "controls": list(step.controls),
        "source": step.source or "estimate",
    }


def _step_line(step: dict[str, Json]) -> str:
    marks = [name for name in ("per_region", "irreversible", "needs_approval") if step[name]]
    shown = [step["kind"], f"{step['minutes']['p50']:g} min", *marks, *step["locks"]]
    return f"{step['id']}  {step['purpose']} [{', '.join(shown).replace('_', ' ')}]"


def _shown(default: Json) -> str:
    return ",".join(default) if isinstance(default, list) else str(default)


def _label(task: TaskSpec) -> str:
    return f"{task.name}\\n{task.runner}, {task.expected_s / 60:g} min"


def _dot(plan: Plan) -> str:
    shapes = {"approval": "diamond", "external-wait": "diamond", "check": "ellipse"}
    lines = [f'digraph "{plan.zone_type}" {{', "  rankdir=LR;"]
    for task in plan.tasks:
        shape = shapes.get(task.runner, "box")
        style = ", style=bold" if task.is_irreversible else ""
        lines.append(f'  "{task.name}" [label="{_label(task)}", shape={shape}{style}];')
    lines += [f'  "{before}" -> "{after}";' for before, after in plan.edges]
    return "\n".join([*lines, "}"])


def _mermaid(plan: Plan) -> str:
    # Its ids allow few signs, so tasks are numbered and named by their labels.
    number = {task.name: f"t{n}" for n, task in enumerate(plan.tasks)}
    lines = ["flowchart LR"]
    for task in plan.tasks:
        opening, closing = ("{{", "}}") if task.runner == "approval" else ("[", "]")
        lines.append(f'  {number[task.name]}{opening}"{task.name}"{closing}')
    lines += [f"  {number[before]} --> {number[after]}" for before, after in plan.edges]
    return "\n".join(lines)


def _json(plan: Plan) -> str:
    tasks = [
        {
            "id": task.name,
            "step": task.step,
            "runner": task.runner,
            "purpose": task.purpose,
            "region": task.region,
            "target_region": task.target_region,
            "pinned": task.is_pinned,
            "minutes": task.expected_s / 60,
            "irreversible": task.is_irreversible,
            "locks": [lock.resource for lock in task.locks],
        }
        for task in plan.tasks
    ]
    graph = {
        "type": plan.zone_type,
        "catalog_version": plan.catalog_version,
        "regions": list(plan.regions),
        "tasks": tasks,
        "edges": [list(edge) for edge in plan.edges],
    }
    return json.dumps(graph, ensure_ascii=False)
