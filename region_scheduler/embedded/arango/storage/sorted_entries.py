"""A sorted sequence of tuples that can be read while it changes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import Any

Entry = tuple[Any, ...]

_CHUNK_MAX = 512


class SortedEntries:
    """Entries in order, in chunks; a write replaces the chunk, so a running reader keeps its own.

    Args:
        entries: The first content, in any order.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        ordered = sorted(entries)
        half = _CHUNK_MAX // 2
        self._chunks = [ordered[at : at + half] for at in range(0, len(ordered), half)]
        self._lasts = [chunk[-1] for chunk in self._chunks]
        self._count = len(ordered)

    def __len__(self) -> int:
        return self._count

    def add(self, entry: Entry) -> None:
        """Put `entry` in its place."""
        self._count += 1
        if not self._chunks:
            self._chunks.append([entry])
            self._lasts.append(entry)
            return
        place = min(bisect_left(self._lasts, entry), len(self._chunks) - 1)
        chunk = self._chunks[place].copy()
        insort(chunk, entry)
        if len(chunk) > _CHUNK_MAX:
            half = len(chunk) // 2
            self._chunks[place : place + 1] = [chunk[:half], chunk[half:]]
            self._lasts[place : place + 1] = [chunk[half - 1], chunk[-1]]
        else:
            self._chunks[place] = chunk
            self._lasts[place] = chunk[-1]

    def remove(self, entry: Entry) -> None:
        """Take out `entry`, which must be there."""
        place = bisect_left(self._lasts, entry)
        chunk = self._chunks[place].copy()
        at = bisect_left(chunk, entry)
        if chunk[at] != entry:
            raise KeyError(entry)
        del chunk[at]
        self._count -= 1
        if chunk:
            self._chunks[place] = chunk
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
        return _walk(self._chunks[first : last + 1], low, high, is_reverse)


def _walk(chunks: list[list[Entry]], low: Entry, high: Entry, is_reverse: bool) -> Iterator[Entry]:
    if not chunks:
        return
    if len(chunks) == 1:
        only = chunks[0]
        chunks = [only[bisect_left(only, low) : bisect_left(only, high)]]
    else:
        chunks[0] = chunks[0][bisect_left(chunks[0], low) :]
        chunks[-1] = chunks[-1][: bisect_left(chunks[-1], high)]
    if is_reverse:
        for chunk in reversed(chunks):
            yield from reversed(chunk)
    else:
        for chunk in chunks:
            yield from chunk
