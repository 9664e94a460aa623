"""Choose how a FOR reads its collection: by key, by edge, by a sorted index, or all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from typing import Any, Final, NamedTuple, TypeAlias

from region_scheduler.embedded.arango.aql.conditions import Condition, Path, resolved
from region_scheduler.embedded.arango.aql.order import equal_key, sort_key
from region_scheduler.embedded.arango.aql.run import Run
from region_scheduler.embedded.arango.aql.scope import Closure, Frame
from region_scheduler.embedded.arango.session import CollectionView, Document, IndexView, Range

Fetch: TypeAlias = Callable[[Frame, CollectionView], Iterable[Document] | None]
Count: TypeAlias = Callable[[Frame, CollectionView], int]

_CHOICES_MAX: Final = 64
_LOWER: Final = {">": False, ">=": True}
_UPPER: Final = {"<": False, "<=": True}


class Shape(NamedTuple):
    """What is remembered of an index: no session's object is kept."""

    id: str
    name: str
    type: str
    fields: tuple[tuple[str, ...], ...]
    is_unique: bool
    is_sparse: bool

    def shown(self) -> dict[str, Any]:
        """Return the index as a plan shows it."""
        return {
            "id": self.id.rpartition("/")[2],
            "type": self.type,
            "name": self.name,
            "fields": [".".join(path) for path in self.fields],
            "unique": self.is_unique,
            "sparse": self.is_sparse,
        }


