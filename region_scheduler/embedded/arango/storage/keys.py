"""Document keys: which are valid, and how new ones are made."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from region_scheduler.embedded.arango.errors import ArangoError

_KEY = re.compile(r"[A-Za-z0-9_:.@()+,=;$!*'%\-]{1,254}")
_HANDLE = re.compile(r"[^/]{1,256}/[A-Za-z0-9_:.@()+,=;$!*'%\-]{1,254}")
KINDS = ("traditional", "autoincrement", "uuid", "padded")


def check_key(key: Any) -> str:
    """Return `key` if it may be a document's `_key`.

    Raises:
        ArangoError: 1221.
    """
    if type(key) is str and _KEY.fullmatch(key):
        return key
    raise ArangoError(1221)


def is_handle(value: Any) -> bool:
    """Return whether `value` is of the form `collection/key`."""
    return type(value) is str and _HANDLE.fullmatch(value) is not None


@dataclass(slots=True)
class KeyOptions:
    """How a collection gets keys for documents that bring none.

    Attributes:
        kind: traditional, autoincrement, uuid or padded.
        may_be_given: Whether documents may bring their own.
        last: The last number of autoincrement; 0 before the first.
    """

    kind: str = "traditional"
    may_be_given: bool = True
    increment: int = 1
    offset: int = 0
    last: int = 0

    @classmethod
    def from_body(cls, body: Any) -> KeyOptions:
        """Check `keyOptions` of a collection creation.

        Raises:
            ArangoError: 10 for an unknown type or a bad increment or offset.
        """
        if body is None:
            return cls()
        if not isinstance(body, dict) or body.get("type", "traditional") not in KINDS:
            raise ArangoError(10, "invalid key generator type")
        increment, offset = body.get("increment", 1), body.get("offset", 0)
        if not isinstance(increment, int) or not 0 < increment < 1 << 16:
            raise ArangoError(10, "increment value must be greater than zero")
        if not isinstance(offset, int) or offset < 0:
            raise ArangoError(10, "offset value must be zero or greater")
        return cls(
            kind=body.get("type", "traditional"),
            may_be_given=bool(body.get("allowUserKeys", True)),
            increment=increment,
            offset=offset,
        )

    def describe(self) -> dict[str, Any]:
        """Return the options as the HTTP API shows them."""
        shown: dict[str, Any] = {"allowUserKeys": self.may_be_given, "type": self.kind}
        if self.kind == "autoincrement":
            shown |= {"increment": self.increment, "offset": self.offset}
        shown["lastValue"] = self.last
        return shown

    def new_key(self, next_tick: Callable[[], int], chance: Random) -> str:
        """Return a key for a document that brings none."""
        if self.kind == "autoincrement":
            steps = (self.last - self.offset) // self.increment + 1
            self.last = self.offset + max(0, steps) * self.increment
            return str(self.last)
        if self.kind == "uuid":
            return str(uuid.UUID(int=chance.getrandbits(128), version=4))
        tick = next_tick()
        return f"{tick:016x}" if self.kind == "padded" else str(tick)

    def saw(self, key: str) -> None:
        """Keep autoincrement above a key that a document brought."""
        if self.kind == "autoincrement" and key.isdigit():
            self.last = max(self.last, int(key))
