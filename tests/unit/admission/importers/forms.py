"""What several tests of the importers start from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from region_scheduler.admission.capacities import known_of
from region_scheduler.admission.importers.graph import GraphOptions, plan_of_graph
from region_scheduler.admission.rules import checked
from region_scheduler.domain.admission import Plan

DATA = Path(__file__).parents[3] / "data"
GRAPHS = DATA / "graphs"
OPTIONS = GraphOptions(
    tenant="acme",
    home_region="eu-west",
    regions=("eu-west", "us-east"),
    serves={"eu-west": "eu-west", "us-east": "us-east", "us-east-1": "us-east"},
)


def a_node(id_: str = "a", **more: Any) -> dict[str, Any]:
    return {"id": id_, "runner": "simulate", **more}


def a_document(*nodes: Any, edges: Any = (), **more: Any) -> dict[str, Any]:
    return {
        "name": "g",
        "nodes": list(nodes),
        "edges": [list(e) if isinstance(e, tuple) else e for e in edges],
        **more,
    }


def admissible(document: Any, options: GraphOptions = OPTIONS) -> Plan:
    """Return the plan of a document that went through every check of an admission."""
    plan = plan_of_graph(document, options)
    checked(plan, options.limits, known_of(plan, options.capacities))
    return plan
