"""Names at compile time: which slot of the frame a variable lives in, and what a query touches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from region_scheduler.embedded.arango.aql import syntax
from region_scheduler.embedded.arango.aql.run import Run
from region_scheduler.embedded.arango.errors import ArangoError

# A frame is a list: the run, the bind values, then one slot a variable.
Frame: TypeAlias = list[Any]
Closure: TypeAlias = Callable[[Frame], Any]
# From the stream of frames before it, and the frame the query began with, to the next stream.
Step: TypeAlias = Callable[[Iterator[Frame], Frame], Iterator[Frame]]
CollectionOf: TypeAlias = Callable[[Run], str]

# Python's own stack is the limit: a level takes two of its frames.
_NESTING_MAX = 300


@dataclass(slots=True)
class Scope:
    """The variables visible at one place.

    Attributes:
        parent: The scope around a subquery or an inline expression.
        loop: Variables since the first FOR or the last COLLECT; None before any.
    """

    parent: Scope | None = None
    variables: dict[str, int] = field(default_factory=dict)
    loop: list[str] | None = None

    def enter_loop(self) -> None:
        """Note a FOR: what is declared from here on, a COLLECT groups and takes away."""
        if self.loop is None:
            self.loop = []

    def collected(self) -> dict[str, int]:
        """Return the variables that a COLLECT groups here."""
        names = self.variables if self.loop is None else self.loop
        return {name: self.variables[name] for name in names}

    def regroup(self) -> None:
        """Take away what a COLLECT hides, and start anew."""
        for name in self.loop or ():
            del self.variables[name]
        self.loop = []

    def find(self, name: str) -> int | None:
        """Return the slot of a variable, or None if there is none of that name."""
        scope: Scope | None = self
        while scope is not None:
            slot = scope.variables.get(name)
            if slot is not None:
                return slot
            scope = scope.parent
        return None


@dataclass(frozen=True, slots=True)
class Touch:
    """One mention of a collection, in the order of the text.

    Attributes:
        kind: read, write, traverse (reads anything) or document (a lookup of an unknown place).
        collection: Name or bind parameter; None for a lookup whose place is not known.
    """

    kind: str
    collection: syntax.CollectionName | None


@dataclass(slots=True)
class Layout:
    """What the compiler notes about a whole query while it works through it.

    Attributes:
        used: Names that the query mentions; None if it may use any (COLLECT INTO takes all).
        operands: Collections that stand where only a value may.
        unknown_options: What OPTIONS of graph clauses say that nobody knows.
    """

    binds: dict[str, int] = field(default_factory=dict)
    collection_binds: set[str] = field(default_factory=set)
    attribute_binds: set[str] = field(default_factory=set)
    touches: list[Touch] = field(default_factory=list)
    slot_count: int = 1
    depth: int = 0
    is_modification: bool = False
    has_traversal: bool = False
    declared: tuple[syntax.CollectionName, ...] = ()
    used: frozenset[str] | None = None
    plan: list[Any] = field(default_factory=list)
    operands: list[syntax.CollectionName] = field(default_factory=list)
    unknown_options: list[str] = field(default_factory=list)

    def is_used(self, name: str) -> bool:
        """Tell whether a variable's value can matter."""
        return self.used is None or name in self.used

    def new_slot(self) -> int:
        """Return a fresh slot of the frame."""
        self.slot_count += 1
        return self.slot_count - 1

    def bind_slot(self, name: str) -> int:
        """Return the slot that holds a bind parameter's value."""
        slot = self.binds.get(name)
        if slot is None:
            slot = self.binds[name] = self.new_slot()
        return slot

    def declare(self, scope: Scope, name: str) -> int:
        """Add a variable to a scope.

        Raises:
            ArangoError: 1511 if it is visible already.
        """
        if scope.find(name) is not None:
            raise ArangoError(1511, f"AQL: variable '{name}' is assigned multiple times")
        return self.redeclare(scope, name)

    def redeclare(self, scope: Scope, name: str) -> int:
        """Add a variable that may hide an outer one (OLD, NEW, CURRENT)."""
        slot = scope.variables[name] = self.new_slot()
        if scope.loop is not None and name not in scope.loop:
            scope.loop.append(name)
        return slot

    def touch(self, kind: str, collection: syntax.CollectionName | None) -> None:
        """Note a mention of a collection."""
        if isinstance(collection, syntax.CollectionBind):
            self.collection_binds.add(collection.name)
        self.touches.append(Touch(kind, collection))

    def enter(self) -> None:
        """Go one level deeper into an expression.

        Raises:
            ArangoError: 1524 if it is too deep.
        """
        self.depth += 1
        if self.depth > _NESTING_MAX:
            raise ArangoError(1524, "AQL: query nesting is too deep")

    def leave(self) -> None:
        """Come back one level."""
        self.depth -= 1


def collection_of(collection: syntax.CollectionName) -> CollectionOf:
    """Return a function that tells the collection's name in a run."""
    name = collection.name
    if isinstance(collection, syntax.Name):
        return lambda _run: name
    return lambda run: str(run.bind[name])


def pattern_names(pattern: syntax.Pattern) -> list[str]:
    """Return the variables that an assignment target introduces."""
    if isinstance(pattern, str):
        return [pattern]
    parts: list[syntax.Pattern | None] = (
        list(pattern.items)
        if isinstance(pattern, syntax.ArrayPattern)
        else [target for _, target in pattern.items]
    )
    return [name for part in parts if part is not None for name in pattern_names(part)]
