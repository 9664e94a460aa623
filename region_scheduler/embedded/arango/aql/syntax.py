"""The syntax tree of AQL: frozen values, one class a construct, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

# --- expressions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: null, a boolean, a number or a string."""

    value: Any


@dataclass(frozen=True, slots=True)
class Bind:
    """A bind parameter `@name`."""

    name: str


@dataclass(frozen=True, slots=True)
class CollectionBind:
    """A collection bind parameter `@@name`; `name` includes the second `@`, as in bindVars."""

    name: str


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, or a collection if no variable has the name.

    Attributes:
        is_variable: It can only be a variable, as in `{name}`.
    """

    name: str
    is_variable: bool = False


@dataclass(frozen=True, slots=True)
class Attribute:
    """`target.name`."""

    target: Expression
    name: str


@dataclass(frozen=True, slots=True)
class BoundAttribute:
    """`target.@bind`: one attribute, or a path if the bind value is an array."""

    target: Expression
    bind: str


@dataclass(frozen=True, slots=True)
class Index:
    """`target[key]`: array position or attribute."""

    target: Expression
    key: Expression


@dataclass(frozen=True, slots=True)
class Expansion:
    """`target[* FILTER … LIMIT … RETURN …]`, and what follows it, done to every element.

    Attributes:
        depth: Number of asterisks; each above one flattens a level.
        projection: RETURN part; with it, accessors behind the bracket do not count.
        access: `CURRENT` with the accessors behind the bracket.
    """

    target: Expression
    depth: int
    condition: Expression | None = None
    limit: tuple[Expression, Expression] | None = None
    projection: Expression | None = None
    access: Expression = Name("CURRENT")


@dataclass(frozen=True, slots=True)
class Quantifier:
    """`ALL`, `ANY`, `NONE`, `AT LEAST (n)`, an exact number, or a range of numbers."""

    kind: str  # all | any | none | at_least | number
    low: Expression | None = None
    high: Expression | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """`target[? quantifier FILTER condition]`."""

    target: Expression
    quantifier: Quantifier
    condition: Expression | None


@dataclass(frozen=True, slots=True)
class ArrayLiteral:
    """`[a, b]`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ObjectLiteral:
    """`{name: value, [computed]: value, @bound: value}`; a plain name is a Literal key."""

    items: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function call; the name is upper case."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Unary:
    """`!`, `+` or `-`."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic, comparison, logic and `..`; the operator is its canonical spelling."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Quantified:
    """`left ALL|ANY|NONE|AT LEAST(n) operator right`."""

    quantifier: Quantifier
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Ternary:
    """`test ? yes : no`; without `yes` the test's own value."""

    test: Expression
    yes: Expression | None
    no: Expression


@dataclass(frozen=True, slots=True)
class Subquery:
    """A query in parentheses."""

    query: Query


Expression: TypeAlias = (
    Literal
    | Bind
    | CollectionBind
    | Name
    | Attribute
    | BoundAttribute
    | Index
    | Expansion
    | Question
    | ArrayLiteral
    | ObjectLiteral
    | Call
    | Unary
    | Binary
    | Quantified
    | Ternary
    | Subquery
)

# --- targets of an assignment --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ArrayPattern:
    """`[a, , [b]]`; a hole is None."""

    items: tuple[Pattern | None, ...]


@dataclass(frozen=True, slots=True)
class ObjectPattern:
    """`{a, b: c, d: {e}}` as (attribute, target)."""

    items: tuple[tuple[str, Pattern], ...]


Pattern: TypeAlias = str | ArrayPattern | ObjectPattern

# --- clauses -------------------------------------------------------------------------------------

CollectionName: TypeAlias = Name | CollectionBind


@dataclass(frozen=True, slots=True)
class For:
    """`FOR target IN source OPTIONS …`."""

    target: Pattern
    source: Expression
    options: Expression | None = None


