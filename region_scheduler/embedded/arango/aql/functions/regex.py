"""Regular expression functions."""

from __future__ import annotations

import re
from typing import Any

from region_scheduler.embedded.arango.aql.convert import to_integer, to_string, truthy
from region_scheduler.embedded.arango.aql.functions.registry import function
from region_scheduler.embedded.arango.aql.patterns import compiled_regex
from region_scheduler.embedded.arango.aql.run import Run


def _regex(run: Run, pattern: Any, caseless: Any) -> re.Pattern[str] | None:
    regex = compiled_regex(to_string(pattern), truthy(caseless))
    if regex is None:
        run.warn(1543)
    return regex


@function("REGEX_TEST", 2, 3)
def _regex_test(run: Run, text: Any, pattern: Any, caseless: Any = False) -> bool | None:
    regex = _regex(run, pattern, caseless)
    return None if regex is None else regex.search(to_string(text)) is not None


@function("REGEX_MATCHES", 2, 3)
def _regex_matches(run: Run, text: Any, pattern: Any, caseless: Any = False) -> Any:
    subject = to_string(text)
    if subject == "" and to_string(pattern) == "":
        return [""]
    regex = _regex(run, pattern, caseless)
    match = None if regex is None else regex.fullmatch(subject) or regex.match(subject)
    if match is None or match.end() != len(subject):
        return None
    return [match[0], *(group or "" for group in match.groups())]


@function("REGEX_REPLACE", 3, 4)
def _regex_replace(
    run: Run, text: Any, pattern: Any, replacement: Any, caseless: Any = False
) -> str | None:
    regex = _regex(run, pattern, caseless)
    if regex is None:
        return None
    template = _template(to_string(replacement))
    return regex.sub(template, to_string(text))


def _template(replacement: str) -> str:
    # ICU writes a group as $1 and escapes with a backslash.
    escaped = replacement.replace("\\", "\\\\")
    return re.sub(r"\$(\d)", r"\\g<\1>", escaped)


@function("REGEX_SPLIT", 2, 4)
def _regex_split(
    run: Run, text: Any, pattern: Any, caseless: Any = False, limit: Any = None
) -> Any:
    most = None if limit is None else to_integer(limit)
    if most is not None and most < 0:
        run.warn(1542, "REGEX_SPLIT")
        return None
    subject = to_string(text)
    if most == 0:
        return []
    if to_string(pattern) == "":
        parts = list(subject)
        return parts if most is None else parts[:most]
    regex = _regex(run, pattern, caseless)
    if regex is None:
        return None
    found = [part if part is not None else "" for part in regex.split(subject)]
    return found if most is None else found[:most]
