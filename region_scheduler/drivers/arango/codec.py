"""Values of the domain as documents and back.

A value's `id` and `rev` are the document's `_key` (or `_id`) and `_rev`; every other attribute has
the field's name. Instants are written with a fixed width, so that their order as text is their
order in time.
"""

from __future__ import annotations

import re
import zlib
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from itertools import compress, repeat
from operator import attrgetter, call
from typing import Any, Final, Generic, TypeVar, cast, get_type_hints

import msgspec
import orjson

from region_scheduler.domain.admission import Admission, Plan
from region_scheduler.domain.task import TaskSpec
from region_scheduler.drivers.arango.errors import AnswerLost
from region_scheduler.errors import InvalidInput
from region_scheduler.ports.documents import Identified

D = TypeVar("D", bound=Identified)
V = TypeVar("V")
Document = dict[str, Any]

_KEY: Final = re.compile(r"[A-Za-z0-9_\-:.@()+,=;$!*'%]{1,254}")
_OWN: Final = frozenset({"id", "rev"})
_CONDITION_ATTRIBUTES: Final = 2
"""The key and the revision."""
_PLAN_LISTS: Final = ("tasks", "edges")
_ASKED_FOR: Final = frozenset({"expected_s", "remaining_s"})
"""What queries read of a spec is always there."""
_PART: Final = 1_000
"""Documents in one request: what a leader and its followers take well within a time-out."""


def to_json(value: Any) -> bytes:
    """Return `value` as JSON.

    Raises:
        InvalidInput: It holds what JSON cannot, e.g. half of a surrogate pair. Nothing was sent.
    """
    try:
        return orjson.dumps(value, default=_otherwise, option=orjson.OPT_PASSTHROUGH_DATETIME)
    except TypeError as error:
        raise InvalidInput(
            field="document", value=str(error), expected="only values that JSON has"
        ) from error


def from_json(raw: bytes | str) -> Any:
    """Return what the JSON `raw` says; an empty one is an empty text.

    Raises:
        AnswerLost: It is no JSON, so the answer is not the store's.
    """
    if not raw:
        return ""
    try:
        return orjson.loads(raw)
    except ValueError as error:
        raise AnswerLost(f"the answer is no JSON: {raw[:80]!r}") from error


class Codec(Generic[D]):
    """How values of one type become documents of one collection.

    Args:
        type_: A frozen dataclass with `id`, `rev` and `schema`.
        collection: Where its documents live.
        has_handle_ids: Whether ids are whole handles (`collection/key`) or keys.
    """

    def __init__(self, type_: type[D], collection: str, has_handle_ids: bool = False) -> None:
        self.collection = collection
        self._type = type_
        self._prefix = f"{collection}/" if has_handle_ids else ""
        self._id = "_id" if has_handle_ids else "_key"
        self._names = tuple(f.name for f in fields(cast(Any, type_)) if f.name not in _OWN)
        self._has_plan = type_ is Admission
        self._attributes = attrgetter(*self._names)
        hints = get_type_hints(type_)
        self._plain_fields = [name for name in self._names if hints[name] in _PLAIN]
        self._kept = attrgetter("id", *self._names)
        self._put = [vars(type_)[name].__set__ for name in ("id", *self._names, "rev")]
        (self._schema,) = (f.default for f in fields(cast(Any, type_)) if f.name == "schema")

    def key(self, id_: str) -> str:
        """Return the key in `id_`.

        Raises:
            InvalidInput: It can be no key. Nothing was sent.
        """
        key = id_.removeprefix(self._prefix)
        if not _KEY.fullmatch(key):
            raise InvalidInput(
                field=f"id in {self.collection}",
                value=id_,
                expected="1 to 254 letters, digits or _-:.@()+,=;$!*'%",
            )
        return key

    def encoded(self, value: D) -> Document:
        """Return the whole document of `value`, without a revision."""
        document: Document = dict(zip(self._names, self._attributes(value), strict=True))
        for name in self._plain_fields:
            document[name] = _plain(document[name])
        document["_key"] = self.key(value.id)
        return document

    def patch(self, before: D, after: D) -> Document:
        """Return the attributes in which `after` differs, on the condition of `before`'s revision.

        What is equal to Python is compared as JSON: 1 and true are not equal to a reader.
        """
        patch: Document = {"_key": self.key(before.id), "_rev": before.rev}
        pairs = zip(self._names, self._attributes(before), self._attributes(after), strict=True)
        for name, old, new in pairs:
            if new is not old and (new != old or _json_of(new) != _json_of(old)):
                patch[name] = _plain(new)
        if len(patch) == _CONDITION_ATTRIBUTES:
            # An update of nothing may leave the revision where it is; one with an equal value moves
            # it, which is what a write that changes nothing is for.
            patch["schema"] = self._schema
        return patch

    def decoded(self, document: Document) -> D | None:
        """Return the value in `document`; None if its schema is not one that this code knows."""
        if document.get("schema") != self._schema:
            return None
        attributes = {**document, "id": document[self._id], "rev": document["_rev"]}
        try:
            if self._has_plan:
                attributes["plan"] = _unpacked(document["plan"])
            return msgspec.convert(attributes, self._type)
        except msgspec.ValidationError:
            return None

    def all_decoded(self, documents: Iterable[Document]) -> list[D]:
        """Return the values in `documents`, less those of a schema not known here."""
        return [value for document in documents if (value := self.decoded(document)) is not None]

    def at(self, value: D, rev: str) -> D:
        """Return `value` at the revision that the store gave it."""
        moved = object.__new__(self._type)
        # A frozen value is filled slot by slot; in one call, since every write of a batch needs it.
        deque(map(call, self._put, repeat(moved), (*self._kept(value), rev)), maxlen=0)
        return moved


