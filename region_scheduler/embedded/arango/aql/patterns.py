"""LIKE patterns and regular expressions."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from region_scheduler.embedded.arango.aql.convert import to_string
from region_scheduler.embedded.arango.aql.run import Run


@lru_cache(maxsize=512)
def _like_pattern(pattern: str, is_caseless: bool) -> re.Pattern[str]:
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == "%":
            parts.append(".*")
        elif character == "_":
            parts.append(".")
        elif character == "\\" and position < len(pattern):
            following = pattern[position]
            position += 1
            # A backslash that escapes nothing stands for itself.
            parts.append(re.escape(following if following in "%_\\" else "\\" + following))
        else:
            parts.append(re.escape(character))
    return re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if is_caseless else 0))


def like(text: Any, pattern: Any, is_caseless: bool = False) -> bool:
    """Tell whether the whole text matches a LIKE pattern (`_` one character, `%` any number)."""
    return _like_pattern(to_string(pattern), is_caseless).fullmatch(to_string(text)) is not None


@lru_cache(maxsize=512)
def compiled_regex(pattern: str, is_caseless: bool = False) -> re.Pattern[str] | None:
    """Return a compiled regular expression, or None if it is none."""
    try:
        return re.compile(_translated(pattern), re.IGNORECASE if is_caseless else 0)
    except re.error:
        return None


def _translated(pattern: str) -> str:
    # ICU writes \h for horizontal space and [[:alpha:]] style sets; only what differs is rewritten.
    return pattern.replace("\\h", "[\\t ]").replace("\\R", "(?:\\r\\n|[\\n\\r])")


def matches_regex(run: Run, text: Any, pattern: Any) -> bool:
    """Tell whether a regular expression matches somewhere in the text; warn 1543 on a bad one."""
    regex = compiled_regex(to_string(pattern))
    if regex is None:
        run.warn(1543)
        return False
    return regex.search(to_string(text)) is not None
