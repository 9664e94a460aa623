"""Document validation by JSON Schema, as far as collections commonly use it.

Known keywords: type, enum, const, properties, required, additionalProperties, patternProperties,
items, minItems, maxItems, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf,
minLength, maxLength, pattern, anyOf, allOf, oneOf, not. A schema with another one is refused when
it is set, so that nothing passes unchecked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from region_scheduler.embedded.arango.errors import ArangoError
from region_scheduler.embedded.arango.session import Document

_LEVELS = ("none", "new", "moderate", "strict")
_NOTES = frozenset({"title", "description", "$schema", "$id", "default", "examples", "$comment"})
_SYSTEM = ("_key", "_id", "_rev", "_from", "_to")


def check_schema(given: Any) -> dict[str, Any] | None:
    """Return a collection's `schema` property if it can be enforced; None for none.

    Raises:
        ArangoError: 1621.
    """
    if given is None or given == {}:
        return None
    if not isinstance(given, dict) or not isinstance(given.get("rule"), dict):
        raise ArangoError(1621)
    if given.get("level", "strict") not in _LEVELS or given.get("type", "json") != "json":
        raise ArangoError(1621)
    _check_rule(given["rule"])
    return {
        "rule": given["rule"],
        "level": given.get("level", "strict"),
        "message": given.get("message", ""),
        "type": "json",
    }


def check_document(schema: dict[str, Any], document: Document, old: Document | None) -> None:
    """Refuse a document that breaks the collection's schema at its level.

    Raises:
        ArangoError: 1620, with the schema's own message if it has one.
    """
    level = schema["level"]
    if level == "none" or (level == "new" and old is not None):
        return
    if level == "moderate" and old is not None and not is_valid(schema["rule"], _body(old)):
        return
    if not is_valid(schema["rule"], _body(document)):
        raise ArangoError(1620, schema["message"] or "schema validation failed")


def is_valid(rule: Any, value: Any) -> bool:
    """Return whether `value` satisfies the JSON schema `rule`."""
    if isinstance(rule, bool):
        return rule
    return all(
        _KEYWORDS[word](wanted, value, rule) for word, wanted in rule.items() if word not in _NOTES
    )


def _body(document: Document) -> Document:
    return {name: value for name, value in document.items() if name not in _SYSTEM}


def _check_rule(rule: Any) -> None:
    if isinstance(rule, bool):
        return
    if not isinstance(rule, dict):
        raise ArangoError(1621)
    for word, wanted in rule.items():
        if word in _NOTES:
            continue
        if word not in _KEYWORDS:
            raise ArangoError(1621, f"schema keyword '{word}' is not known to this engine")
        inner: list[Any] = []
        if word in ("properties", "patternProperties"):
            if not isinstance(wanted, dict):
                raise ArangoError(1621)
            inner = list(wanted.values())
        elif word in ("items", "additionalProperties", "not"):
            inner = [wanted]
        elif word in ("anyOf", "allOf", "oneOf"):
            if not isinstance(wanted, list):
                raise ArangoError(1621)
            inner = wanted
        elif word == "type" and not set(_as_list(wanted)) <= _TYPES.keys():
            raise ArangoError(1621)
        for one in inner:
            _check_rule(one)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "number": _is_number,
    "integer": lambda v: _is_number(v) and v == int(v),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
}


def _other_properties(wanted: Any, value: Any, rule: dict[str, Any]) -> bool:
    if not isinstance(value, dict):
        return True
    known = rule.get("properties", {})
    patterns = rule.get("patternProperties", {})
    return all(
        is_valid(wanted, item)
        for name, item in value.items()
        if name not in known and not any(re.search(pattern, name) for pattern in patterns)
    )


def _patterns(wanted: Any, value: Any, _rule: dict[str, Any]) -> bool:
    return not isinstance(value, dict) or all(
        is_valid(inner, item)
        for pattern, inner in wanted.items()
        for name, item in value.items()
        if re.search(pattern, name)
    )


_KEYWORDS: dict[str, Callable[[Any, Any, dict[str, Any]], bool]] = {
    "type": lambda w, v, _: any(_TYPES[name](v) for name in _as_list(w)),
    "enum": lambda w, v, _: any(type(v) is type(one) and v == one for one in w),
    "const": lambda w, v, _: type(v) is type(w) and v == w,
    "properties": lambda w, v, _: (
        not isinstance(v, dict) or all(n not in v or is_valid(r, v[n]) for n, r in w.items())
    ),
    "required": lambda w, v, _: not isinstance(v, dict) or all(name in v for name in w),
    "additionalProperties": _other_properties,
    "patternProperties": _patterns,
    "items": lambda w, v, _: not isinstance(v, list) or all(is_valid(w, one) for one in v),
    "minItems": lambda w, v, _: not isinstance(v, list) or len(v) >= w,
    "maxItems": lambda w, v, _: not isinstance(v, list) or len(v) <= w,
    "minimum": lambda w, v, _: not _is_number(v) or v >= w,
    "maximum": lambda w, v, _: not _is_number(v) or v <= w,
    "exclusiveMinimum": lambda w, v, _: not _is_number(v) or v > w,
    "exclusiveMaximum": lambda w, v, _: not _is_number(v) or v < w,
    "multipleOf": lambda w, v, _: not _is_number(v) or v % w == 0,
    "minLength": lambda w, v, _: not isinstance(v, str) or len(v) >= w,
    "maxLength": lambda w, v, _: not isinstance(v, str) or len(v) <= w,
    "pattern": lambda w, v, _: not isinstance(v, str) or re.search(w, v) is not None,
    "anyOf": lambda w, v, _: any(is_valid(rule, v) for rule in w),
    "allOf": lambda w, v, _: all(is_valid(rule, v) for rule in w),
    "oneOf": lambda w, v, _: sum(is_valid(rule, v) for rule in w) == 1,
    "not": lambda w, v, _: not is_valid(w, v),
}
