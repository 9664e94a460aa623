"""String functions; positions count characters."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from region_scheduler.embedded.arango.aql.convert import (
    is_number,
    json_text,
    to_integer,
    to_number,
    to_string,
    truthy,
)
from region_scheduler.embedded.arango.aql.functions.registry import function
from region_scheduler.embedded.arango.aql.patterns import like
from region_scheduler.embedded.arango.aql.run import Run

_BLANKS = " \t\r\n"
_REPEAT_MAX = 16 * 1024 * 1024


@function("CHAR_LENGTH", 1)
def _char_length(value: Any) -> int:
    return len(to_string(value))


@function("LOWER", 1)
def _lower(value: Any) -> str:
    return to_string(value).lower()


@function("UPPER", 1)
def _upper(value: Any) -> str:
    return to_string(value).upper()


@function("CONCAT", 1, None)
def _concat(*values: Any) -> str:
    parts = values[0] if len(values) == 1 and type(values[0]) is list else values
    return "".join([to_string(part) for part in parts if part is not None])


@function("CONCAT_SEPARATOR", 2, None)
def _concat_separator(separator: Any, *values: Any) -> str:
    parts = values[0] if len(values) == 1 and type(values[0]) is list else values
    return to_string(separator).join([to_string(part) for part in parts if part is not None])


@function("CONTAINS", 2, 3)
def _contains(text: Any, search: Any, index: Any = False) -> Any:
    needle = to_string(search)
    place = to_string(text).find(needle) if needle else -1
    return place if truthy(index) else place >= 0


@function("FIND_FIRST", 2, 4)
def _find_first(text: Any, search: Any, start: Any = 0, end: Any = None) -> int:
    bounds = _bounds(to_string(text), start, end)
    return -1 if bounds is None else to_string(text).find(to_string(search), *bounds)


@function("FIND_LAST", 2, 4)
def _find_last(text: Any, search: Any, start: Any = 0, end: Any = None) -> int:
    bounds = _bounds(to_string(text), start, end)
    return -1 if bounds is None else to_string(text).rfind(to_string(search), *bounds)


def _bounds(text: str, start: Any, end: Any) -> tuple[int, int] | None:
    """Return the slice to search; the end is the last position, itself included."""
    first = to_integer(start)
    last = len(text) if end is None else to_integer(end) + 1
    if first < 0 or last < first or (end is not None and last <= 0):
        return None
    return first, last


@function("LEFT", 2)
def _left(value: Any, length: Any) -> str:
    return to_string(value)[: max(0, to_integer(length))]


@function("RIGHT", 2)
def _right(value: Any, length: Any) -> str:
    text = to_string(value)
    count = max(0, to_integer(length))
    return text[max(0, len(text) - count) :]


@function("SUBSTRING", 2, 3)
def _substring(value: Any, offset: Any, length: Any = None) -> str:
    text = to_string(value)
    start = to_integer(offset)
    if start < 0:
        start = max(0, len(text) + start)
    if length is None:
        return text[start:]
    return text[start : start + max(0, to_integer(length))]


@function("SUBSTRING_BYTES", 2, 5)
def _substring_bytes(
    run: Run, value: Any, offset: Any, length: Any = None, left: Any = 0, right: Any = None
) -> str | None:
    text = to_string(value)
    raw = text.encode()
    start = to_integer(offset)
    start = max(0, len(raw) + start) if start < 0 else min(start, len(raw))
    end = len(raw) if length is None else min(len(raw), start + max(0, to_integer(length)))
    try:
        head = len(raw[:start].decode())
        taken = len(raw[start:end].decode())
    except UnicodeDecodeError:
        run.warn(1542, "SUBSTRING_BYTES")
        return None
    more_left = to_integer(left)
    more_right = more_left if right is None else to_integer(right)
    return text[max(0, head - more_left) : head + taken + more_right]


@function("TRIM", 1, 2)
def _trim(value: Any, how: Any = None) -> str:
    text = to_string(value)
    if is_number(how):
        if how == 1:
            return text.lstrip(_BLANKS)
        return text.rstrip(_BLANKS) if how == 2 else text.strip(_BLANKS)
    return text.strip(_BLANKS if how is None else to_string(how))


@function("LTRIM", 1, 2)
def _ltrim(value: Any, characters: Any = None) -> str:
    return to_string(value).lstrip(_BLANKS if characters is None else to_string(characters))


@function("RTRIM", 1, 2)
def _rtrim(value: Any, characters: Any = None) -> str:
    return to_string(value).rstrip(_BLANKS if characters is None else to_string(characters))


@function("LIKE", 2, 3)
def _like(text: Any, pattern: Any, caseless: Any = False) -> bool:
    return like(text, pattern, truthy(caseless))


@function("STARTS_WITH", 2, 3)
def _starts_with(run: Run, text: Any, prefix: Any, least: Any = 1) -> Any:
    if type(text) is not str:
        run.warn(1542, "STARTS_WITH")
        return None
    if type(prefix) is not list:
        if type(prefix) is not str:
            run.warn(1542, "STARTS_WITH")
            return None
        return text.startswith(prefix)
    if not all(type(part) is str for part in prefix):
        run.warn(1542, "STARTS_WITH")
        return None
    return sum(text.startswith(part) for part in prefix) >= to_integer(least)


@function("REPEAT", 2, 3)
def _repeat(run: Run, value: Any, count: Any, separator: Any = "") -> str | None:
    text, between = to_string(value), to_string(separator)
    times = to_integer(count)
    if times < 0 or times * (len(text) + len(between)) > _REPEAT_MAX:
        run.warn(1542 if times < 0 else 1504, "REPEAT")
        return None
    return between.join([text] * times)


@function("SPLIT", 1, 3)
def _split(run: Run, value: Any, separator: Any = None, limit: Any = None) -> Any:
    text = to_string(value)
    most = None if limit is None else to_integer(limit)
    if most is not None and most < 0:
        run.warn(1542, "SPLIT")
        return None
    if most == 0:
        return []
    if separator is None:
        return [text]
    marks = [to_string(mark) for mark in separator] if type(separator) is list else None
    if marks is None:
        marks = [to_string(separator)]
    parts = list(text) if "" in marks else _cut(text, marks)
    return parts if most is None else parts[:most]


def _cut(text: str, marks: list[str]) -> list[str]:
    parts, start, position = [], 0, 0
    while position < len(text):
        mark = next((mark for mark in marks if text.startswith(mark, position)), None)
        if mark is None:
            position += 1
        else:
            parts.append(text[start:position])
            position += len(mark)
            start = position
    return [*parts, text[start:]]


@function("SUBSTITUTE", 2, 4)
def _substitute(
    run: Run, value: Any, search: Any, replace: Any = None, limit: Any = None
) -> str | None:
    if type(search) is dict:
        limit = replace if limit is None else limit
        pairs = {name: to_string(new) for name, new in search.items()}
    elif type(search) is list:
        pairs = {}
        for place, old in enumerate(search):
            if type(replace) is list:
                new = to_string(replace[place]) if place < len(replace) else ""
            else:
                new = to_string(replace)
            pairs.setdefault(to_string(old), new)
    else:
        first = replace[0] if type(replace) is list and replace else replace
        pairs = {to_string(search): "" if type(first) is list else to_string(first)}
    left = -1 if limit is None else to_integer(limit)
    if limit is not None and left < 0:
        run.warn(1542, "SUBSTITUTE")
        return None
    return _replaced(to_string(value), {old: new for old, new in pairs.items() if old}, left)


def _replaced(text: str, pairs: dict[str, str], left: int) -> str:
    result, position = [], 0
    while position < len(text):
        old = next((old for old in pairs if text.startswith(old, position)), None)
        if left != 0 and old is not None:
            result.append(pairs[old])
            position += len(old)
            left -= 1
        else:
            result.append(text[position])
            position += 1
    return "".join(result)


@function("JSON_STRINGIFY", 1)
def _json_stringify(value: Any) -> str:
    return json_text(value)


@function("JSON_PARSE", 1)
def _json_parse(run: Run, value: Any) -> Any:
    if type(value) is not str:
        run.warn(1542, "JSON_PARSE")
        return None
    try:
        return json.loads(value, parse_constant=_no_constant)
    except ValueError:
        run.warn(1542, "JSON_PARSE")
        return None


def _no_constant(name: str) -> Any:
    raise ValueError(name)


@function("ENCODE_URI_COMPONENT", 1)
def _encode_uri_component(run: Run, value: Any) -> Any:
    if type(value) is not str:
        run.warn(1542, "ENCODE_URI_COMPONENT")
        return None
    return quote(value, safe="-_.!~*'()")


@function("TO_CHAR", 1)
def _to_char(run: Run, codepoint: Any) -> str | None:
    number = to_number(codepoint)
    if not is_number(codepoint) or not 0 <= number <= 0x10FFFF:
        run.warn(1542, "TO_CHAR")
        return None
    return chr(int(number))
