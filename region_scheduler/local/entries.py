"""Read a JSON file that somebody may have damaged: each refusal names the file and the field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_SHOWN_MAX = 60


class Damaged(Exception):
    """A file does not hold what it should; the text names the field and what was expected."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a file.

    Attributes:
        place: File, then the keys that lead to it.
        value: As it was read.
        is_secret: It is not told.
    """

    place: str
    value: object
    is_secret: bool = False

    def refusal(self, expected: str) -> Damaged:
        """Return the error that says what is needed here."""
        shown = json.dumps("***" if self.is_secret else self.value)
        shown = shown if len(shown) <= _SHOWN_MAX else f"{shown[: _SHOWN_MAX - 3]}..."
        return Damaged(f"{self.place}: {shown} is not accepted; {expected} is needed")

    def fields(self, needed: Iterable[str], optional: Iterable[str] = ()) -> dict[str, Entry]:
        """Return the values of an object that has all `needed` keys, and no unknown one."""
        found, needed = self.items(), list(needed)
        for name in needed:
            if name not in found:
                raise Damaged(f"{self.place}.{name} is missing")
        unknown = sorted(found.keys() - set(needed) - set(optional))
        if unknown:
            raise Damaged(f"{self.place}.{unknown[0]} is not known")
        return found

    def items(self) -> dict[str, Entry]:
        """Return the values of an object by key."""
        if not isinstance(self.value, dict):
            raise self.refusal("an object")
        return {
            key: Entry(f"{self.place}.{key}", inner, self.is_secret)
            for key, inner in self.value.items()
        }

    def whole(self, minimum: int, maximum: int) -> int:
        """Return a whole number."""
        value = self.value
        if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
            raise self.refusal(
                f"a whole number from {minimum} to {maximum}" if minimum < maximum else f"{minimum}"
            )
        return value

    def flag(self) -> bool:
        """Return true or false."""
        if not isinstance(self.value, bool):
            raise self.refusal("true or false")
        return self.value

    def text(self, pattern: str, expected: str) -> str:
        """Return a text that `pattern` fits as a whole."""
        if not isinstance(self.value, str) or not re.fullmatch(pattern, self.value):
            raise self.refusal(expected)
        return self.value


def read(path: Path, *, is_secret: bool = False) -> Entry:
    """Return what is in a file.

    Args:
        path: Which.
        is_secret: Its values are not told.

    Raises:
        Damaged: It cannot be read, or is not JSON.
    """
    try:
        return Entry(path.name, json.loads(path.read_text(encoding="utf-8")), is_secret)
    except OSError as refused:
        raise Damaged(f"{path.name}: {(refused.strerror or str(refused)).lower()}") from refused
    except json.JSONDecodeError as broken:
        place = f"line {broken.lineno}, column {broken.colno}: {broken.msg.lower()}"
        raise Damaged(f"{path.name}: not JSON: {place}") from broken
    except (ValueError, RecursionError) as broken:
        raise Damaged(f"{path.name}: not JSON: {broken}") from broken
