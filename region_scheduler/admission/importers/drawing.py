"""A graph as text for other tools: Graphviz DOT and Mermaid."""

from __future__ import annotations

from collections.abc import Iterator

from region_scheduler.admission.importers.model import FoundGraph

_MERMAID_ESCAPES = {ord(c): f"#{ord(c)};" for c in '"#<>&`\\\n\r'}


def dot(graph: FoundGraph) -> Iterator[str]:
    """Return it in Graphviz's language, a line each; an arrow leads to what comes after."""
    yield f"digraph {_quoted(graph.name)} {{"
    yield '  rankdir = "LR";'
    for node in graph.nodes:
        yield f"  {_quoted(node['id'])};"
    for before, after in dict.fromkeys(graph.edges):
        yield f"  {_quoted(before)} -> {_quoted(after)};"
    yield "}"


def mermaid(graph: FoundGraph) -> Iterator[str]:
    """Return it as a Mermaid flow chart, a line each.

    Mermaid's own names are numbers, since it cannot take any name; the ids are the labels.
    """
    yield "flowchart LR"
    numbers = {str(node["id"]): f"n{number}" for number, node in enumerate(graph.nodes)}
    for name, number in numbers.items():
        yield f'  {number}["{name.translate(_MERMAID_ESCAPES)}"]'
    for before, after in dict.fromkeys(graph.edges):
        yield f"  {numbers[before]} --> {numbers[after]}"


def _quoted(name: str) -> str:
    text = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{text}"'
