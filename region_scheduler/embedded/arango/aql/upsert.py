"""The lookup of UPSERT: an object to match, or a condition over $CURRENT."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.access import Access, combined
from region_scheduler.embedded.arango.aql.conditions import Condition, analyse
from region_scheduler.embedded.arango.aql.convert import truthy
from region_scheduler.embedded.arango.aql.expressions import Compiler
from region_scheduler.embedded.arango.aql.order import equal
from region_scheduler.embedded.arango.aql.scope import Closure, Frame, Scope
from region_scheduler.embedded.arango.aql.walk import conjuncts
from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import CollectionView, Document

Find: TypeAlias = Callable[[Frame, CollectionView], Document | None]

_VARIABLE = "$CURRENT"


def finder(compiler: Compiler, clause: syntax.Upsert, scope: Scope) -> Find:
    """Return a function that finds the first document which the UPSERT is about."""
    if isinstance(clause.search, syntax.Bind) and not clause.is_filter:
        return _bound_finder(compiler, clause.search)
    inner = Scope(parent=scope)
    slot = compiler.layout.redeclare(inner, _VARIABLE)
    wanted = (
        conjuncts(clause.search)
        if clause.is_filter
        else _equalities(syntax.Name(_VARIABLE), clause.search)
    )
    conditions = [analyse(compiler, _VARIABLE, part, inner) for part in wanted]
    access = Access(conditions)

    def find(frame: Frame, view: CollectionView) -> Document | None:
        run = frame[0]
        choice = access.choose(run, view)
        found = choice.fetch(frame, view) if choice.fetch is not None else None
        covered = choice.covered if found is not None else frozenset()
        test = combined([c.test for place, c in enumerate(conditions) if place not in covered])
        for document in view.scan() if found is None else found:
            frame[slot] = document
            if test is None or truthy(test(frame)):
                return document
        return None

    return find


def _bound_finder(compiler: Compiler, search: syntax.Bind) -> Find:
    """Return the finder of `UPSERT @search`: what to look for is known when the query runs."""
    search_slot = compiler.layout.bind_slot(search.name)

    def find(frame: Frame, view: CollectionView) -> Document | None:
        wanted = frame[search_slot]
        if type(wanted) is not dict:
            raise ArangoError(1501, "AQL: syntax error, UPSERT needs an object to search for")
        pairs = list(_paths(wanted, ()))
        conditions = [Condition(_never, search, "==", path, _constant(v)) for path, v in pairs]
        choice = Access(conditions).choose(frame[0], view)
        found = choice.fetch(frame, view) if choice.fetch is not None else None
        for document in view.scan() if found is None else found:
            if all(equal(_at(document, path), value) for path, value in pairs):
                return document
        return None

    return find


def _never(_frame: Frame) -> bool:
    return False


def _constant(value: Any) -> Closure:
    return lambda _frame: value


def _paths(wanted: dict[str, Any], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in wanted.items():
        if type(value) is dict and value:
            yield from _paths(value, (*above, name))
        else:
            yield (*above, name), value


def _at(document: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        document = document.get(name) if type(document) is dict else None
    return document


def _equalities(target: syntax.Expression, search: syntax.Expression) -> list[syntax.Expression]:
    """Turn `{a: 1, b: {c: 2}}` into `target.a == 1`, `target.b.c == 2`."""
    if not isinstance(search, syntax.ObjectLiteral):
        raise ArangoError(1501, "AQL: syntax error, UPSERT needs an object literal to search for")
    wanted: list[syntax.Expression] = []
    for key, value in search.items:
        if not isinstance(key, syntax.Literal | syntax.Bind):
            raise ArangoError(1501, "AQL: syntax error, UPSERT cannot search a computed name")
        part: syntax.Expression = (
            syntax.BoundAttribute(target, key.name)
            if isinstance(key, syntax.Bind)
            else syntax.Attribute(target, str(key.value))
        )
        if isinstance(value, syntax.ObjectLiteral) and value.items:
            wanted += _equalities(part, value)
        else:
            wanted.append(syntax.Binary("==", part, value))
    return wanted
