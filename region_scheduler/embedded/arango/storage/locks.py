"""Who of the running stream transactions holds which keys, index entries and collections."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from random import Random

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import Document
from region_scheduler.embedded.arango.storage.collection import Collection
from region_scheduler.embedded.arango.storage.indexes import PersistentIndex

Lock = tuple[int, Hashable]
"""A collection's number and a key, or an index's number and the sort keys of a unique entry."""


_DISTURBED_SHARE = 0.5


class LockTable:
    """Locks of stream transactions; an owner is the transaction's id.

    First come, first served: nobody waits, the second gets an error at once.
    """

    def __init__(self) -> None:
        self._disturbance: Random | None = None
        self._is_undisturbed = True
        self._owners: dict[Lock, str] = {}
        self._exclusive: dict[int, str] = {}
        self._writers: dict[int, set[str]] = {}

    @property
    def is_idle(self) -> bool:
        """Whether no transaction holds any lock."""
        return not (self._owners or self._exclusive or self._disturbance)

    @contextmanager
    def disturbed(self, chance: Random) -> Iterator[None]:
        """Let writes meet conflicts that have no winner: the first, then about every second one.

        Args:
            chance: Decides which of the later ones.
        """
        self._disturbance = chance
        self._is_undisturbed = True
        try:
            yield
        finally:
            self._disturbance = None

    def open(self, owner: str, writes: Iterable[int], exclusives: Iterable[int]) -> None:
        """Enter a transaction's declared collections.

        Raises:
            ArangoError: 18 if an exclusive one is in use or one is in exclusive use.
        """
        writes, exclusives = list(writes), list(exclusives)
        for number in (*writes, *exclusives):
            if number in self._exclusive:
                raise ArangoError(18, "timeout waiting to lock collection")
        for number in exclusives:
            if self._writers.get(number):
                raise ArangoError(18, "timeout waiting to lock collection")
        for number in exclusives:
            self._exclusive[number] = owner
        for number in writes:
            self._writers.setdefault(number, set()).add(owner)

    def close(self, owner: str) -> None:
        """Let go of everything that `owner` holds."""
        self._owners = {lock: who for lock, who in self._owners.items() if who != owner}
        self._exclusive = {n: who for n, who in self._exclusive.items() if who != owner}
        for writers in self._writers.values():
            writers.discard(owner)

    def check(self, owner: str | None, collection: Collection, locks: Iterable[Lock]) -> None:
        """Refuse if anybody but `owner` (None: a single request) holds one of `locks`.

        Raises:
            ArangoError: 1200 for a key or an index entry, 18 for a collection.
        """
        if self._disturbance is not None:
            is_first, self._is_undisturbed = self._is_undisturbed, False
            if is_first or self._disturbance.random() < _DISTURBED_SHARE:
                raise ArangoError(1200, "write-write conflict")
        if self._exclusive.get(collection.number, owner) != owner:
            raise ArangoError(18, "timeout waiting to lock collection")
        for lock in locks:
            if self._owners.get(lock, owner) != owner:
                raise ArangoError(1200, "write-write conflict; timeout waiting to lock key")

    def take(self, owner: str, locks: Iterable[Lock]) -> None:
        """Give `locks`, which were checked, to `owner`."""
        for lock in locks:
            self._owners[lock] = owner


def locks_of(
    collection: Collection, key: str, old: Document | None, new: Document | None
) -> list[Lock]:
    """Return the locks of a write: its key, and the unique entries that it takes or leaves."""
    locks: list[Lock] = [(collection.number, key)]
    for index in collection.indexes:
        if isinstance(index, PersistentIndex) and index.definition.is_unique:
            for document in (old, new):
                if document is not None:
                    number = index.definition.number
                    locks += [(number, fields) for fields in index.keys_of(document)]
    return locks
