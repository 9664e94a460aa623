"""FOR over a collection: the loop that reads through the access path it chose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, Final

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.access import Access, combined
from region_scheduler.embedded.arango.aql.clauses import assign_to
from region_scheduler.embedded.arango.aql.conditions import Condition, Path, analyse, path_of
from region_scheduler.embedded.arango.aql.convert import truthy
from region_scheduler.embedded.arango.aql.expressions import Compiler
from region_scheduler.embedded.arango.aql.run import Run
from region_scheduler.embedded.arango.aql.scope import Frame, Scope, Step, collection_of
from region_scheduler.embedded.arango.aql.walk import nodes
from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import Document

_UNSEEN: Final[Document] = {}


class CollectionLoop:
    """One `FOR x IN collection FILTER …`, with the SORT behind it in view.

    Args:
        filters: The conditions right behind the FOR.
        sort: A SORT behind those, if nothing in between changes the order.
        is_bare: Nothing behind the filters looks at the documents: only how many there are counts.
    """

    def __init__(
        self,
        compiler: Compiler,
        clause: syntax.For,
        scope: Scope,
        filters: Sequence[syntax.Filter],
        sort: syntax.Sort | None,
        *,
        is_bare: bool,
    ) -> None:
        source = clause.source
        if not isinstance(source, syntax.Name | syntax.CollectionBind):
            raise TypeError(source)
        compiler.layout.touch("read", source)
        self.name_of = collection_of(source)
        scope.enter_loop()
        self.variable = clause.target if isinstance(clause.target, str) else ""
        self._assign = assign_to(compiler, clause.target, scope)
        self._slot = scope.find(self.variable) or 0
        self.conditions: list[Condition] = [
            analyse(compiler, self.variable, part.condition, scope) for part in filters
        ]
        paths, is_descending = _sort_paths(sort, self.variable)
        options = _literal_options(clause.options)
        self.access = Access(
            self.conditions if self.variable else (),
            paths,
            is_descending,
            hints=[str(name) for name in options.get("indexHint", ())],
            is_forced=options.get("forceIndexHint") == [True],
            is_disabled=options.get("disableIndex") == [True],
        )
        self._is_bare = is_bare
        self._residuals: dict[frozenset[int], Callable[[Frame], object] | None] = {}

    def is_sorted(self, run: Run) -> bool:
        """Tell whether the loop delivers the order of the SORT it was given."""
        return self.access.choose(run, run.view(self.name_of(run))).is_sorted

    def _residual(self, covered: frozenset[int]) -> Callable[[Frame], object] | None:
        if covered not in self._residuals:
            self._residuals[covered] = combined(
                [c.test for place, c in enumerate(self.conditions) if place not in covered]
            )
        return self._residuals[covered]

    def step(self) -> Step:
        """Return the loop as a step."""
        name_of, access, slot, assign = self.name_of, self.access, self._slot, self._assign

        def loop(upstream: Iterator[Frame], _origin: Frame) -> Iterator[Frame]:
            for frame in upstream:
                run: Run = frame[0]
                view = run.view(name_of(run))
                choice = access.choose(run, view)
                found: Iterable[Document] | None = None
                covered = choice.covered
                residual = self._residual(covered)
                if self._is_bare and residual is None and choice.count is not None:
                    found = repeat(_UNSEEN, choice.count(frame, view))
                elif choice.fetch is not None:
                    found = choice.fetch(frame, view)
                if found is None:
                    found, residual = view.scan(), self._residual(frozenset())
                seen = passed = 0
                try:
                    for document in found:
                        run.tick()
                        seen += 1
                        if slot:
                            frame[slot] = document
                        else:
                            assign(frame, document)
                        if residual is None or truthy(residual(frame)):
                            passed += 1
                            yield frame
                finally:
                    counts = run.statistics
                    counts.filtered += seen - passed
                    if choice.fetch is None:
                        counts.scanned_full += seen
                    else:
                        counts.scanned_index += seen

        return loop

    def describe(self, run: Run) -> list[dict[str, Any]]:
        """Return the plan nodes of the loop as it would run now."""
        view = run.view(self.name_of(run))
        choice = self.access.choose(run, view)
        node: dict[str, Any] = {
            "type": "EnumerateCollectionNode",
            "collection": view.name,
            "outVariable": {"name": self.variable},
            "rows": view.count(),
        }
        if choice.index is not None:
            node |= {
                "type": "IndexNode",
                "indexes": [choice.index.shown()],
                "sorted": choice.is_sorted,
                "reverse": choice.is_sorted and choice.is_reverse,
                "rows": max(1.0, view.count() * 0.1 ** len(choice.covered)),
                "rules": ["use-indexes"],
            }
            if choice.covered:
                node["rules"].append("remove-filter-covered-by-index")
            if choice.is_sorted:
                node["rules"].append("use-index-for-sort")
        filters = len(self.conditions) - len(choice.covered)
        return [node, *({"type": "FilterNode"} for _ in range(filters))]


def _sort_paths(sort: syntax.Sort | None, variable: str) -> tuple[list[Path], bool]:
    """Return the sorted attribute paths and the one direction; no paths if an index cannot help."""
    if sort is None or not variable:
        return [], False
    directions = set()
    paths = []
    for key in sort.keys:
        if key.direction is not None and not isinstance(key.direction, syntax.Literal):
            return [], False
        directions.add(bool(key.direction.value) if key.direction is not None else False)
        path = path_of(key.value, variable)
        if not path:
            return [], False
        paths.append(path)
    return (paths, directions.pop()) if len(directions) == 1 else ([], False)


def _literal_options(options: syntax.Expression | None) -> dict[str, list[object]]:
    """Return each option with the constants in its value, in order."""
    if options is None:
        return {}
    if not isinstance(options, syntax.ObjectLiteral):
        raise ArangoError(1575, "AQL: query options must be readable at query compile time")
    given: dict[str, list[object]] = {}
    for key, value in options.items:
        if isinstance(key, syntax.Literal):
            constants = [part.value for part in nodes(value) if isinstance(part, syntax.Literal)]
            given[str(key.value)] = constants[::-1]
    return given
