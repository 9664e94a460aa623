"""The lookup of UPSERT: an object to match, or a condition over $CURRENT."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.access import Access, combined
from region_scheduler.embedded.arango.aql.conditions import analyse
from region_scheduler.embedded.arango.aql.convert import truthy
from region_scheduler.embedded.arango.aql.expressions import Compiler
from region_scheduler.embedded.arango.aql.scope import Frame, Scope
from region_scheduler.embedded.arango.aql.walk import conjuncts
from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import CollectionView, Document

Find: TypeAlias = Callable[[Frame, CollectionView], Document | None]

_VARIABLE = "$CURRENT"


def finder(compiler: Compiler, clause: syntax.Upsert, scope: Scope) -> Find:
    """Return a function that finds the first document which the UPSERT is about."""
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
