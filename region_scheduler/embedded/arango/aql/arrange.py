"""Rearrange a query's clauses so that conditions stand where their variables are known.

A FILTER is split at its ANDs, and each part moves up to right behind the FOR or LET that introduces
the last of its variables. It never passes a clause that counts, orders, groups or writes.
"""

from __future__ import annotations

from typing import Final

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.scope import pattern_names
from region_scheduler.embedded.arango.aql.walk import conjuncts, has_modification, is_movable, names

_PASSABLE: Final = (syntax.For, syntax.Traverse, syntax.Paths, syntax.Let, syntax.Filter)


def arrange(clauses: tuple[syntax.Clause, ...]) -> list[syntax.Clause]:
    """Return the clauses with every FILTER split and moved up."""
    result: list[syntax.Clause] = []
    for clause in clauses:
        if isinstance(clause, syntax.Filter):
            for part in conjuncts(clause.condition):
                _place(result, part)
        else:
            result.append(clause)
    return result


def _place(result: list[syntax.Clause], condition: syntax.Expression) -> None:
    position = len(result)
    if is_movable(condition):
        mentioned = names(condition)
        while position > 0 and _may_pass(result[position - 1], mentioned):
            position -= 1
        # Stay behind the conditions that were written earlier.
        while position < len(result) and isinstance(result[position], syntax.Filter):
            position += 1
    result.insert(position, syntax.Filter(condition))


def _may_pass(clause: syntax.Clause, mentioned: set[str]) -> bool:
    if not isinstance(clause, _PASSABLE):
        return False
    if isinstance(clause, syntax.Filter):
        return is_movable(clause.condition)
    if has_modification(clause):
        return False
    return mentioned.isdisjoint(introduced(clause))


def introduced(clause: syntax.Clause) -> set[str]:
    """Return the variables that a clause brings in."""
    if isinstance(clause, syntax.For | syntax.Let):
        return set(pattern_names(clause.target))
    if isinstance(clause, syntax.Traverse | syntax.Paths):
        extra = getattr(clause, "prune_name", None)
        return set(clause.variables) | ({extra} if extra else set())
    return set()
