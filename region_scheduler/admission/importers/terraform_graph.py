"""The output of `terraform graph` (Graphviz DOT, any of its types) as a graph.

Terraform's arrow leads from what depends to what it depends on; ours leads the other way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from region_scheduler.admission.importers.fields import refused
from region_scheduler.admission.importers.model import FoundGraph
from region_scheduler.domain.dag import Edge
from region_scheduler.errors import InvalidInput

_TOKEN: Final = re.compile(
    r"(?P<blank>\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/)|(?P<arrow>->|--)"
    r'|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<word>[\w.\-]+)|(?P<mark>[{}\[\];=,:])',
    re.DOTALL,
)
_DEFAULTS: Final = frozenset({"node", "edge", "graph"})
_KEYWORDS: Final = _DEFAULTS | {"digraph", "strict", "subgraph"}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int

    def is_mark(self, mark: str) -> bool:
        return self.kind == "mark" and self.text == mark


@dataclass(slots=True)
class _Reader:
    """Reads statements; brackets with attributes are passed over."""

    tokens: list[_Token]
    file: str
    at: int = 0
    names: dict[str, None] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    places: dict[Edge, str] = field(default_factory=dict)

    def graph(self) -> None:
        """Read the whole file."""
        if self._next().text == "strict":
            self._next()
        if self.tokens[self.at - 1].text != "digraph":
            raise self._refused(self.tokens[self.at - 1], "it must begin with digraph")
        while not self._peek().is_mark("{"):
            self._next()
        self._next()
        depth = 1
        while depth:
            token = self._next()
            if token.is_mark("{"):
                depth += 1
            elif token.is_mark("}"):
                depth -= 1
            elif token.kind == "quoted" or (token.kind == "word" and token.text not in _KEYWORDS):
                self._statement(token)
            elif token.text in _DEFAULTS and self._peek().is_mark("["):
                self._skip_attributes()
            elif token.text == "subgraph" and not self._peek().is_mark("{"):
                self._next()
            elif not token.is_mark(";"):
                raise self._refused(token, "a node, an edge or } is expected here")
        if self._peek().kind != "end":
            raise self._refused(self._peek(), "nothing may follow the graph")

    def _statement(self, first: _Token) -> None:
        """Read `name`, `name = value` or `name -> name …`, each with attributes or not."""
        if self._peek().is_mark("="):
            self._next()
            self._next()
            return
        self.names.setdefault(first.text)
        dependent = first
        while self._peek().kind == "arrow":
            arrow = self._next()
            needed = self._next()
            if arrow.text != "->" or needed.kind not in {"quoted", "word"}:
                raise self._refused(needed, "an arrow must lead to a name")
            self.names.setdefault(needed.text)
            edge = (needed.text, dependent.text)
            self.edges.append(edge)
            self.places.setdefault(edge, f"{self.file}:{needed.line}")
            dependent = needed
        if self._peek().is_mark("["):
            self._skip_attributes()

    def _skip_attributes(self) -> None:
        while not self._next().is_mark("]"):
            if self._peek().kind == "end":
                raise self._refused(self._peek(), "a ] is missing")

    def _next(self) -> _Token:
        token = self._peek()
        if token.kind == "end":
            raise self._refused(token, "the graph is cut short: a } is missing")
        self.at += 1
        return token

    def _peek(self) -> _Token:
        return self.tokens[self.at]

    def _refused(self, token: _Token, expected: str) -> InvalidInput:
        return refused(f"{self.file}:{token.line}", token.text, expected)


def found_in_dot(text: str, file: str, name: str) -> FoundGraph:
    """Return the graph in the output of `terraform graph`.

    Args:
        text: The output.
        file: What it is called in places and refusals.
        name: Of the graph.

    Raises:
        InvalidInput: It is not a directed graph in DOT; names the line.
    """
    reader = _Reader(list(_tokens(text, file)), file)
    reader.graph()
    return FoundGraph(
        name=name,
        source=file,
        kind="terraform-graph",
        nodes=tuple({"id": one} for one in reader.names),
        edges=tuple(reader.edges),
        places=reader.places,
    )


def _tokens(text: str, file: str) -> Iterator[_Token]:
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise refused(f"{file}:{line}", text[at : at + 20], "this is no DOT")
        kind = match.lastgroup or ""
        if kind == "quoted":
            yield _Token(kind, re.sub(r'\\(["\\])', r"\1", match["quoted"]), line)
        elif kind != "blank":
            yield _Token(kind, match.group(), line)
        line += match.group().count("\n")
        at = match.end()
    yield _Token("end", "the end", line)
