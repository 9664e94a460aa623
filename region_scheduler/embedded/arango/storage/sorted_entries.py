"""A sorted sequence of tuples that can be read while it changes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Entry = tuple[Any, ...]

_CHUNK_MAX = 512


class _Chunk(list[Entry]):
    """Entries in order.

    Attributes:
        is_lent: A reader may still be walking over it, so a write must replace it.
    """

    __slots__ = ("is_lent",)

    def __init__(self, entries: Iterable[Entry]) -> None:
        super().__init__(entries)
        self.is_lent = False


class SortedEntries:
    """Entries in order, in chunks; a write replaces a chunk that a reader has, so that it keeps it.

    Args:
        entries: The first content, in any order.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        ordered = sorted(entries)
        half = _CHUNK_MAX // 2
        self._chunks = [_Chunk(ordered[at : at + half]) for at in range(0, len(ordered), half)]
        self._lasts = [chunk[-1] for chunk in self._chunks]
        self._count = len(ordered)

    def __len__(self) -> int:
        return self._count

    def add(self, entry: Entry) -> None:
        """Put `entry` in its place."""
        self._count += 1
        if not self._chunks:
            self._chunks.append(_Chunk((entry,)))
            self._lasts.append(entry)
            return
        if entry > self._lasts[-1]:  # the most common: what is new often comes last
            self._append(entry)
            return
        place = bisect_left(self._lasts, entry)
        chunk = self._own(place)
        insort(chunk, entry)
        if len(chunk) > _CHUNK_MAX:
            half = len(chunk) // 2
            self._chunks[place : place + 1] = [_Chunk(chunk[:half]), _Chunk(chunk[half:])]
            self._lasts[place : place + 1] = [chunk[half - 1], chunk[-1]]
        else:
            self._lasts[place] = chunk[-1]

    def _append(self, entry: Entry) -> None:
        if len(self._chunks[-1]) >= _CHUNK_MAX:
            self._chunks.append(_Chunk((entry,)))
            self._lasts.append(entry)
            return
        self._own(-1).append(entry)
        self._lasts[-1] = entry

    def remove(self, entry: Entry) -> None:
        """Take out `entry`, which must be there."""
        place = bisect_left(self._lasts, entry)
        at = bisect_left(self._chunks[place], entry)
        if self._chunks[place][at] != entry:
            raise KeyError(entry)
        chunk = self._own(place)
        del chunk[at]
        self._count -= 1
        if chunk:
            self._lasts[place] = chunk[-1]
        else:
            del self._chunks[place]
            del self._lasts[place]

    def between(self, low: Entry, high: Entry, is_reverse: bool = False) -> Iterator[Entry]:
        """Yield the entries from `low` (included) to `high` (excluded) as they are now.

        Later writes do not show in a sequence that was asked for before them.
        """
        first = bisect_left(self._lasts, low)
        last = bisect_left(self._lasts, high, lo=first)
        chunks = self._chunks[first : last + 1]
        if len(chunks) == 1:
            (only,) = chunks
            found = only[bisect_left(only, low) : bisect_left(only, high)]
            return reversed(found) if is_reverse else iter(found)
        for chunk in chunks:
            chunk.is_lent = True
        return _walk(chunks, low, high, is_reverse)

    def _own(self, place: int) -> _Chunk:
        """Return the chunk at `place`, in which no reader sees what is written."""
        chunk = self._chunks[place]
        if chunk.is_lent:
            chunk = self._chunks[place] = _Chunk(chunk)
        return chunk


def _walk(found: Sequence[_Chunk], low: Entry, high: Entry, is_reverse: bool) -> Iterator[Entry]:
    chunks: list[list[Entry]] = list(found)
    if not chunks:
        return
    chunks[0] = chunks[0][bisect_left(chunks[0], low) :]
    chunks[-1] = chunks[-1][: bisect_left(chunks[-1], high)]
    if is_reverse:
        for chunk in reversed(chunks):
            yield from reversed(chunk)
    else:
        for chunk in chunks:
            yield from chunk