def _shape(index: IndexView) -> Shape:
    return Shape(index.id, index.name, index.type, index.fields, index.is_unique, index.is_sparse)


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to read a collection.

    Attributes:
        fetch: Returns the documents; None if this frame's values need a full scan after all.
        covered: Conditions that `fetch` has answered.
        is_sorted: The documents come in the order that the SORT behind asks for.
        count: Returns how many documents `fetch` would, where the index alone can tell.
    """

    fetch: Fetch | None = None
    covered: frozenset[int] = frozenset()
    is_sorted: bool = False
    index: Shape | None = None
    score: float = 0
    is_reverse: bool = False
    count: Count | None = None


@dataclass(slots=True)
class Access:
    """What is known at compile time about one FOR over a collection.

    Attributes:
        sort: The paths of a SORT right behind, and whether it runs down; empty if there is none
            that an index could save.
        hints: Index names from OPTIONS, in order of preference.
    """

    conditions: Sequence[Condition]
    sort: Sequence[Path] = ()
    is_descending: bool = False
    hints: Sequence[str] = ()
    is_forced: bool = False
    is_disabled: bool = False
    _choices: dict[Any, Choice] = field(default_factory=dict)

    def choose(self, run: Run, view: CollectionView) -> Choice:
        """Return the way to read `view`, decided once for each set of indexes and bound paths."""
        if self.is_disabled or not (self.conditions or self.sort):
            return _SCAN
        paths = [resolved(condition.path, run.bind) for condition in self.conditions]
        # All databases of the process share a query: the key says what the indexes are.
        key = (tuple([_shape(index) for index in view.indexes]), tuple(paths))
        choice = self._choices.get(key)
        if choice is None:
            if len(self._choices) >= _CHOICES_MAX:
                self._choices.clear()
            choice = self._choices[key] = self._best(run, view, paths)
        return choice

    def _best(
        self, run: Run, view: CollectionView, paths: Sequence[tuple[str, ...] | None]
    ) -> Choice:
        sort = [path for path in (resolved(part, run.bind) for part in self.sort) if path]
        if len(sort) != len(self.sort):
            sort = []
        candidates = [_SCAN]
        for index in view.indexes:
            if index.type == "primary":
                candidates += _by_key(self.conditions, paths, index)
            elif index.type == "edge":
                candidates += _by_edge(self.conditions, paths, index)
            elif index.type in ("persistent", "hash", "skiplist", "ttl"):
                candidates += _by_sorted(self, paths, sort, index)
        for hint in self.hints:
            for choice in candidates:
                if choice.index is not None and choice.index.name == hint:
                    return choice
        return max(candidates, key=lambda choice: choice.score)


_SCAN: Final = Choice()


def _values(condition: Condition, frame: Frame) -> list[Any]:
    """Return the values that a `==` or IN condition allows, each once, in order."""
    value = condition.value(frame) if condition.value else None
    if condition.kind != "in":
        return [value]
    if type(value) is not list:
        return []
    unique = {equal_key(item): item for item in value}
    return list(unique.values()) if len(unique) < 2 else sorted(unique.values(), key=sort_key)


def _by_key(
    conditions: Sequence[Condition], paths: Sequence[tuple[str, ...] | None], index: IndexView
) -> list[Choice]:
    found = []
    for place, condition in enumerate(conditions):
        path = paths[place]
        if condition.kind in ("==", "in") and path in (("_key",), ("_id",)):
            fetch = _fetch_by_key(condition, is_id=path == ("_id",))
            score = 1000 if condition.kind == "==" else 900
            found.append(Choice(fetch, frozenset({place}), index=_shape(index), score=score))
    return found


def _fetch_by_key(condition: Condition, *, is_id: bool) -> Fetch:
    def fetch(frame: Frame, view: CollectionView) -> Iterable[Document]:
        documents = []
        for value in _values(condition, frame):
            if type(value) is not str:
                continue
            name, _, key = value.partition("/") if is_id else (view.name, "", value)
            document = view.get(key) if name == view.name else None
            if document is not None:
                documents.append(document)
        return documents

    return fetch


def _by_edge(
    conditions: Sequence[Condition], paths: Sequence[tuple[str, ...] | None], index: IndexView
) -> list[Choice]:
    found = []
    for place, condition in enumerate(conditions):
        path = paths[place]
        if condition.kind not in ("==", "in") or path not in (("_from",), ("_to",)):
            continue
        is_from = path == ("_from",)

        def fetch(
            frame: Frame,
            view: CollectionView,
            condition: Condition = condition,
            is_from: bool = is_from,
        ) -> Iterable[Document]:
            values = [v for v in _values(condition, frame) if type(v) is str]
            if len(values) == 1:
                return view.edges(values[0], "outbound" if is_from else "inbound")
            return [
                edge
                for value in values
                for edge in view.edges(value, "outbound" if is_from else "inbound")
            ]

        score = 500 if condition.kind == "==" else 450
        shape = _shape(index)._replace(fields=(path,))
        found.append(Choice(fetch, frozenset({place}), index=shape, score=score))
    return found


def _by_sorted(
    access: Access,
    paths: Sequence[tuple[str, ...] | None],
    sort: Sequence[tuple[str, ...]],
    index: IndexView,
) -> list[Choice]:
    """Match conditions to the leading fields: equalities and INs, then at most one range."""
    keyed = _keyed(access.conditions, paths, index)
    kinds = [access.conditions[place].kind for place in keyed]
    covered = {place for place, kind in zip(keyed, kinds, strict=True) if kind != "contains"}
    is_single = "in" not in kinds
    score = float(10 * len(kinds) - kinds.count("in"))
    rest = index.fields[len(keyed) :]
    if any("[*]" in part for path in rest for part in path):
        # Documents without an element there are not in the index.
        return []
    bounds = _bounds(access.conditions, paths, rest[0]) if rest else []
    covered |= set(bounds)
    score += 3 * min(len(bounds), 2)
    is_array = any("[*]" in part for path in index.fields for part in path)
    is_sorted = (
        bool(sort)
        and is_single
        and not (is_array or index.is_sparse)
        and _sorts(index, len(keyed), sort)
    )
    if is_sorted:
        score += 2
    if index.is_unique and len(keyed) == len(index.fields):
        score += 100
    if not score or (index.is_sparse and len(keyed) + bool(bounds) < len(index.fields)):
        # A sparse index lacks documents that have a null in any of its fields.
        return []
    reading = _Reading(
        index.name,
        [access.conditions[place] for place in keyed],
        [access.conditions[place] for place in bounds],
    )
    fetch = _fetch_sorted(
        reading,
        is_sparse=index.is_sparse,
        is_reverse=is_sorted and access.is_descending,
        is_array=is_array,
    )
    may_count = is_single and not (is_array or index.is_sparse)
    count = _count_sorted(reading) if may_count else None
    shape, is_reverse = _shape(index), access.is_descending
    return [Choice(fetch, frozenset(covered), is_sorted, shape, score, is_reverse, count)]


def _keyed(
    conditions: Sequence[Condition], paths: Sequence[tuple[str, ...] | None], index: IndexView
) -> list[int]:
    """Return the equalities and INs on the leading fields, in the order of the fields."""
    keyed: list[int] = []
    for path in index.fields:
        place = _equality(conditions, paths, path)
        if place is None:
            break
        keyed.append(place)
    return keyed


def _equality(
    conditions: Sequence[Condition],
    paths: Sequence[tuple[str, ...] | None],
    path: tuple[str, ...],
) -> int | None:
    is_array = any("[*]" in part for part in path)
    plain = tuple(part.removesuffix("[*]") for part in path)
    for place, condition in enumerate(conditions):
        if is_array:
            if condition.kind == "contains" and paths[place] in (path, plain):
                return place
        elif condition.kind in ("==", "in") and paths[place] == path:
            return place
    return None


def _bounds(
    conditions: Sequence[Condition],
    paths: Sequence[tuple[str, ...] | None],
    path: tuple[str, ...],
) -> list[int]:
    """Return at most one lower and one upper bound on a field."""
    found: dict[bool, int] = {}
    for place, condition in enumerate(conditions):
        if paths[place] == path and (condition.kind in _LOWER or condition.kind in _UPPER):
            found.setdefault(condition.kind in _LOWER, place)
    return list(found.values())


def _sorts(index: IndexView, fixed: int, sort: Sequence[tuple[str, ...]]) -> bool:
    """Tell whether the index delivers the order, its first `fixed` fields being constant."""
    constant = set(index.fields[:fixed])
    wanted = [path for path in sort if path not in constant]
    return list(index.fields[fixed : fixed + len(wanted)]) == wanted


class _Reading(NamedTuple):
    """What is asked of a sorted index.

    Attributes:
        keyed: Conditions on its leading fields, in their order.
        bounded: Conditions on the field behind those.
    """

    name: str
    keyed: Sequence[Condition]
    bounded: Sequence[Condition]


def _fetch_sorted(reading: _Reading, *, is_sparse: bool, is_reverse: bool, is_array: bool) -> Fetch:
    name, keyed, bounded = reading

    def fetch(frame: Frame, view: CollectionView) -> Iterable[Document] | None:
        current = next(found for found in view.indexes if found.name == name)
        choices = [_values(condition, frame) for condition in keyed]
        bounds = _range(bounded, frame)
        if is_sparse and (
            any(None in values for values in choices)
            or (bounds is not None and (not bounds.has_low or bounds.low is None))
        ):
            return None
        if all(len(values) == 1 for values in choices):
            found = current.lookup([values[0] for values in choices], bounds, is_reverse)
        else:
            found = chain.from_iterable(
                current.lookup(values, bounds, is_reverse) for values in product(*choices)
            )
        # A document has one place in the index, unless it has one for each element of an array.
        return _each_once(found) if is_array else found

    return fetch


def _count_sorted(reading: _Reading) -> Count:
    name, keyed, bounded = reading

    def count(frame: Frame, view: CollectionView) -> int:
        current = next(found for found in view.indexes if found.name == name)
        equal = [value for condition in keyed for value in _values(condition, frame)]
        return current.count(equal, _range(bounded, frame))

    return count


def _range(bounded: Sequence[Condition], frame: Frame) -> Range | None:
    if not bounded:
        return None
    sides: dict[str, Any] = {}
    for condition in bounded:
        value = condition.value(frame) if condition.value else None
        kind = str(condition.kind)
        if kind in _LOWER:
            sides |= {"low": value, "has_low": True, "is_low_inclusive": _LOWER[kind]}
        else:
            sides |= {"high": value, "has_high": True, "is_high_inclusive": _UPPER[kind]}
    return Range(**sides)


def _each_once(documents: Iterable[Document]) -> Iterator[Document]:
    seen: set[str] = set()
    for document in documents:
        key = document["_key"]
        if key not in seen:
            seen.add(key)
            yield document


def combined(tests: Sequence[Closure]) -> Closure | None:
    """Return one test that holds if all do; None if there are none."""
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]

    def every(frame: Frame) -> bool:
        return all(test(frame) for test in tests)

    return every
