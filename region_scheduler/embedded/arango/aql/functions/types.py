"""Type checks and casts."""

from __future__ import annotations

from typing import Any

from region_scheduler.embedded.arango.aql.convert import (
    is_number,
    to_array,
    to_number,
    to_string,
    truthy,
)
from region_scheduler.embedded.arango.aql.functions.registry import function


@function("IS_NULL", 1)
def _is_null(value: Any) -> bool:
    return value is None


@function("IS_BOOL", 1)
def _is_bool(value: Any) -> bool:
    return type(value) is bool


@function("IS_NUMBER", 1)
def _is_number(value: Any) -> bool:
    return is_number(value)


@function("IS_STRING", 1)
def _is_string(value: Any) -> bool:
    return type(value) is str


@function("IS_ARRAY IS_LIST", 1)
def _is_array(value: Any) -> bool:
    return type(value) is list


@function("IS_OBJECT IS_DOCUMENT", 1)
def _is_object(value: Any) -> bool:
    return type(value) is dict


@function("TYPENAME", 1)
def typename(value: Any) -> str:
    """Return the name of a value's type."""
    if value is None:
        return "null"
    names = {bool: "bool", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "number")


@function("TO_BOOL", 1)
def _to_bool(value: Any) -> bool:
    return truthy(value)


@function("TO_NUMBER", 1)
def _to_number(value: Any) -> Any:
    return to_number(value)


@function("TO_STRING", 1)
def _to_string(value: Any) -> str:
    return to_string(value)


@function("TO_ARRAY TO_LIST", 1)
def _to_array(value: Any) -> list[Any]:
    return to_array(value)
