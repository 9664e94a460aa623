"""Digests of contents: equal values have equal digests, however they travelled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from types import NoneType
from typing import Any, Final

import orjson

_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)
"""For what the faster one does not take: halves of surrogate pairs, numbers beyond 64 bits."""
_AS_IT_IS: Final = frozenset({str, int, bool, NoneType})


def content_digest(value: object) -> str:
    """Return a hex digest of a value made of dataclasses, mappings, sequences and scalars.

    The order of mapping keys and the spelling of whole numbers (1 or 1.0) make no difference, since
    neither survives every store.
    """
    plain = _plain(value)
    try:
        text = orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        text = _ENCODER.encode(plain).encode()
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    kind: Any = type(value)
    if kind in _AS_IT_IS:  # most of what there is: a big graph has millions of them
        return value
    if kind is float:
        return int(value) if value.is_integer() else value
    if names := _field_names(kind):
        return {
            name: field if type(field := getattr(value, name)) in _AS_IT_IS else _plain(field)
            for name in names
        }
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    return value


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
