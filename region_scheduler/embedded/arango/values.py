"""The order of values in AQL: one sort key for SORT, comparisons and indexes alike.

Types order null < bool < number < string < array < object; numbers compare by value (1 and 1.0 are
equal), strings by a collation that ignores case and accents first and puts upper case before lower
case of the same letter ("A" < "a" < "B"), arrays element by element, objects attribute by attribute
over the sorted union of their names, where a missing attribute counts as null.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Any

SortKey = tuple[Any, ...]

NULL_KEY: SortKey = (0,)
"""The lowest sort key: null, and every missing attribute."""

ABOVE_ALL: SortKey = (9,)
"""Greater than the sort key of any value."""

_FALSE_KEY: SortKey = (1, 0)
_TRUE_KEY: SortKey = (1, 1)

# Punctuation, symbols, digits and letters in the root order of the Unicode collation algorithm.
_ASCII_ORDER = (
    "\t\n\x0b\x0c\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
)
_WEIGHTS = {ord(letter): chr(place + 32) for place, letter in enumerate(_ASCII_ORDER)}


def sort_key(value: Any) -> SortKey:
    """Return a tuple that orders as `value` does in AQL; equal keys mean equal values.

    Args:
        value: A JSON value: None, bool, int, float, str, list (or tuple) or dict.
    """
    if value is None:
        return NULL_KEY
    kind = type(value)
    if kind is str:
        return _string_key(value)
    if kind is bool:
        return _TRUE_KEY if value else _FALSE_KEY
    if kind is int or kind is float:
        return (2, value)
    if kind is list or kind is tuple:
        return (4, *map(sort_key, value))
    return _object_key(value)


def compare(left: Any, right: Any) -> int:
    """Return -1, 0 or 1 as `left` is less than, equal to or greater than `right` in AQL."""
    if left is right:
        return 0
    left_key, right_key = sort_key(left), sort_key(right)
    if left_key == right_key:
        return 0
    return -1 if left_key < right_key else 1


@lru_cache(maxsize=32_768)
def _string_key(text: str) -> SortKey:
    # The text itself comes last: among texts that are equal but for case, code points put upper
    # case first, and texts that differ in anything else have differed before.
    if text.isascii():
        return (3, text.lower().translate(_WEIGHTS), "", text)
    apart = unicodedata.normalize("NFD", text)
    letters = "".join(c for c in apart if not unicodedata.combining(c))
    accents = "".join(c if unicodedata.combining(c) else "\x00" for c in apart)
    return (3, letters.casefold().translate(_WEIGHTS), accents.rstrip("\x00"), text)


def _object_key(value: dict[str, Any]) -> SortKey:
    # Where two objects first differ in a name, the one that has the lower name holds something
    # above null there and the other holds null: so the lower name must order higher.
    pairs = sorted((name, item) for name, item in value.items() if item is not None)
    return (5, *((_descending(name), sort_key(item)) for name, item in pairs))


def _descending(name: str) -> tuple[int, ...]:
    return (*(-ord(letter) for letter in name), 1)
