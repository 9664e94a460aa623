"""Digests of contents: equal values have equal digests, however they travelled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from operator import attrgetter
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
    return value if kind in _AS_IT_IS else _BY_TYPE[kind](value)


class _ByType(dict[type, Callable[[Any], Any]]):
    """What makes a value of a type plain, looked for once: a big graph has millions of them."""

    def __missing__(self, kind: type) -> Callable[[Any], Any]:
        """Find it, and keep it."""
        found = self[kind] = _plain_of(kind)
        return found


_BY_TYPE: Final = _ByType()


def _plain_of(kind: Any) -> Callable[[Any], Any]:
    if is_dataclass(kind):
        return _plain_fields(tuple(field.name for field in fields(kind)))
    if issubclass(kind, float):
        return lambda value: int(value) if value.is_integer() else value
    if issubclass(kind, str):
        return str
    if issubclass(kind, Mapping):
        return lambda value: {str(key): _plain(item) for key, item in value.items()}
    if issubclass(kind, Sequence):
        return lambda value: [_plain(item) for item in value]
    if issubclass(kind, datetime):
        return lambda value: value.astimezone(UTC).isoformat(timespec="microseconds")
    return lambda value: value


def _plain_fields(names: Sequence[str]) -> Callable[[Any], Any]:
    """Return what makes a dataclass a dictionary, its fields taken all at once."""
    if len(names) < 2:
        return lambda value: {name: _plain(getattr(value, name)) for name in names}
    get = attrgetter(*names)

    by_type, as_it_is = _BY_TYPE, _AS_IT_IS

    def plain(value: Any) -> Any:
        found = dict(zip(names, get(value)))  # noqa: B905 - names of the very class, a hot path
        for name, field in found.items():
            kind = type(field)
            if kind not in as_it_is and field != ():
                found[name] = by_type[kind](field)
        return found

    return plain