@dataclass(frozen=True, slots=True)
class GraphSource:
    """Edge collections with an optional direction each, or a named graph."""

    edges: tuple[tuple[str | None, CollectionName], ...] = ()
    graph: Expression | None = None


@dataclass(frozen=True, slots=True)
class Traverse:
    """`FOR v, e, p IN low..high DIRECTION start graph PRUNE … OPTIONS …`."""

    variables: tuple[str, ...]
    low: Expression
    high: Expression
    direction: str  # outbound | inbound | any
    start: Expression
    graph: GraphSource
    prune_name: str | None = None
    prune: Expression | None = None
    options: Expression | None = None


@dataclass(frozen=True, slots=True)
class Paths:
    """`FOR … IN [low..high] DIRECTION K_PATHS a TO b graph OPTIONS …` and its kin."""

    kind: str  # shortest_path | k_shortest_paths | k_paths | all_shortest_paths
    variables: tuple[str, ...]
    low: Expression
    high: Expression
    direction: str
    start: Expression
    goal: Expression
    graph: GraphSource
    options: Expression | None = None


@dataclass(frozen=True, slots=True)
class Let:
    """One assignment."""

    target: Pattern
    value: Expression


@dataclass(frozen=True, slots=True)
class Filter:
    """`FILTER condition`."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class SortKey:
    """One criterion; the direction may be a bind parameter."""

    value: Expression
    direction: Expression | None = None  # Literal(True) is descending


@dataclass(frozen=True, slots=True)
class Sort:
    """`SORT …`."""

    keys: tuple[SortKey, ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """`LIMIT offset, count`; a null count means all."""

    offset: Expression
    count: Expression


@dataclass(frozen=True, slots=True)
class Return:
    """`RETURN [DISTINCT] value`."""

    value: Expression
    is_distinct: bool = False


@dataclass(frozen=True, slots=True)
class Collect:
    """`COLLECT` in all forms.

    Attributes:
        into: Name of the groups variable, or of the counter if `is_count`.
        into_value: The expression behind `INTO name =`.
        keep: Names behind KEEP; empty means all.
    """

    groups: tuple[tuple[str, Expression], ...] = ()
    aggregates: tuple[tuple[str, Call], ...] = ()
    into: str | None = None
    into_value: Expression | None = None
    keep: tuple[str, ...] = ()
    is_count: bool = False
    options: Expression | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """`WINDOW [range WITH] {preceding, following} AGGREGATE …`."""

    range_value: Expression | None
    frame: Expression
    aggregates: tuple[tuple[str, Call], ...]


@dataclass(frozen=True, slots=True)
class Insert:
    """`INSERT document INTO collection`."""

    document: Expression
    collection: CollectionName
    options: Expression | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """`UPDATE` or, with `is_replace`, `REPLACE`; `patch` is the WITH part."""

    selector: Expression
    patch: Expression | None
    collection: CollectionName
    is_replace: bool
    options: Expression | None = None


@dataclass(frozen=True, slots=True)
class Remove:
    """`REMOVE selector IN collection`."""

    selector: Expression
    collection: CollectionName
    options: Expression | None = None


@dataclass(frozen=True, slots=True)
class Upsert:
    """`UPSERT search INSERT … UPDATE|REPLACE … IN collection`; or with FILTER instead of search."""

    search: Expression
    insert: Expression
    patch: Expression
    collection: CollectionName
    is_replace: bool
    options: Expression | None = None
    is_filter: bool = False


Modification: TypeAlias = Insert | Update | Remove | Upsert
Clause: TypeAlias = (
    For
    | Traverse
    | Paths
    | Let
    | Filter
    | Sort
    | Limit
    | Return
    | Collect
    | Window
    | Insert
    | Update
    | Remove
    | Upsert
)


@dataclass(frozen=True, slots=True)
class Query:
    """Clauses in order; the last is a RETURN or a modification."""

    clauses: tuple[Clause, ...]
    declared: tuple[CollectionName, ...] = field(default=())  # the WITH in front
