"""How alike two strings are, and how they sound."""

from __future__ import annotations

import struct
from typing import Any

from region_scheduler.embedded.arango.aql.convert import to_integer, to_string
from region_scheduler.embedded.arango.aql.functions.registry import function
from region_scheduler.embedded.arango.aql.run import Run

_SOUNDS = {
    letter: digit
    for digit, letters in enumerate(["bfpv", "cgjkqsxz", "dt", "l", "mn", "r"], start=1)
    for letter in letters
}


@function("LEVENSHTEIN_DISTANCE", 2)
def _levenshtein_distance(left: Any, right: Any) -> int:
    return _distance(to_string(left), to_string(right))


def _distance(left: str, right: str) -> int:
    """Return the Damerau-Levenshtein distance in its unrestricted form."""
    most = len(left) + len(right)
    last_row: dict[str, int] = {}
    table = {(-1, -1): most}
    for i in range(len(left) + 1):
        table[i, -1] = most
        table[i, 0] = i
    for j in range(len(right) + 1):
        table[-1, j] = most
        table[0, j] = j
    for i, a in enumerate(left, start=1):
        last_column = 0
        for j, b in enumerate(right, start=1):
            row, column = last_row.get(b, 0), last_column
            cost = 0 if a == b else 1
            if a == b:
                last_column = j
            table[i, j] = min(
                table[i - 1, j - 1] + cost,
                table[i, j - 1] + 1,
                table[i - 1, j] + 1,
                table[row - 1, column - 1] + (i - row - 1) + 1 + (j - column - 1),
            )
        last_row[a] = i
    return table[len(left), len(right)]


@function("NGRAM_SIMILARITY", 3)
def _ngram_similarity(run: Run, value: Any, target: Any, size: Any) -> float | None:
    return _ngrams(run, "NGRAM_SIMILARITY", value, target, size, is_positional=False)


@function("NGRAM_POSITIONAL_SIMILARITY", 3)
def _ngram_positional(run: Run, value: Any, target: Any, size: Any) -> float | None:
    return _ngrams(run, "NGRAM_POSITIONAL_SIMILARITY", value, target, size, is_positional=True)


def _ngrams(
    run: Run, name: str, value: Any, target: Any, size: Any, *, is_positional: bool
) -> float | None:
    """Return the longest common sequence of n-grams, by Kondrak's measure."""
    length = to_integer(size)
    if type(value) is not str or type(target) is not str or length < 1:
        run.warn(1542, name)
        return None
    if is_positional and value == target:
        return 1.0
    left, right = _grams(value, length), _grams(target, length)
    if not left or not right:
        return 1.0 if value == target else 0.0
    row = [0.0] * (len(right) + 1)
    for gram in left:
        before = row
        row = [0.0]
        for place, other in enumerate(right, start=1):
            if is_positional:
                same = sum(a == b for a, b in zip(gram, other, strict=True)) / length
            else:
                same = 1.0 if gram == other else 0.0
            row.append(max(before[place], row[-1], before[place - 1] + same))
    total = max(len(left), len(right)) if is_positional else len(right)
    return _single(row[-1] / total)


def _single(number: float) -> float:
    # The server computes in single precision, and it shows.
    (rounded,) = struct.unpack("f", struct.pack("f", number))
    return float(rounded)


def _grams(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(len(text) - size + 1)]


@function("SOUNDEX", 1)
def _soundex(value: Any) -> str:
    letters = [c for c in to_string(value).lower() if "a" <= c <= "z"]
    if not letters:
        return ""
    code = [letters[0].upper()]
    last = _SOUNDS.get(letters[0])
    for letter in letters[1:]:
        sound = _SOUNDS.get(letter)
        if sound is not None and sound != last:
            code.append(str(sound))
        if letter not in "hw":
            last = sound
    return "".join(code)[:4].ljust(4, "0")
