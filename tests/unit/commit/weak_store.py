"""The weakest store that still keeps the promises of `Documents`, played from a script.

Requests may be lost before or after they act, act only after their sender has given up on them, or
meet a conflict without a winner; nothing else. What the gate makes of it must be right for every
script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from region_scheduler.errors import Unavailable
from region_scheduler.ports.documents import Identified, WriteResult, Written


class Luck(StrEnum):
    """What becomes of one element of a write request."""

    FINE = "fine"
    LOST_BEFORE = "lost before it acted"
    LOST_AFTER = "lost after it acted"
    DELAYED = "lost, and acts after the next request"
    NO_WINNER = "conflict without a winner"


@dataclass(frozen=True, slots=True)
class Counter:
    """A document whose writes can be told apart."""

    id: str
    rev: str = ""
    writers: tuple[str, ...] = ()


@dataclass
class WeakStore:
    """Holds counters; `luck` is drawn once for each element of each write."""

    luck: Iterator[Luck] = field(default_factory=lambda: iter(()))
    documents: dict[str, Counter] = field(default_factory=dict)
    reads: int = 0
    writes: int = 0
    is_down: Callable[[WeakStore], bool] = lambda store: False
    before_write: Callable[[WeakStore], None] = lambda store: None
    _revision: int = 0
    _delayed: list[tuple[Counter, Counter]] = field(default_factory=list)

    @classmethod
    def with_luck(cls, luck: Iterable[Luck], ids: Iterable[str] = ("d1",)) -> WeakStore:
        store = cls(iter(luck))
        for id_ in ids:
            store.put(Counter(id_))
        return store

    def put(self, value: Counter) -> Counter:
        self._revision += 1
        self.documents[value.id] = replace(value, rev=f"_{self._revision}")
        return self.documents[value.id]

    def arrive(self) -> None:
        """Let the delayed requests act now."""
        delayed, self._delayed = self._delayed, []
        for before, after in delayed:
            self._act(before, after)

    def read(self, ids: Sequence[str]) -> list[Counter | None]:
        self.reads += 1
        if self.is_down(self):
            raise Unavailable(dependency="store", detail="down")
        return [self.documents.get(id_) for id_ in ids]

    def insert(self, values: Sequence[Counter]) -> list[Written[Counter]]:
        self.writes += 1
        if self.is_down(self):
            raise Unavailable(dependency="store", detail="down")
        return [self._insert(value, next(self.luck, Luck.FINE)) for value in values]

    def write(self, changes: Sequence[tuple[Counter, Counter]]) -> list[Written[Counter]]:
        self.writes += 1
        if self.is_down(self):
            raise Unavailable(dependency="store", detail="down")
        self.before_write(self)
        late, self._delayed = self._delayed, []
        answers = [self._write(b, a, next(self.luck, Luck.FINE)) for b, a in changes]
        for before, after in late:
            self._act(before, after)
        return answers

    def remove(self, values: Sequence[Identified]) -> list[WriteResult]:
        self.writes += 1
        if self.is_down(self):
            raise Unavailable(dependency="store", detail="down")
        return [self._remove(value, next(self.luck, Luck.FINE)) for value in values]

    def _remove(self, value: Identified, luck: Luck) -> WriteResult:
        if luck in {Luck.LOST_BEFORE, Luck.DELAYED}:
            return WriteResult.UNKNOWN
        current = self.documents.get(value.id)
        if current is None:
            return WriteResult.MISSING
        if luck is Luck.NO_WINNER or current.rev != value.rev:
            return WriteResult.CONFLICT
        del self.documents[value.id]
        return WriteResult.UNKNOWN if luck is Luck.LOST_AFTER else WriteResult.APPLIED

    def _insert(self, value: Counter, luck: Luck) -> Written[Counter]:
        if luck is Luck.LOST_BEFORE:
            return Written(WriteResult.UNKNOWN)
        if value.id in self.documents:
            return Written(WriteResult.CONFLICT)
        stored = self.put(value)
        if luck is Luck.LOST_AFTER:
            return Written(WriteResult.UNKNOWN)
        return Written(WriteResult.APPLIED, stored)

    def _write(self, before: Counter, after: Counter, luck: Luck) -> Written[Counter]:
        match luck:
            case Luck.LOST_BEFORE:
                return Written(WriteResult.UNKNOWN)
            case Luck.NO_WINNER:
                return Written(WriteResult.CONFLICT)
            case Luck.DELAYED:
                self._delayed.append((before, after))
                return Written(WriteResult.UNKNOWN)
            case Luck.LOST_AFTER:
                self._act(before, after)
                return Written(WriteResult.UNKNOWN)
            case Luck.FINE:
                return self._act(before, after)

    def _act(self, before: Counter, after: Counter) -> Written[Counter]:
        current = self.documents.get(before.id)
        if current is None:
            return Written(WriteResult.MISSING)
        if current.rev != before.rev:
            return Written(WriteResult.CONFLICT)
        return Written(WriteResult.APPLIED, self.put(after))
