"""Revisions from a hybrid logical clock, spelled in ArangoDB's alphabet."""

from __future__ import annotations

from collections.abc import Callable

_ALPHABET = "-_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_PAIRS = tuple(high + low for high in _ALPHABET for low in _ALPHABET)
_PLACES = {letter: place for place, letter in enumerate(_ALPHABET)}
_COUNT_BITS = 20
_RESERVE_MS = 60_000


class RevisionClock:
    """Hands out revisions that only rise, whatever the wall clock does.

    Args:
        wall: Seconds since the epoch.
        floor: Stamps start above this one (what an earlier process may have handed out).
    """

    def __init__(self, wall: Callable[[], float], floor: int = 0) -> None:
        self._wall = wall
        self._last = floor
        self._prefix_stamp = -1
        self._prefix = ""
        self.reserved = floor

    def next(self) -> str:
        """Return a revision that no other call returned or will return."""
        stamp = int(self._wall() * 1000) << _COUNT_BITS
        if stamp <= self._last:
            stamp = self._last + 1
        self._last = stamp
        if stamp >> 18 != self._prefix_stamp:
            self._prefix_stamp = stamp >> 18
            self._prefix = spell(self._prefix_stamp)
        return f"{self._prefix}{_ALPHABET[stamp >> 12 & 63]}{_PAIRS[stamp & 4095]}"

    def reserve(self) -> int | None:
        """Return a new upper bound to be stored before stamps reach it, or None if not due.

        A process that starts with the stored bound as its floor repeats no revision of this one,
        not even of a removed document after the wall clock was set back.
        """
        if self._last < self.reserved:
            return None
        self.reserved = self._last + (_RESERVE_MS << _COUNT_BITS)
        return self.reserved

    def raise_to(self, stamp: int) -> None:
        """Let the next revision be above `stamp`."""
        self._last = max(self._last, stamp)
        self.reserved = max(self.reserved, stamp)


def spell(stamp: int) -> str:
    """Return `stamp` in base 64 without leading zeros."""
    letters = ""
    while stamp > 0:
        letters = _ALPHABET[stamp & 63] + letters
        stamp >>= 6
    return letters


def read(revision: str) -> int:
    """Return the stamp that `revision` spells; 0 for text that is no revision."""
    stamp = 0
    for letter in revision:
        place = _PLACES.get(letter)
        if place is None:
            return 0
        stamp = stamp << 6 | place
    return stamp