def _plain(value: Any) -> Any:
    """Return what becomes JSON as it should; dataclasses, enumerations and tuples do so already."""
    return _PLAIN[kind](value) if (kind := type(value)) in _PLAIN else value


def _json_of(value: Any) -> bytes:
    return to_json(_plain(value))


def _is_empty_by_default(default: Any, factory: Any) -> bool:
    if factory is not MISSING:
        return not factory()
    return default is not MISSING and not default


_LEFT_OUT_IF_EMPTY: Final = tuple(
    f.name
    for f in fields(TaskSpec)
    if f.name not in _ASKED_FOR and _is_empty_by_default(f.default, f.default_factory)
)
"""Only what is empty is left out of a spec, so that no default that is not can ever change the
meaning of what stands in a store."""
_ALWAYS_THERE: Final = tuple(f.name for f in fields(TaskSpec) if f.name not in _LEFT_OUT_IF_EMPTY)
_always_there: Final = attrgetter(*_ALWAYS_THERE)
_left_out_if_empty: Final = attrgetter(*_LEFT_OUT_IF_EMPTY)


def _of_spec(spec: TaskSpec) -> Document:
    document: Document = dict(zip(_ALWAYS_THERE, _always_there(spec), strict=True))
    values = _left_out_if_empty(spec)
    document.update(compress(zip(_LEFT_OUT_IF_EMPTY, values, strict=True), values))
    return document


def _of_plan(plan: Plan) -> Document:
    """Return a plan with its lists as JSON already: a big one has no room for a copy in objects.

    The lists of a big one are one text each, packed: nobody asks for a part of them, and a store
    would take them apart at every look at, and write to, the admission.
    """
    document: Document = {
        f.name: getattr(plan, f.name) for f in fields(plan) if f.name not in _PLAN_LISTS
    }
    tasks = ([_of_spec(spec) for spec in part] for part in in_parts(plan.tasks))
    written = _packed if max(len(plan.tasks), len(plan.edges)) > _PART else _list
    counts = {"task_count": len(plan.tasks), "edge_count": len(plan.edges)}
    return document | counts | {"tasks": written(tasks), "edges": written(in_parts(plan.edges))}


def _unpacked(plan: Document) -> Document:
    """Return the document of a plan with its lists as lists.

    Raises:
        msgspec.ValidationError: A list is packed in a way that is not known here.
    """
    packed = {name: plan[name] for name in _PLAN_LISTS if isinstance(plan[name], str)}
    try:
        lists = {name: zlib.decompress(b64decode(text)) for name, text in packed.items()}
        return plan | {name: orjson.loads(text) for name, text in lists.items()}
    except (ValueError, zlib.error) as error:
        raise msgspec.ValidationError(str(error)) from error


def _list(parts: Iterator[Sequence[Any]]) -> orjson.Fragment:
    """Return one JSON list of the elements of all parts."""
    return orjson.Fragment(b"".join(_pieces(parts)))


def _packed(parts: Iterator[Sequence[Any]]) -> str:
    """Return the same list, compressed, as text."""
    packer = zlib.compressobj(level=1)
    packed = [packer.compress(piece) for piece in _pieces(parts)]
    return b64encode(b"".join([*packed, packer.flush()])).decode()


def _pieces(parts: Iterator[Sequence[Any]]) -> Iterator[bytes]:
    opening = b"["
    for part in parts:
        yield opening + to_json(part)[1:-1]
        opening = b","
    yield b"[]" if opening == b"[" else b"]"


_PLAIN: Final[Mapping[type, Callable[[Any], Document]]] = {TaskSpec: _of_spec, Plan: _of_plan}


def in_parts(items: Sequence[V], size: int = _PART) -> Iterator[Sequence[V]]:
    """Return items in portions; without a size, those in which they are written and sent."""
    return (items[begin : begin + size] for begin in range(0, len(items), size))


def instant(value: datetime) -> str:
    """Return an instant as documents have it."""
    here = value if value.tzinfo is UTC else value.astimezone(UTC)
    return here.isoformat(timespec="microseconds")


def _otherwise(value: Any) -> Any:
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON")
